/** What an account has to spend, and where it comes from. */
import { Effect, Schema } from "effect"
import { CreditsFromDecimal } from "../Credits.ts"
import { Ledger } from "../ledger/Ledger.ts"
import { LotSource } from "../ledger/Lots.ts"
import { Timestamp } from "../Timestamp.ts"
import * as Operation from "./Operation.ts"
import { NotFound, UpstreamUnavailable } from "./OperationError.ts"

/** Amounts in credits, with at most three decimals. */
export const AccountBilling = Schema.Struct({
  /** Free to be spent: the sum of what remains of the lots. */
  balance: CreditsFromDecimal,
  /** Taken by calls that are running. */
  held: CreditsFromDecimal,
  /** Owed since a payment was taken back; nothing priced runs until it is repaid. */
  debt: CreditsFromDecimal,
  /** In the order in which they are used. */
  lots: Schema.Array(
    Schema.Struct({
      lot_id: Schema.String,
      source: LotSource,
      remaining: CreditsFromDecimal,
      /** Null: never. */
      expires_at: Schema.NullOr(Timestamp)
    })
  )
})

export const read = Operation.make("account.billing", {
  summary: "Balance, holds, debt and credit lots of the account",
  route: { method: "GET", path: "/account/billing" },
  success: AccountBilling,
  run: Effect.fnUntraced(function* (_input, { accountId }) {
    const ledger = yield* Ledger
    const { available, held, debt, lots } = yield* Effect.mapError(ledger.balance(accountId), (error) =>
      error._tag === "AccountNotFound"
        ? new NotFound({ resource: "account" })
        : new UpstreamUnavailable({ upstream: "ledger", reason: error._tag })
    )
    return {
      data: {
        balance: available,
        held,
        debt,
        lots: lots.map(({ lotId, source, left, expiresAt }) => ({ lot_id: lotId, source, remaining: left, expires_at: expiresAt }))
      }
    }
  })
})
