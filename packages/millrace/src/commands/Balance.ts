/** `balance`: what an account has, now or at a past time. */
import { Credits, Ledger, toIso } from "@millrace/core"
import { Effect, Layer, Option } from "effect"
import * as Administration from "../Administration.ts"
import * as StoreUrl from "../StoreUrl.ts"

export const balance = Administration.query(
  "balance",
  "Show what an account has: available, held, owed, by lot and by hold; in credits",
  {
    "millrace balance --account acc_01M7YKD46JCP6VGMKADN3JSPJP": "Show the current balance",
    "millrace balance --account acc_01M7YKD46JCP6VGMKADN3JSPJP --at 2026-12-31T00:00:00Z": "Show the balance at the end of the year"
  },
  (store) => Layer.provide(Ledger.layer(), StoreUrl.logLayer(store)),
  { account: Administration.account, at: Administration.time("at", "As of this instant; now, when left out") },
  Effect.fnUntraced(function* ({ account, at }) {
    const ledger = yield* Ledger
    const balance = yield* ledger.balance(account, Option.getOrUndefined(at))
    return {
      account,
      available: Credits.toDecimal(balance.available),
      held: Credits.toDecimal(balance.held),
      debt: Credits.toDecimal(balance.debt),
      at: toIso(balance.at),
      lots: balance.lots.map(({ lotId, source, left, expiresAt }) => ({
        lot: lotId,
        source,
        remaining: Credits.toDecimal(left),
        expiresAt: Administration.isoOrNull(expiresAt)
      })),
      holds: balance.holds.map(({ reservationId, operation, amount, requestId, expiresAt, acceptBy }) => ({
        reservation: reservationId,
        operation,
        amount: Credits.toDecimal(amount),
        request: requestId,
        expiresAt: Administration.isoOrNull(expiresAt ?? acceptBy)
      }))
    }
  })
)
