/** The endpoints of signing up, signing in, and sessions: for the OpenAPI document, and for the routes that serve them. */
import { Session } from "@millrace/core"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { PREFIX } from "../Endpoint.ts"
import { Envelope } from "../Envelope.ts"
import { sessionErrorSchemas } from "../ErrorCode.ts"

export const SIGN_UP = `${PREFIX}/signup` as const
export const SESSIONS = `${PREFIX}/sessions` as const
export const LINK = `${SESSIONS}/link` as const
export const CURRENT = `${SESSIONS}/current` as const
export const ONE = `${SESSIONS}/:session_id` as const

// what is sent

export const Address = { address: Schema.String.check(Schema.isMaxLength(508)) }
export const LinkToken = { token: Schema.String.check(Schema.isMaxLength(200)) }
export const SessionId = { session_id: Schema.String.check(Schema.isMaxLength(60)) }

// what is answered

/** The same for every address. */
export const Mailed = Schema.Struct({
  /** Seconds for which the link that was mailed can be used. */
  expires_in: Schema.Int
})

export const CurrentSession = Schema.Struct({
  session_id: Schema.String,
  account_id: Schema.String,
  /** Whether the address of the account was proved. Until then, the account has a trial in place of credits. */
  verified: Schema.Boolean,
  /** The address of the account. Null if it has none. */
  address: Schema.NullOr(Schema.String),
  proof: Session.Proof,
  /** When the session ends at the latest: an ISO 8601 time. */
  expires_at: Schema.String,
  /** To send as `X-CSRF-Token` with each request that is no GET. */
  csrf_token: Schema.String
})

export const ListedSession = Schema.Struct({
  session_id: Schema.String,
  /** Whether it is the session of this request. */
  current: Schema.Boolean,
  proof: Session.Proof,
  opened_at: Schema.String,
  /** To the day. */
  used_at: Schema.String,
  /** When it ends unless it is used before. */
  ends_at: Schema.String,
  user_agent: Schema.NullOr(Schema.String),
  ip: Schema.NullOr(Schema.String)
})

export const SessionList = Schema.Struct({ sessions: Schema.Array(ListedSession) })

export const Ended = Schema.Struct({
  /** How many sessions were ended. */
  ended: Schema.Int
})

// the endpoints

/** The security schemes that these endpoints add to the document. */
export const SECURITY_SCHEMES = {
  session: {
    type: "apiKey",
    in: "cookie",
    name: "__Host-millrace",
    description: "The session of a person who signed in with a browser. Used where no API key is sent."
  },
  csrfToken: {
    type: "apiKey",
    in: "header",
    name: "X-CSRF-Token",
    description: `The token of \`GET ${CURRENT}\`. Needed beside the cookie for everything but GET.`
  }
} as const

export const READS = [{ session: [] }]
export const CHANGES = [{ session: [], csrfToken: [] }]

/** What a session allows beside what a key does: for the document. `method` in lower case. */
export const securityOf = (method: string): ReadonlyArray<object> => (method === "get" ? READS : CHANGES)

export const answer = <Data extends Schema.Top>(identifier: string, data: Data, status: number) =>
  Envelope(data).annotate({ identifier }).pipe(HttpApiSchema.status(status))

export const described = (identifier: string, summary: string, description: string, security: ReadonlyArray<object> = []) =>
  OpenApi.annotations({ identifier, summary, description, override: { security } })

const errors = { error: sessionErrorSchemas }

export const group = HttpApiGroup.make("sessions")
  .add(
    HttpApiEndpoint.post("signUp", SIGN_UP, {
      payload: Schema.Struct(Address),
      success: answer("SignUpReply", Mailed, 202),
      ...errors
    }).annotateMerge(
      described(
        "signup",
        "Sign up with a mail address",
        "Opens an unverified account, signs the browser in to it, and mails a link that verifies it. If the address has an account already, the link signs in to that one. The answer is the same for every address."
      )
    ),
    HttpApiEndpoint.post("ask", SESSIONS, {
      payload: Schema.Struct(Address),
      success: answer("SignInReply", Mailed, 202),
      ...errors
    }).annotateMerge(
      described(
        "sessions.ask",
        "Ask for a sign-in link by mail",
        "Mails a link that signs this browser in, once, within 15 minutes. An address without an account gets one by its first link. The answer is the same for every address."
      )
    ),
    HttpApiEndpoint.post("follow", LINK, {
      payload: Schema.Struct(LinkToken),
      success: answer("SignedInReply", CurrentSession, 201),
      ...errors
    }).annotateMerge(
      described(
        "sessions.link",
        "Sign in with the token of a mailed link",
        "The browser must be the one that asked for the link. It gets a new session, and the one that it had ends."
      )
    ),
    HttpApiEndpoint.get("current", CURRENT, {
      success: answer("CurrentSessionReply", CurrentSession, 200),
      ...errors
    }).annotateMerge(described("sessions.current", "The session of this browser", "With the token that other requests need.", READS)),
    HttpApiEndpoint.get("list", SESSIONS, {
      success: answer("SessionListReply", SessionList, 200),
      ...errors
    }).annotateMerge(described("sessions.list", "The sessions of the account", "Those that can be used now, oldest first.", READS)),
    HttpApiEndpoint.delete("endCurrent", CURRENT, {
      success: answer("SignedOutReply", Ended, 200),
      ...errors
    }).annotateMerge(described("sessions.signOut", "Sign out", "Ends the session of this browser.", CHANGES)),
    HttpApiEndpoint.delete("endOne", ONE, {
      params: Schema.Struct(SessionId),
      success: answer("SessionEndedReply", Ended, 200),
      ...errors
    }).annotateMerge(described("sessions.end", "End a session of the account", "At every host, at once.", CHANGES)),
    HttpApiEndpoint.delete("endAll", SESSIONS, {
      success: answer("SessionsEndedReply", Ended, 200),
      ...errors
    }).annotateMerge(described("sessions.signOutEverywhere", "Sign out everywhere", "Ends all sessions of the account.", CHANGES))
  )
  .annotateMerge(
    OpenApi.annotations({
      description:
        "Accounts that people open by themselves, and their sessions. They are for web pages of this host; programs use API keys."
    })
  )

/** Where these endpoints are, for requests with another method. */
export const PLACES = [
  { method: "POST", path: SIGN_UP },
  { method: "POST", path: SESSIONS },
  { method: "GET", path: SESSIONS },
  { method: "DELETE", path: SESSIONS },
  { method: "POST", path: LINK },
  { method: "GET", path: CURRENT },
  { method: "DELETE", path: CURRENT },
  { method: "DELETE", path: ONE }
] as const
