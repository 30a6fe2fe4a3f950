/**
 * The names under which accounts submit coupons. An author is a random id, the same for everything that an account submits. Only a text that
 * is sealed under the account's key leads from the account to it, and nothing leads back. So once the account is erased, nobody can tell what
 * it submitted.
 */
import { StateStore } from "@millrace/event-sourcing"
import { Effect } from "effect"
import { RandomBytes } from "../vault/RandomBytes.ts"
import { ofAccount, Vault, type VaultFailure } from "../vault/Vault.ts"

const SPACE = "couponAuthors"
const PURPOSE = "coupon.author"

export type Failure = VaultFailure | StateStore.StateUnavailable

/** Finds the author of an account, or makes it at the first use. */
export const make = Effect.gen(function* () {
  const vault = yield* Vault
  const state = yield* StateStore.StateStore
  const random = yield* RandomBytes
  const authorOf = (accountId: string): Effect.Effect<string, Failure> =>
    Effect.gen(function* () {
      const subject = ofAccount(accountId)
      const entry = yield* state.get(SPACE, accountId)
      if (entry !== undefined) return yield* vault.open(subject, PURPOSE, Buffer.from(entry.value).toString())
      const author = Buffer.from(random(16)).toString("base64url")
      const sealed = Buffer.from(yield* vault.seal(subject, PURPOSE, author))
      // Another call may have been first
      return yield* state.write([{ _tag: "put", space: SPACE, key: accountId, value: sealed, expected: "absent" }]).pipe(
        Effect.as(author),
        Effect.catchTag("StateConflict", () => authorOf(accountId))
      )
    })
  return authorOf
})
