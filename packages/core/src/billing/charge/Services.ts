/** The services of a charge. Each step takes the part that it needs. */
import { Effect, Schedule, type Scope } from "effect"
import { Jobs } from "../../jobs/Jobs.ts"
import { Ledger } from "../../ledger/Ledger.ts"
import { Vault } from "../../vault/Vault.ts"
import { CircuitBreaker } from "../../work/CircuitBreaker.ts"
import * as Perform from "../../work/Perform.ts"
import { CallsInDoubt } from "../CallsInDoubt.ts"
import { PriceBook } from "../PricePlan.ts"
import { Replies } from "../Replies.ts"

const SERVICES = {
  ledger: Ledger,
  prices: PriceBook,
  replies: Replies,
  callsInDoubt: CallsInDoubt,
  vault: Vault,
  jobs: Jobs,
  breaker: CircuitBreaker
}

export type Services = { readonly [Name in keyof typeof SERVICES]: (typeof SERVICES)[Name]["Service"] } & {
  readonly perform: Perform.Perform
  /** The layer's scope, in which background work runs. */
  readonly scope: Scope.Scope
  /** A success whose hold has ended is withheld, or charged under a new reservation. */
  readonly late: "withhold" | "charge"
}

/** Resolves the services once, when the layer is built. */
export const make = Effect.fnUntraced(function* (late: Services["late"]) {
  const services: Services = { ...(yield* Effect.all(SERVICES)), perform: yield* Perform.make, scope: yield* Effect.scope, late }
  return services
})

/** Retries a store for about a second before the call fails. */
export const TRY_AGAIN = { schedule: Schedule.exponential("20 millis"), times: 5 } as const
