/** Operations on the API keys of the account that calls: issue, list, rotate, revoke. */
import { Clock, Effect, Redacted, Schema } from "effect"
import { ApiKeyNotFound, DEFAULT_SCOPES, LONGEST_OVERLAP, Scope } from "../accounts/ApiKey.ts"
import { KeyRing, type ListedKey } from "../accounts/KeyRing.ts"
import { Timestamp } from "../Timestamp.ts"
import type { Credential } from "../work/Contract.ts"
import * as Operation from "../work/Operation.ts"
import { InvalidInput, NotFound, UpstreamUnavailable } from "../work/OperationError.ts"

/** Keys of an account that can be used at a time. */
export const MOST_KEYS = 100
const LONGEST_NAME = 100
const SCOPES_OF = "A key gives to others only the scopes that it has, and for no longer than it lasts itself. A session gives any scope."

// what is shown

const KeyFields = {
  /** Names the key in lists. It stands in the key itself, and is no secret. */
  key_id: Schema.String,
  /** Null if it has none. */
  name: Schema.NullOr(Schema.String),
  scopes: Schema.Array(Scope),
  created_at: Timestamp,
  /** Null for a key that never ends. */
  expires_at: Schema.NullOr(Timestamp)
}
const KeyRecord = Schema.Struct({
  ...KeyFields,
  /** Whether this call was made with it. */
  current: Schema.Boolean
})
const NewKey = Schema.Struct({
  ...KeyFields,
  /** The key itself. It is shown this once. */
  key: Schema.String
})

const recordOf = ({ expiresAt, issuedAt, keyId, label, scopes }: ListedKey) => ({
  key_id: keyId,
  name: label,
  scopes,
  created_at: issuedAt,
  expires_at: expiresAt
})

const EXAMPLE = {
  key_id: "01kaymn7c5h2w8y4q9rtz3v6xd",
  name: "reports",
  scopes: DEFAULT_SCOPES,
  created_at: Date.UTC(2026, 10, 23, 9, 30),
  expires_at: Date.UTC(2027, 10, 23)
}
const EXAMPLE_KEY = "mr_live_01kaymn7c5h2w8y4q9rtz3v6xd_0123456789ABCDEFGHIJabcdefghijEXAMPL"

// what they share

const unavailable = ({ _tag }: { readonly _tag: string }) => new UpstreamUnavailable({ upstream: "keys", reason: _tag, isolated: true })

const notFound = () => new NotFound({ resource: "API key" })

/** The keys of an account that can be used now, oldest first. */
const usable = Effect.fnUntraced(function* (accountId: string) {
  const now = yield* Clock.currentTimeMillis
  const keys = yield* Effect.mapError(
    KeyRing.use(({ list }) => list(accountId)),
    unavailable
  )
  return keys.filter(({ expiresAt, revokedAt }) => revokedAt === null && (expiresAt === null || now < expiresAt))
})

/** The host itself may give anything. */
const isWithin = (scopes: ReadonlyArray<Scope>, credential: Credential | undefined): boolean =>
  credential === undefined || scopes.every((scope) => credential.scopes.includes(scope))

/** When a key that a credential gives ends at the latest; null for never. A session's end bounds nothing. */
const latestOf = (credential: Credential | undefined): Timestamp | null => (credential?.keyId === undefined ? null : credential.expiresAt)

const tooMany = new InvalidInput({ field: "keys", message: `an account may have ${MOST_KEYS} keys; revoke one first` })

/**
 * Revokes a new key that is one too many, and fails. Of keys that are issued at once, the first in the log stay, so an account never keeps
 * more than {@link MOST_KEYS}.
 */
const withinBound = Effect.fnUntraced(function* (accountId: string, keyId: string) {
  const place = (yield* usable(accountId)).findIndex((key) => key.keyId === keyId)
  if (place < MOST_KEYS) return
  yield* Effect.mapError(
    KeyRing.use(({ revoke }) => revoke(accountId, keyId)),
    unavailable
  )
  return yield* tooMany
})

/** A new key as it is answered. */
const shown = Effect.fnUntraced(function* (
  accountId: string,
  { key, keyId }: { readonly key: Redacted.Redacted<string>; readonly keyId: string }
) {
  const listed = (yield* usable(accountId)).find((other) => other.keyId === keyId)
  if (listed === undefined) return yield* notFound()
  return { data: { ...recordOf(listed), key: Redacted.value(key) } }
})

// the operations

export const list = Operation.make("keys.list", {
  summary: "List the API keys of the account that can be used",
  description: "Oldest first. Keys that were revoked or have expired are not listed. The keys themselves are never shown again.",
  price: 0,
  route: { method: "GET", path: "/account/keys" },
  success: Schema.Struct({ keys: Schema.Array(KeyRecord) }),
  local: true,
  run: Effect.fnUntraced(function* (_input, { accountId, credential }) {
    const keys = yield* usable(accountId)
    return { data: { keys: keys.map((key) => ({ ...recordOf(key), current: key.keyId === credential?.keyId })) } }
  }),
  example: { input: {}, data: { keys: [{ ...EXAMPLE, current: true }] } }
})

