/**
 * The sessions of people who signed in: opened after a proof of any kind, used to authenticate, listed, ended. Each has a stream of its own,
 * and the store confirms its end for each call. So a session that another process opened or ended counts at once.
 */
import { Aggregate, type EventStore, Projection, type StateStore } from "@millrace/event-sourcing"
import { Clock, Context, Effect, HashMap, Layer, Option, type Redacted, Schema } from "effect"
import { newSessionId } from "../Ids.ts"
import * as Decisions from "../ledger/Decisions.ts"
import { Ledger } from "../ledger/Ledger.ts"
import * as Metrics from "../observability/Metrics.ts"
import type { Timestamp } from "../Timestamp.ts"
import { RandomBytes } from "../vault/RandomBytes.ts"
import { ofAccount, Vault, type VaultFailure } from "../vault/Vault.ts"
import type * as ApiKey from "./ApiKey.ts"
import * as ByAccount from "./ByAccount.ts"
import { Unauthorized } from "./KeyRing.ts"
import * as Session from "./Session.ts"
import * as Token from "./Token.ts"

/** What a browser says of itself, and where it is. Shown to the owner in the list of sessions. */
export interface Client {
  readonly userAgent: string | null
  readonly address: string | null
}

/** Who signs in, and how. */
export interface Opening {
  readonly accountId: string
  readonly proof: Session.Proof
  /** The id of what was used as the proof, such as the link; null where it has none. */
  readonly proofId: string | null
  readonly client: Client
  /** The session token that the browser has, whosever it is: the new session replaces it. */
  readonly current: string | undefined
}

/** A new session. Its token can be seen this once, by the browser. */
export interface NewSession {
  readonly sessionId: string
  readonly token: Redacted.Redacted<string>
}

/** The account and the session of a token. A session may do everything that its account may. */
export interface SignedIn {
  readonly accountId: string
  readonly sessionId: string
  readonly scopes: ReadonlyArray<ApiKey.Scope>
  readonly proof: Session.Proof
  /** Milliseconds since 1970: when it ends at the latest. */
  readonly expiresAt: Timestamp
  /** What a page of this host sends with each request that changes something. It derives from the session's secret. */
  readonly csrfToken: string
  /** The calls that remain of the account's trial; absent if it is not on trial. */
  readonly trialRemaining?: number
}

/** A session as its owner sees it in a list. */
export interface ListedSession {
  readonly sessionId: string
  readonly proof: Session.Proof
  readonly openedAt: Timestamp
  /** To the day. */
  readonly usedAt: Timestamp
  /** When it ends unless it is used before. */
  readonly endsAt: Timestamp
  readonly client: Client
}

/** There is no such session, it has ended, or it is another account's. */
export class SessionNotFound extends Schema.TaggedError<SessionNotFound>()("SessionNotFound", {}) {
  override get message(): string {
    return "The account has no such session"
  }
}

type ListFailure = VaultFailure | Projection.ProjectionBehind | Projection.ProjectionStopped | EventStore.StoreUnavailable

export class Sessions extends Context.Service<
  Sessions,
  {
    /**
     * Opens a session for an account, after whatever proof: every way to sign in ends here. The id is new, so that nobody can know it
     * before, and the session that the browser had ends.
     */
    readonly open: (
      opening: Opening,
      metadata?: Aggregate.Metadata
    ) => Effect.Effect<NewSession, Decisions.AccountNotFound | Decisions.AccountClosed | VaultFailure | Aggregate.Failure>
    /** The session of a token, and notes its use. `Unauthorized` does not say why a token is refused. */
    readonly authenticate: (token: string | undefined) => Effect.Effect<SignedIn, Unauthorized | Aggregate.Failure>
    /** The sessions of an account that can be used now, oldest first, including those that another process opened a moment ago. */
    readonly list: (accountId: string) => Effect.Effect<ReadonlyArray<ListedSession>, ListFailure>
    /** Ends a session of an account at every host. */
    readonly end: (
      accountId: string,
      sessionId: string,
      metadata?: Aggregate.Metadata
    ) => Effect.Effect<void, SessionNotFound | Aggregate.Failure>
    /** Ends all sessions of an account, and returns how many. */
    readonly endAll: (accountId: string, metadata?: Aggregate.Metadata) => Effect.Effect<number, ListFailure | Aggregate.Failure>
    /** Writes the end of a session that is past it. */
    readonly expire: (sessionId: string) => Effect.Effect<void, Aggregate.Failure>
    /** Sessions whose streams this host cannot read, and the status of its list: for `/ready`. */
    readonly refused: () => ReadonlyArray<Aggregate.StreamRefused>
    readonly listStatus: Effect.Effect<Projection.Status>
  }
