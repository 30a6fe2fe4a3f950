/**
 * The API keys of all accounts: issued, revoked, listed, and used to authenticate. Each key has a stream of its own, and the store confirms
 * its end for each call. So a key that another process issued or revoked counts at once.
 */
import { Aggregate, type EventStore, Projection, type StateStore } from "@millrace/event-sourcing"
import { Context, Effect, HashMap, Layer, type Redacted, Schema } from "effect"
import { newKeyId } from "../Ids.ts"
import type { Account } from "../ledger/Account.ts"
import * as Decisions from "../ledger/Decisions.ts"
import { Ledger } from "../ledger/Ledger.ts"
import * as Metrics from "../observability/Metrics.ts"
import type { Timestamp } from "../Timestamp.ts"
import { RandomBytes } from "../vault/RandomBytes.ts"
import { ofAccount, Vault, type VaultFailure } from "../vault/Vault.ts"
import * as ApiKey from "./ApiKey.ts"
import * as ByAccount from "./ByAccount.ts"

/** There is no key, or it is malformed, unknown, wrong, revoked, expired, or of a closed account. */
export class Unauthorized extends Schema.TaggedError<Unauthorized>()("Unauthorized", {}) {
  override get message(): string {
    return "The API key is missing or invalid"
  }
}

/** The account that a key belongs to, and what the key may be used for. */
export interface Authenticated {
  readonly accountId: string
  readonly keyId: string
  readonly scopes: ReadonlyArray<ApiKey.Scope>
  /** When the key ends, milliseconds since 1970; null if it never does. */
  readonly expiresAt: Timestamp | null
  /** The calls that remain of the account's trial; absent if it is not on trial. */
  readonly trialRemaining?: number
}

/** Authenticates the text of a key. */
export interface Authenticate {
  (key: string | undefined): Effect.Effect<Authenticated, Unauthorized | Aggregate.Failure>
  /** The same at once; undefined where the store must be waited for, and for every key that is refused. */
  readonly now?: (key: string) => Authenticated | undefined
}

export interface IssueOptions {
  /** `DEFAULT_SCOPES` by default. */
  readonly scopes?: ReadonlyArray<ApiKey.Scope>
  /** Milliseconds since 1970; never by default. */
  readonly expiresAt?: Timestamp
  /** The owner's name for the key. */
  readonly label?: string
}

/** A new key. It can be seen this once. */
export interface NewKey {
  readonly keyId: string
  readonly key: Redacted.Redacted<string>
}

/** A key as its owner sees it in a list. */
export interface ListedKey {
  readonly keyId: string
  readonly scopes: ReadonlyArray<ApiKey.Scope>
  readonly issuedAt: Timestamp
  readonly expiresAt: Timestamp | null
  readonly revokedAt: Timestamp | null
  /** Null also once the account was erased. */
  readonly label: string | null
}

export class KeyRing extends Context.Service<
  KeyRing,
  {
    /** Issues a key. Its text is returned only here. */
    readonly issue: (
      accountId: string,
      options?: IssueOptions,
      metadata?: Aggregate.Metadata
    ) => Effect.Effect<NewKey, ApiKey.ExpiryPast | Decisions.AccountNotFound | Decisions.AccountClosed | VaultFailure | Aggregate.Failure>
    /** Revokes a key for ever. Revoking again changes nothing. */
    readonly revoke: (
      accountId: string,
      keyId: string,
      metadata?: Aggregate.Metadata
    ) => Effect.Effect<void, ApiKey.ApiKeyNotFound | Aggregate.Failure>
    /**
     * Issues a key with the label, the scopes and the expiry of another, which ends after `overlap` milliseconds. Only one key can take the
     * place of another: of several rotations at once, the others fail with `ApiKeyNotFound`.
     */
    readonly rotate: (
      accountId: string,
      keyId: string,
      overlap: number,
      metadata?: Aggregate.Metadata
    ) => Effect.Effect<
      NewKey,
      ApiKey.ApiKeyNotFound | ApiKey.ExpiryPast | Decisions.AccountNotFound | Decisions.AccountClosed | VaultFailure | Aggregate.Failure
    >
    /** All keys that an account ever had, oldest first, including those that another process issued a moment ago. */
    readonly list: (
      accountId: string
    ) => Effect.Effect<
      ReadonlyArray<ListedKey>,
      VaultFailure | Projection.ProjectionBehind | Projection.ProjectionStopped | EventStore.StoreUnavailable
    >
    /** The account of a key. `Unauthorized` does not say why a key is refused. */
    readonly authenticate: Authenticate
    /** Keys whose streams this host cannot read, and the status of its list of keys: for `/ready`. */
    readonly refused: () => ReadonlyArray<Aggregate.StreamRefused>
    readonly listStatus: Effect.Effect<Projection.Status>
  }
