/** The endpoints of passkeys: for the OpenAPI document, and for the routes that serve them. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { PREFIX } from "../Endpoint.ts"
import { sessionErrorSchemas } from "../ErrorCode.ts"
import { answer, CHANGES, CurrentSession, described, READS, SESSIONS } from "./SessionEndpoints.ts"

export const PASSKEYS = `${PREFIX}/passkeys` as const
export const OPTIONS = `${PASSKEYS}/options` as const
export const ONE = `${PASSKEYS}/:passkey_id` as const
export const SIGN_IN = `${SESSIONS}/passkey` as const
export const SIGN_IN_OPTIONS = `${SIGN_IN}/options` as const

// what is sent: see https://www.w3.org/TR/webauthn-3/#dictdef-registrationresponsejson

const MAX_ID = 1_400
const MAX_DATA = 6_000

const Base64Url = (length: number) => Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_-]*$/u), Schema.isMaxLength(length))

const Word = Schema.String.check(Schema.isMaxLength(40))
const CredentialFields = {
  id: Base64Url(MAX_ID),
  rawId: Base64Url(MAX_ID),
  type: Schema.Literal("public-key"),
  authenticatorAttachment: Schema.optionalKey(Schema.NullOr(Schema.Literals(["platform", "cross-platform"]))),
  clientExtensionResults: Schema.Record(Schema.String, Schema.Unknown)
}

/** What `navigator.credentials.create()` gives, as `toJSON()` writes it. */
export const NewCredential = Schema.Struct({
  ...CredentialFields,
  response: Schema.Struct({
    clientDataJSON: Base64Url(MAX_DATA),
    attestationObject: Base64Url(MAX_DATA),
    transports: Schema.optionalKey(Schema.Array(Word).check(Schema.isMaxLength(20))),
    authenticatorData: Schema.optionalKey(Base64Url(MAX_DATA)),
    publicKey: Schema.optionalKey(Base64Url(MAX_DATA)),
    publicKeyAlgorithm: Schema.optionalKey(Schema.Int)
  })
})

/** What `navigator.credentials.get()` gives, as `toJSON()` writes it. */
export const SignedCredential = Schema.Struct({
  ...CredentialFields,
  response: Schema.Struct({
    clientDataJSON: Base64Url(MAX_DATA),
    authenticatorData: Base64Url(MAX_DATA),
    signature: Base64Url(MAX_DATA),
    userHandle: Schema.optionalKey(Schema.NullOr(Base64Url(MAX_ID)))
  })
})

export const Addition = {
  credential: NewCredential,
  /** The owner's name for it. */
  name: Schema.optionalKey(Schema.String.check(Schema.isMinLength(1), Schema.isMaxCodePoints(100)))
}
export const Signature = { credential: SignedCredential }
export const PasskeyId = { passkey_id: Schema.String.check(Schema.isMaxLength(60)) }

// what is answered

const Options = Schema.Struct({
  /** For `navigator.credentials`, by `PublicKeyCredential.parseCreationOptionsFromJSON()` or `parseRequestOptionsFromJSON()`. */
  options: Schema.Record(Schema.String, Schema.Unknown)
})

export const PasskeyRecord = Schema.Struct({
  passkey_id: Schema.String,
  /** Null if it has none. */
  name: Schema.NullOr(Schema.String),
  added_at: Schema.String,
  /** When it signed in the last time. Null if it never did. */
  used_at: Schema.NullOr(Schema.String),
  /** How browsers reach it, such as `internal`, `hybrid` or `usb`. */
  transports: Schema.Array(Schema.String)
})

const PasskeyList = Schema.Struct({ passkeys: Schema.Array(PasskeyRecord) })
const Removed = Schema.Struct({ passkey_id: Schema.String, removed: Schema.Literal(true) })

// the endpoints

const errors = { error: sessionErrorSchemas }

export const group = HttpApiGroup.make("passkeys")
  .add(
    HttpApiEndpoint.post("signInOptions", SIGN_IN_OPTIONS, {
      success: answer("PasskeyRequestReply", Options, 200),
      ...errors
    }).annotateMerge(
      described(
        "sessions.passkeyOptions",
        "Ask to sign in with a passkey",
        "The challenge is for this browser, and can be signed for five minutes."
      )
    ),
    HttpApiEndpoint.post("signIn", SIGN_IN, {
      payload: Schema.Struct(Signature),
      success: answer("PasskeySignedInReply", CurrentSession, 201),
      ...errors
    }).annotateMerge(
      described(
        "sessions.passkey",
        "Sign in with a passkey",
        "The credential must have signed the challenge that this browser asked for. It gets a new session, and the one that it had ends."
      )
    ),
    HttpApiEndpoint.post("addOptions", OPTIONS, {
      success: answer("PasskeyCreationReply", Options, 200),
      ...errors
    }).annotateMerge(
      described(
        "passkeys.options",
        "Ask to add a passkey",
        "The challenge is for this session, and can be answered for five minutes.",
        CHANGES
      )
    ),
    HttpApiEndpoint.post("add", PASSKEYS, {
      payload: Schema.Struct(Addition),
      success: answer("PasskeyReply", PasskeyRecord, 201),
      ...errors
    }).annotateMerge(described("passkeys.add", "Add a passkey to the account", "From now on it signs in to this account.", CHANGES)),
    HttpApiEndpoint.get("list", PASSKEYS, {
      success: answer("PasskeyListReply", PasskeyList, 200),
      ...errors
    }).annotateMerge(described("passkeys.list", "The passkeys of the account", "Oldest first.", READS)),
    HttpApiEndpoint.delete("remove", ONE, {
      params: Schema.Struct(PasskeyId),
      success: answer("PasskeyRemovedReply", Removed, 200),
      ...errors
    }).annotateMerge(
      described("passkeys.remove", "Remove a passkey", "It signs in no more, at any host. The sessions that it opened stay.", CHANGES)
    )
  )
  .annotateMerge(OpenApi.annotations({ description: "Passkeys, with which people sign in beside the mailed link." }))

/** Where these endpoints are, for requests with another method. */
export const PLACES = [
  { method: "POST", path: SIGN_IN_OPTIONS },
  { method: "POST", path: SIGN_IN },
  { method: "POST", path: OPTIONS },
  { method: "POST", path: PASSKEYS },
  { method: "GET", path: PASSKEYS },
  { method: "DELETE", path: ONE }
] as const
