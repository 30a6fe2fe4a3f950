/** Accounts for operators: in pages, with what they have now. Amounts in credits, times in ISO 8601. */
import { Credits, Ledger, Registration } from "@millrace/core"
import type { OperatorRoutes } from "@millrace/http"
import { Effect, Schema } from "effect"
import { AccountList, type ListedAccount } from "./AccountList.ts"

/** Accounts of a page. */
const LIMIT = 25

/** Accounts that are read at once. */
const AT_ONCE = 8

export const QUERY = {
  /** Part of an account's id, or the host's own id of it. */
  q: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(200))),
  /** `next` of the page before. */
  before: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })))
}

interface Asked {
  readonly q?: string
  readonly before?: number
}

export const make: Effect.Effect<OperatorRoutes.View["read"], never, AccountList | Ledger | Registration> = Effect.gen(function* () {
  const accounts = yield* AccountList
  const ledger = yield* Ledger
  const registration = yield* Registration

  const shown = ({ accountId, lastAt, openedAt }: ListedAccount) =>
    ledger.balance(accountId).pipe(
      Effect.map(({ available, debt, held, status }) => ({
        status: status as string,
        ...{ available: Credits.toDecimal(available), reserved: Credits.toDecimal(held), debt: Credits.toDecimal(debt) }
      })),
      // One that this host cannot read does not hide the others
      Effect.catchTag(["AccountNotFound", "StreamRefused"], () =>
        Effect.succeed({ status: "unreadable", available: null, reserved: null, debt: null })
      ),
      Effect.map((now) => ({
        account_id: accountId,
        ...now,
        opened_at: new Date(openedAt).toISOString(),
        last_activity_at: new Date(lastAt).toISOString()
      }))
    )

  /** The account that has exactly this id, or that the host calls so. */
  const named = (name: string) =>
    registration.resolve(name).pipe(
      Effect.flatMap(accounts.find),
      Effect.catchTag("AccountNotFound", () => Effect.undefined)
    )

  return (input: object) =>
    Effect.gen(function* () {
      const { before, q = "" } = input as Asked
      const only = q === "" ? undefined : yield* named(q)
      const query = { limit: LIMIT, ...(q === "" ? {} : { part: q }), ...(before === undefined ? {} : { before }) }
      const page = only === undefined ? yield* accounts.page(query) : { accounts: [only], next: null }
      return { accounts: yield* Effect.forEach(page.accounts, shown, { concurrency: AT_ONCE }), next: page.next }
    })
})