export const issue = Operation.make("keys.issue", {
  summary: "Issue an API key",
  description: `The key is shown once. ${SCOPES_OF} At most ${MOST_KEYS} keys of an account can be used at a time.`,
  price: 0,
  route: {
    method: "POST",
    path: "/account/keys",
    body: {
      /** The owner's name for the key, kept sealed. */
      name: Schema.optionalKey(Schema.String.check(Schema.isMinLength(1), Schema.isMaxCodePoints(LONGEST_NAME))),
      /** `read` and `operations` by default. */
      scopes: Schema.optionalKey(Schema.NonEmptyArray(Scope).check(Schema.isMaxLength(Scope.literals.length))),
      /** Never by default, or when the key ends that issues it. */
      expires_at: Schema.optionalKey(Timestamp)
    },
    status: 201
  },
  success: NewKey,
  secret: ["key"],
  unkept: true,
  local: true,
  check: Effect.fnUntraced(function* ({ expires_at, scopes = DEFAULT_SCOPES }, { credential }) {
    if (!isWithin(scopes, credential))
      return yield* new InvalidInput({
        field: "scopes",
        message: `your key can give only the scopes that it has: ${credential?.scopes.join(", ")}`
      })
    const latest = latestOf(credential)
    if (latest !== null && expires_at !== undefined && expires_at > latest)
      return yield* new InvalidInput({ field: "expires_at", message: "a key that your key issues cannot last longer than your key" })
    if (expires_at !== undefined && expires_at <= (yield* Clock.currentTimeMillis))
      return yield* new InvalidInput({ field: "expires_at", message: "the time has passed" })
  }),
  run: Effect.fnUntraced(function* ({ expires_at, name, scopes = DEFAULT_SCOPES }, { accountId, credential, requestId }) {
    const expiresAt = expires_at ?? latestOf(credential)
    const terms = { scopes, ...(expiresAt === null ? {} : { expiresAt }), ...(name === undefined ? {} : { label: name }) }
    const issued = yield* Effect.mapError(
      KeyRing.use(({ issue }) => issue(accountId, terms, { $correlationId: requestId })),
      unavailable
    )
    yield* withinBound(accountId, issued.keyId)
    return yield* shown(accountId, issued)
  }),
  example: {
    input: { name: "reports", scopes: ["read", "operations"], expires_at: EXAMPLE.expires_at },
    data: { ...EXAMPLE, key: EXAMPLE_KEY }
  }
})

const params = { key: Schema.String.check(Schema.isMinLength(1), Schema.isMaxCodePoints(100)) }

/** Fails unless the account has a usable key of this id. */
const own = Effect.fnUntraced(function* (accountId: string, keyId: string) {
  const found = (yield* usable(accountId)).find((key) => key.keyId === keyId)
  return found ?? (yield* notFound())
})

export const revoke = Operation.make("keys.revoke", {
  summary: "Revoke an API key",
  description: "From now on it is refused at every host. A key may revoke itself.",
  price: 0,
  route: { method: "DELETE", path: "/account/keys/:key", params },
  success: Schema.Struct({ key_id: Schema.String, revoked: Schema.Literal(true) }),
  local: true,
  run: ({ key }, { accountId, requestId }) =>
    KeyRing.use(({ revoke }) => revoke(accountId, key, { $correlationId: requestId })).pipe(
      Effect.mapError((error) => (error instanceof ApiKeyNotFound ? notFound() : unavailable(error))),
      Effect.as({ data: { key_id: key, revoked: true } } as const)
    ),
  example: { input: { key: EXAMPLE.key_id }, data: { key_id: EXAMPLE.key_id, revoked: true } }
})

export const rotate = Operation.make("keys.rotate", {
  summary: "Replace an API key by a new one",
  description: `The new key has the name, scopes and expiry of the old one, and is shown once. The old one can still be used for \`overlap\` seconds. ${SCOPES_OF}`,
  price: 0,
  route: {
    method: "POST",
    path: "/account/keys/:key/rotate",
    params,
    body: {
      /** Seconds until the old key ends: 0 by default, at most seven days. */
      overlap: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: LONGEST_OVERLAP / 1_000 })))
    },
    status: 201
  },
  success: NewKey,
  secret: ["key"],
  unkept: true,
  local: true,
  check: Effect.fnUntraced(function* ({ key, overlap = 0 }, { accountId, credential }) {
    const { expiresAt, keyId, scopes } = yield* own(accountId, key)
    // Whoever rotates a key gets to know the new one
    const latest = keyId === credential?.keyId ? null : latestOf(credential)
    if (!isWithin(scopes, credential) || (latest !== null && (expiresAt === null || expiresAt > latest)))
      return yield* new InvalidInput({ field: "key", message: "that key has scopes that your key lacks, or lasts longer; use a session" })
    // Both keys count until the old one ends. Rotations at once may exceed the bound by their number
    if (overlap > 0 && (yield* usable(accountId)).length >= MOST_KEYS) return yield* tooMany
  }),
  run: Effect.fnUntraced(function* ({ key, overlap = 0 }, { accountId, requestId }) {
    const rotated = yield* KeyRing.use(({ rotate }) => rotate(accountId, key, overlap * 1_000, { $correlationId: requestId })).pipe(
      Effect.mapError((error) => (error instanceof ApiKeyNotFound ? notFound() : unavailable(error)))
    )
    return yield* shown(accountId, rotated)
  }),
  example: { input: { key: EXAMPLE.key_id, overlap: 3_600 }, data: { ...EXAMPLE, key: EXAMPLE_KEY } }
})
