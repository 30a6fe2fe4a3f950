/** Acts on API keys, for the command line and for hosts. */
import { type ApiKey, KeyRing, Ledger } from "@millrace/core"
import type { Aggregate } from "@millrace/event-sourcing"
import { Effect, Redacted } from "effect"

export interface KeyOptions {
  /** What the key may do: everything but administration by default. */
  readonly scopes?: ReadonlyArray<ApiKey.Scope>
  /** What its owner calls it; stored sealed. */
  readonly label?: string
  /** Never by default. */
  readonly expiresAt?: Date
}

/** Issues a key. Its text is shown this once. */
export const issue = Effect.fnUntraced(function* (account: string, { expiresAt, ...options }: KeyOptions, metadata: Aggregate.Metadata) {
  const issued = yield* KeyRing.use((keys) =>
    keys.issue(account, { ...options, ...(expiresAt === undefined ? {} : { expiresAt: expiresAt.getTime() }) }, metadata)
  )
  return { keyId: issued.keyId, key: Redacted.value(issued.key) }
})

/** All keys that an account ever had, oldest first. */
export const list = Effect.fnUntraced(function* (account: string) {
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
export const revoke = (account: string, keyId: string, metadata: Aggregate.Metadata) =>
  KeyRing.use((keys) => keys.revoke(account, keyId, metadata))

export const dateOf = (millis: number | null | undefined): Date | null =>
  millis === null || millis === undefined ? null : new Date(millis)
