/** `balance`: what an account has, now or at a past time. */
import { Credits, Ledger, toIso } from "@millrace/core"
import { Effect, Option } from "effect"
import { Command } from "effect/cli"
import * as Administration from "../Administration.ts"
import * as Output from "../Output.ts"
import * as StoreUrl from "../StoreUrl.ts"

export const balance = Command.make(
  "balance",
  {
    store: Administration.store,
    account: Administration.account,
    at: Administration.time("at", "As of this instant; now, when left out"),
    json: Output.json
  },
  ({ account, at, store, json }) =>
    Effect.gen(function* () {
      const ledger = yield* Ledger
      const balance = yield* ledger.balance(account, Option.getOrUndefined(at))
      yield* Output.print(json, {
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
      })
    }).pipe(Effect.provide(Ledger.layer()), Effect.provide(StoreUrl.logLayer(store)))
).pipe(
  Command.withDescription("Show what an account has: available, held, owed, by lot and by hold; in credits"),
  Command.withExamples([
    { command: "millrace balance --account acc_01M7YKD46JCP6VGMKADN3JSPJP", description: "Now" },
    {
      command: "millrace balance --account acc_01M7YKD46JCP6VGMKADN3JSPJP --at 2026-12-31T00:00:00Z",
      description: "At the end of the year"
    }
  ])
)