>()("@millrace/core/accounts/Sessions") {
  static readonly layer: Layer.Layer<Sessions, never, Ledger | Vault | EventStore.EventStore | StateStore.StateStore> = Layer.effect(
    Sessions,
    Effect.suspend(() => make)
  )
}

// the list

const Listed = Schema.Struct({
  accountId: Schema.String,
  proof: Session.Proof,
  openedAt: Schema.Int,
  usedAt: Schema.Int,
  idleAt: Schema.Int,
  expiresAt: Schema.Int,
  sealedClient: Schema.NullOr(Schema.String)
})

/** The open sessions by id, and the ids of each account's, oldest first. */
const Open = Schema.Struct({
  sessions: Schema.HashMap(Schema.String, Listed),
  accounts: ByAccount.ByAccount
})
type Open = typeof Open.Type

export const sessionsByAccount: Projection.Definition<Open> = {
  name: "sessionsByAccount",
  version: 1,
  state: Open,
  initial: () => ({ sessions: HashMap.empty(), accounts: ByAccount.empty }),
  ...Projection.of<Open, Session.SessionEvent>(Session.Session, {
    SessionOpened: ({ accountId, expiresAt, idleAt, proof, sealedClient }, { at, id }, { accounts, sessions }) => ({
      sessions: HashMap.set(sessions, id, { accountId, proof, openedAt: at, usedAt: at, idleAt, expiresAt, sealedClient }),
      accounts: ByAccount.add(accounts, accountId, id)
    }),
    SessionUsed: ({ idleAt }, { at, id }, { accounts, sessions }) => ({
      sessions: HashMap.modify(sessions, id, (session) => ({ ...session, idleAt, usedAt: at })),
      accounts
    }),
    SessionEnded: (_, { id }, { accounts, sessions }) => ({
      sessions: HashMap.remove(sessions, id),
      accounts: Option.match(HashMap.get(sessions, id), {
        onNone: () => accounts,
        onSome: ({ accountId }) => ByAccount.remove(accounts, accountId, id)
      })
    })
  })
}

// the service

const PURPOSE = "session.client"
const CSRF = "csrf"
const ALL: ReadonlyArray<ApiKey.Scope> = ["read", "operations", "keys", "billing"]
const MAX_CLIENT = 300

const ClientText = Schema.fromJsonString(Schema.Struct({ userAgent: Schema.NullOr(Schema.String), address: Schema.NullOr(Schema.String) }))
const encodeClient = Schema.encodeSync(ClientText)
const decodeClient = Schema.decodeUnknownOption(ClientText)
const UNKNOWN: Client = { userAgent: null, address: null }

const cut = (text: string | null): string | null => text?.slice(0, MAX_CLIENT).toWellFormed() ?? null

// Shared, because it is frequent and has no fields
const UNAUTHORIZED = Effect.fail(new Unauthorized())