>()("@millrace/core/accounts/KeyRing") {
  static readonly layer: Layer.Layer<KeyRing, never, Ledger | Vault | EventStore.EventStore | StateStore.StateStore> = Layer.effect(
    KeyRing,
    Effect.suspend(() => make)
  )
}

// the list

const Listed = Schema.Struct({
  scopes: Schema.Array(ApiKey.Scope),
  issuedAt: Schema.Int,
  expiresAt: Schema.NullOr(Schema.Int),
  revokedAt: Schema.NullOr(Schema.Int),
  sealedLabel: Schema.NullOr(Schema.String)
})

/** All keys by id, and the ids of each account's, oldest first. */
const Keys = Schema.Struct({
  keys: Schema.HashMap(Schema.String, Listed),
  accounts: ByAccount.ByAccount
})
type Keys = typeof Keys.Type

export const keysByAccount: Projection.Definition<Keys> = {
  name: "keysByAccount",
  version: 2,
  state: Keys,
  initial: () => ({ keys: HashMap.empty(), accounts: ByAccount.empty }),
  ...Projection.of<Keys, ApiKey.ApiKeyEvent>(ApiKey.ApiKey, {
    ApiKeyIssued: ({ accountId, scopes, expiresAt, sealedLabel }, { at, id: keyId }, { accounts, keys }) => ({
      keys: HashMap.set(keys, keyId, { scopes, issuedAt: at, expiresAt, revokedAt: null, sealedLabel }),
      accounts: ByAccount.add(accounts, accountId, keyId)
    }),
    ApiKeyRevoked: (_, { at, id: keyId }, { accounts, keys }) => ({
      keys: HashMap.modify(keys, keyId, (key) => ({ ...key, revokedAt: at })),
      accounts
    }),
    ApiKeyRotated: ({ endsAt }, { id: keyId }, { accounts, keys }) => ({
      keys: HashMap.modify(keys, keyId, (key) => ({ ...key, expiresAt: Math.min(key.expiresAt ?? endsAt, endsAt) })),
      accounts
    })
  })
}

const PURPOSE = "apiKey.label"
// Shared, because it is the most frequent failure and has no fields
const UNAUTHORIZED = Effect.fail(new Unauthorized())

const make = Effect.gen(function* () {
  const ledger = yield* Ledger
  const vault = yield* Vault
  const random = yield* RandomBytes
  const keys = yield* Aggregate.make(ApiKey.ApiKey)
  const listing = yield* Projection.make(keysByAccount)
  yield* Metrics.lag("keys", listing.status)

  const issue = Effect.fn("KeyRing.issue")(function* (
    accountId: string,
    { scopes = ApiKey.DEFAULT_SCOPES, expiresAt, label }: IssueOptions = {},
    metadata?: Aggregate.Metadata
  ) {
    const { status } = (yield* ledger.read(accountId)).state
    if (status === "absent") return yield* new Decisions.AccountNotFound()
    if (status === "closed") return yield* new Decisions.AccountClosed()
    const keyId = yield* newKeyId
    const secret = ApiKey.newSecret(random)
    const sealedLabel = label === undefined ? null : yield* vault.seal(ofAccount(accountId), PURPOSE, label)
    const issued = { accountId, hash: ApiKey.hashOf(secret), scopes: [...new Set(scopes)], expiresAt: expiresAt ?? null, sealedLabel }
    yield* keys.execute(keyId, ApiKey.issue(issued), metadata)
    return { keyId, key: ApiKey.format({ keyId, secret }) }
  })

  const revoke: KeyRing["Service"]["revoke"] = (accountId, keyId, metadata) =>
    ApiKey.isId(keyId)
      ? Effect.asVoid(keys.execute(keyId, ApiKey.revoke(keyId, accountId), metadata))
      : Effect.fail(new ApiKey.ApiKeyNotFound({ keyId }))

  const rotate: KeyRing["Service"]["rotate"] = Effect.fn("KeyRing.rotate")(function* (accountId, keyId, overlap, metadata) {
    const { at, state: old } = yield* ApiKey.isId(keyId) ? keys.read(keyId) : Effect.fail(new ApiKey.ApiKeyNotFound({ keyId }))
    if (!ApiKey.isUsable(old, at) || old.accountId !== accountId || old.successor !== undefined)
      return yield* new ApiKey.ApiKeyNotFound({ keyId })
    const { expiresAt, scopes, sealedLabel } = old
    const label = yield* labelOf(accountId, sealedLabel)
    const terms = { scopes, ...(expiresAt === null ? {} : { expiresAt }), ...(label === null ? {} : { label }) }
    // The new key first: a process that dies in between leaves a key that nobody knows, not an account without a key
    const issued = yield* issue(accountId, terms, metadata)
    return yield* keys.execute(keyId, ApiKey.rotate(keyId, accountId, issued.keyId, overlap), metadata).pipe(
      Effect.as(issued),
      Effect.catchTag("ApiKeyNotFound", (error) => Effect.andThen(revoke(accountId, issued.keyId, metadata), Effect.fail(error)))
    )
  })

  const list = Effect.fn("KeyRing.list")(function* (accountId: string) {
    const { state } = yield* listing.caughtUp()
    const listed = ByAccount.idsOf(state.accounts, accountId)
    return yield* Effect.forEach(
      listed.map((keyId) => ({ keyId, ...HashMap.getUnsafe(state.keys, keyId) })),
      ({ sealedLabel, ...key }) => Effect.map(labelOf(accountId, sealedLabel), (label): ListedKey => ({ ...key, label }))
    )
  })

  const labelOf = (accountId: string, sealedLabel: string | null) =>
    sealedLabel === null
      ? Effect.succeed(null)
      : Effect.catchTag(vault.open(ofAccount(accountId), PURPOSE, sealedLabel), "SubjectDestroyed", () => Effect.succeed(null))

  return KeyRing.of({
    ...{ issue, revoke, rotate, list },
    authenticate: authenticator(keys, ledger),
    refused: keys.refused,
    listStatus: listing.status
  })
})

