/** What the steps of a charge use. Each step takes the part that it needs. */
import { Effect, Schedule, type Scope } from "effect"
import { Jobs } from "../../jobs/Jobs.ts"
import { Ledger } from "../../ledger/Ledger.ts"
import { Vault } from "../../vault/Vault.ts"
import { CircuitBreaker } from "../../work/CircuitBreaker.ts"
import * as Perform from "../../work/Perform.ts"
import { PriceBook } from "../PricePlan.ts"
import { Replies } from "../Replies.ts"
import { Unanswered } from "../Unanswered.ts"

export interface Services {
  readonly ledger: Ledger["Service"]
  readonly prices: PriceBook["Service"]
  readonly replies: Replies["Service"]
  readonly unanswered: Unanswered["Service"]
  readonly vault: Vault["Service"]
  readonly jobs: Jobs["Service"]
  readonly breaker: CircuitBreaker["Service"]
  readonly perform: Perform.Perform
  /** Of the layer: work in the background lives as long. */
  readonly scope: Scope.Scope
  /** What happens to a success whose hold has ended: its result is withheld, or charged under a new reservation. */
  readonly late: "withhold" | "charge"
}

export const make = Effect.fnUntraced(function* (late: Services["late"]) {
  const services: Services = {
    ledger: yield* Ledger,
    prices: yield* PriceBook,
    replies: yield* Replies,
    unanswered: yield* Unanswered,
    vault: yield* Vault,
    jobs: yield* Jobs,
    breaker: yield* CircuitBreaker,
    perform: yield* Perform.make,
    scope: yield* Effect.scope,
    late
  }
  return services
})

/** The store may fail for a moment when the work is done: it is asked again for about a second before the caller is told. */
export const TRY_AGAIN = { schedule: Schedule.exponential("20 millis"), times: 5 } as const