const make = Effect.gen(function* () {
  const ledger = yield* Ledger
  const vault = yield* Vault
  const random = yield* RandomBytes
  const sessions = yield* Aggregate.make(Session.Session)
  const listing = yield* Projection.make(sessionsByAccount)
  yield* Metrics.lag("sessions", listing.status)

  const replace = Effect.fnUntraced(function* (text: string | undefined, metadata: Aggregate.Metadata | undefined) {
    const token = text === undefined ? undefined : Token.parse(Session.PREFIX, text)
    if (token === undefined) return
    const { at, state } = yield* sessions.read(token.id)
    // Only who has the token may end it
    if (Session.admits(state, token.secret, at)) yield* sessions.execute(token.id, Session.end("replaced"), metadata)
  })

  const open: Sessions["Service"]["open"] = Effect.fn("Sessions.open")(function* (
    { accountId, client, current, proof, proofId },
    metadata
  ) {
    const { status } = (yield* ledger.read(accountId)).state
    if (status === "absent") return yield* new Decisions.AccountNotFound()
    if (status === "closed") return yield* new Decisions.AccountClosed()
    const sessionId = yield* newSessionId
    const secret = Token.newSecret(random)
    const text = encodeClient({ userAgent: cut(client.userAgent), address: cut(client.address) })
    const sealedClient = yield* vault.seal(ofAccount(accountId), PURPOSE, text)
    const terms = { accountId, secretHash: Token.hashOf(secret), proof, proofId, sealedClient }
    yield* sessions.execute(sessionId, Session.begin(terms), metadata)
    yield* replace(current, metadata)
    return { sessionId, token: Token.format({ id: sessionId, secret }) }
  })

  const authenticate: Sessions["Service"]["authenticate"] = Effect.fnUntraced(function* (text) {
    const token = text === undefined ? undefined : Token.parse(Session.PREFIX, text)
    if (token === undefined) return yield* UNAUTHORIZED
    const { at, state: session } = yield* sessions.read(token.id)
    if (!Session.admits(session, token.secret, at)) return yield* UNAUTHORIZED
    const { accountId, expiresAt, proof } = session
    const account = yield* ledger.read(accountId)
    const { status } = account.state
    if (status === "closed" || status === "absent") return yield* UNAUTHORIZED
    // A use that cannot be noted now is noted with the next one
    if (Session.isNoteworthy(session, at)) yield* Effect.ignore(sessions.execute(token.id, Session.use))
    const trial = ledger.trialOf(account)
    const csrfToken = Token.derive(token.secret, CSRF)
    const remaining = trial === undefined ? {} : { trialRemaining: trial.remaining }
    return { accountId, sessionId: token.id, scopes: ALL, proof, expiresAt, csrfToken, ...remaining }
  })

  const clientOf = (accountId: string, sealed: string | null) =>
    sealed === null
      ? Effect.succeed(UNKNOWN)
      : vault.open(ofAccount(accountId), PURPOSE, sealed).pipe(
          Effect.map((text) => Option.getOrElse(decodeClient(text), () => UNKNOWN)),
          Effect.catchTag("SubjectDestroyed", () => Effect.succeed(UNKNOWN))
        )

  const list: Sessions["Service"]["list"] = Effect.fn("Sessions.list")(function* (accountId) {
    const { state } = yield* listing.caughtUp()
    const now = yield* Clock.currentTimeMillis
    const open = ByAccount.idsOf(state.accounts, accountId)
      .map((sessionId) => ({ sessionId, ...HashMap.getUnsafe(state.sessions, sessionId) }))
      .filter((session) => now < Session.endOf(session))
    return yield* Effect.forEach(open, ({ openedAt, proof, sealedClient, sessionId, usedAt, ...session }) =>
      Effect.map(
        clientOf(accountId, sealedClient),
        (client): ListedSession => ({ sessionId, proof, openedAt, usedAt, endsAt: Session.endOf(session), client })
      )
    )
  })

  const end: Sessions["Service"]["end"] = Effect.fnUntraced(function* (accountId, sessionId, metadata) {
    if (!Session.isId(sessionId)) return yield* new SessionNotFound()
    const { at, state } = yield* sessions.read(sessionId)
    if (state.status === "absent" || state.accountId !== accountId || !Session.isLive(state, at)) return yield* new SessionNotFound()
    yield* sessions.execute(sessionId, Session.end("signedOut"), metadata)
  })

  const endAll: Sessions["Service"]["endAll"] = Effect.fn("Sessions.endAll")(function* (accountId, metadata) {
    const { state } = yield* listing.caughtUp()
    const ids = ByAccount.idsOf(state.accounts, accountId)
    yield* Effect.forEach(ids, (id) => sessions.execute(id, Session.end("signedOut"), metadata), { concurrency: 16 })
    return ids.length
  })

  const expire = (sessionId: string) => Effect.asVoid(sessions.execute(sessionId, Session.expire))

  return Sessions.of({ open, authenticate, list, end, endAll, expire, refused: sessions.refused, listStatus: listing.status })
})
