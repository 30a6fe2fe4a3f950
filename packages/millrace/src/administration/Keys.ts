/** Acts on API keys. */
import { type ApiKey, KeyRing, Ledger } from "@millrace/core"
import type { Aggregate } from "@millrace/event-sourcing"
import { Effect, Redacted } from "effect"
import { resolve } from "./Accounts.ts"
import { type Act, dateOf } from "./Act.ts"

export interface KeyOptions {
  /** What the key may do: `operations` and `read` by default. */
  readonly scopes?: ReadonlyArray<ApiKey.Scope>
  /** What its owner calls it; stored sealed. */
  readonly label?: string
  /** Never by default. */
  readonly expiresAt?: Date
}

/** A key as it is listed. */
export interface ListedKey {
  readonly keyId: string
  readonly scopes: ReadonlyArray<ApiKey.Scope>
  readonly label: string | null
  readonly issuedAt: Date
  readonly expiresAt: Date | null
  readonly revokedAt: Date | null
}

/** Issues a key. Its text is shown this once. */
export const issue = (
  name: string,
  { expiresAt, label, scopes }: KeyOptions,
  metadata: Aggregate.Metadata
): Act<{ readonly keyId: string; readonly key: string }> => {
  const options = {
    ...(scopes === undefined ? {} : { scopes }),
    ...(label === undefined ? {} : { label }),
    ...(expiresAt === undefined ? {} : { expiresAt: expiresAt.getTime() })
  }
  return Effect.gen(function* () {
    const keys = yield* KeyRing
    const { key, keyId } = yield* keys.issue(yield* resolve(name), options, metadata)
    return { keyId, key: Redacted.value(key) }
  })
}

/** All keys that an account ever had, oldest first. */
export const list = (name: string): Act<ReadonlyArray<ListedKey>> =>
  Effect.gen(function* () {
    const account = yield* resolve(name)
    // Fails where there is no such account
    yield* Ledger.use((ledger) => ledger.balance(account))
    const listed = yield* KeyRing.use((keys) => keys.list(account))
    return listed.map(({ expiresAt, issuedAt, keyId, label, revokedAt, scopes }) => ({
      ...{ keyId, scopes, label },
      issuedAt: new Date(issuedAt),
      expiresAt: dateOf(expiresAt),
      revokedAt: dateOf(revokedAt)
    }))
  })

/** Revokes a key for ever. */
export const revoke = (name: string, keyId: string, metadata: Aggregate.Metadata): Act<void> =>
  Effect.flatMap(resolve(name), (account) => KeyRing.use((keys) => keys.revoke(account, keyId, metadata)))
