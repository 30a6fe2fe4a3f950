/** An operation that reads an account's balance, its lots, and its usage in this month. */
import { Effect, Schema } from "effect"
import { type Usage, UsageBook } from "../billing/Usage.ts"
import * as Credits from "../Credits.ts"
import { Ledger } from "../ledger/Ledger.ts"
import { LotSource } from "../ledger/Lots.ts"
import { Timestamp } from "../Timestamp.ts"
import * as Operation from "../work/Operation.ts"
import { NotFound, UpstreamUnavailable } from "../work/OperationError.ts"

const Used = {
  /** Calls that were charged. */
  calls: Schema.Int,
  /** The charges of these calls. */
  credits: Credits.CreditsFromDecimal,
  /** Refunds in this month, of charges of this month or an earlier one. */
  refunded: Credits.CreditsFromDecimal,
  /** Calls that failed or were cancelled, so they were free. */
  uncharged_calls: Schema.Int
}

/** Amounts in credits, with at most three decimals. */
export const AccountBilling = Schema.Struct({
  /** Available credits: the sum of the lots' remaining credits. */
  balance: Credits.CreditsFromDecimal,
  /** Credits held by running calls and jobs. */
  held: Credits.CreditsFromDecimal,
  /** Owed after a chargeback. No priced call runs until it is repaid. */
  debt: Credits.CreditsFromDecimal,
  /** Lots in the order in which they are spent. */
  lots: Schema.Array(
    Schema.Struct({
      lot_id: Schema.String,
      source: LotSource,
      remaining: Credits.CreditsFromDecimal,
      /** Null for a lot that never expires. */
      expires_at: Schema.NullOr(Timestamp)
    })
  ),
  /** Usage in the current month of UTC. Free calls are not counted. */
  usage: Schema.Struct({
    /** Such as `2026-11`. */
    month: Schema.String,
    /** The usage is complete up to this time. */
    as_of: Timestamp,
    ...Used,
    /** Used operations, sorted by key. */
    operations: Schema.Array(
      Schema.Struct({
        operation: Schema.String,
        ...Used,
        /** Charged units: calls, or for example addresses. */
        units: Schema.Int
      })
    )
  })
})

const unavailable = ({ _tag }: { readonly _tag: string }) => new UpstreamUnavailable({ upstream: "ledger", reason: _tag })

const usageOf = ({ month, asOf, operations }: Omit<Usage, "days">): (typeof AccountBilling.Type)["usage"] => {
  const used = operations.map(({ operation, calls, units, charged, refunded, uncharged }) => ({
    operation,
    calls,
    units,
    credits: charged,
    refunded,
    uncharged_calls: uncharged
  }))
  const sum = (count: (of: (typeof used)[number]) => number) => used.reduce((total, of) => total + count(of), 0)
  return {
    month,
    as_of: asOf,
    calls: sum(({ calls }) => calls),
    credits: Credits.sum(used.map(({ credits }) => credits)),
    refunded: Credits.sum(used.map(({ refunded }) => refunded)),
    uncharged_calls: sum(({ uncharged_calls }) => uncharged_calls),
    operations: used
  }
}

export const read = Operation.make("account.billing", {
  summary: "Balance, holds, debt and credit lots of the account, and its use this month",
  price: 0,
  route: { method: "GET", path: "/account/billing" },
  success: AccountBilling,
  local: true,
  run: Effect.fnUntraced(function* (_input, { accountId }) {
    const ledger = yield* Ledger
    const book = yield* UsageBook
    const { available, held, debt, lots } = yield* Effect.mapError(ledger.balance(accountId), (error) =>
      error._tag === "AccountNotFound" ? new NotFound({ resource: "account" }) : unavailable(error)
    )
    const usage = yield* Effect.mapError(book.read(accountId), unavailable)
    return {
      data: {
        balance: available,
        held,
        debt,
        lots: lots.map(({ lotId, source, left, expiresAt }) => ({ lot_id: lotId, source, remaining: left, expires_at: expiresAt })),
        usage: usageOf(usage)
      }
    }
  }),
  example: {
    input: {},
    data: {
      balance: Credits.of(198_900),
      held: Credits.zero,
      debt: Credits.zero,
      lots: [{ lot_id: "lot_01JAGVQG6ZJ5YH8W3N0T4RQX2K", source: "signup", remaining: Credits.of(198_900), expires_at: null }],
      usage: usageOf({
        month: "2026-11",
        asOf: Date.UTC(2026, 10, 21, 12),
        operations: [
          { operation: "bin.lookup", calls: 2, units: 2, charged: Credits.of(1_000), refunded: Credits.of(500), uncharged: 1 },
          { operation: "email.validateBatch", calls: 1, units: 1, charged: Credits.of(600), refunded: Credits.zero, uncharged: 0 }
        ]
      })
    }
  }
})
