import { Credits, KeyRing, Ledger, Registration } from "@millrace/core"
import { Effect, Redacted } from "effect"
import type { Run } from "./Host.ts"

export interface Accounts {
  readonly open: (options: { readonly email: string; readonly verified?: boolean }) => Promise<string>
  readonly issueKey: (account: string) => Promise<{ keyId: string; key: string }>
  readonly balance: (account: string) => Promise<number>
}
export const accountsOf = (run: Run<Registration | KeyRing | Ledger>): Accounts => ({
  open: ({ email, verified }) =>
    run(
      Effect.gen(function* () {
        const registration = yield* Registration
        const account = yield* registration.open(email)
        if (verified === true) yield* registration.verify(account)
        return account
      })
    ),
  issueKey: (account) =>
    run(
      Effect.map(
        KeyRing.use((keys) => keys.issue(account)),
        ({ keyId, key }) => ({ keyId, key: Redacted.value(key) })
      )
    ),
  balance: (account) =>
    run(
      Effect.map(
        Ledger.use((ledger) => ledger.balance(account)),
        ({ available }) => Credits.toDecimal(available)
      )
    )
})