type Reads<State> = Pick<Aggregate.Aggregate<State, never>, "read" | "readNow" | "assume">

const AT_ONCE = { concurrency: "unbounded" } as const

/** Authenticates by the streams of the key and of its account, as the store has them now. */
const authenticator = (keys: Reads<ApiKey.ApiKey>, ledger: Pick<Ledger["Service"], "read" | "readNow" | "trialOf">): Authenticate => {
  /** The key and its account. Where the key in memory is admitted, the store is asked for both at once, in one round trip. */
  const read = ({ keyId, secret }: ApiKey.Parts) => {
    const admitted = (key: Aggregate.Current<ApiKey.ApiKey>) =>
      ApiKey.admits(key.state, secret, key.at) ? Effect.succeed(key.state) : UNAUTHORIZED
    const key = Effect.flatMap(keys.read(keyId), admitted)
    const assumed = keys.assume(keyId)
    if (assumed !== undefined && ApiKey.admits(assumed.state, secret, assumed.at))
      return Effect.all([key, ledger.read(assumed.state.accountId)], AT_ONCE)
    return Effect.flatMap(key, (key) => Effect.map(ledger.read(key.accountId), (account) => [key, account] as const))
  }

  /** The caller of a key that is admitted, unless its account has none. */
  const callerOf = (keyId: string, key: ApiKey.Usable, account: Aggregate.Current<Account>): Authenticated | undefined => {
    const { status } = account.state
    if (status === "closed" || status === "absent") return undefined
    const { accountId, expiresAt, scopes } = key
    const trial = ledger.trialOf(account)
    const caller = { accountId, keyId, scopes, expiresAt }
    return trial === undefined ? caller : { ...caller, trialRemaining: trial.remaining }
  }

  /** The caller at once, where the store confirms at once that the key and the account in memory are the newest. */
  const admittedNow = ({ keyId, secret }: ApiKey.Parts): Authenticated | undefined => {
    const key = keys.readNow(keyId)
    if (key === undefined || !ApiKey.admits(key.state, secret, key.at)) return undefined
    const account = ledger.readNow(key.state.accountId)
    return account && callerOf(keyId, key.state, account)
  }

  const authenticate = (text: string | undefined): ReturnType<Authenticate> => {
    const parts = text === undefined ? undefined : ApiKey.parse(text)
    if (parts === undefined) return UNAUTHORIZED
    return Effect.suspend((): ReturnType<Authenticate> => {
      const now = admittedNow(parts)
      if (now !== undefined) return Effect.succeed(now)
      return Effect.flatMap(read(parts), ([key, account]) => {
        const caller = callerOf(parts.keyId, key, account)
        return caller === undefined ? UNAUTHORIZED : Effect.succeed(caller)
      })
    })
  }

  const authenticateNow = (text: string): Authenticated | undefined => {
    const parts = ApiKey.parse(text)
    return parts && admittedNow(parts)
  }

  return Object.assign(authenticate, { now: authenticateNow })
}
