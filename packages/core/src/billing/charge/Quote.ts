/** Step 1: checks a call and prices it. A failure here holds nothing and writes nothing. */
import type { Aggregate } from "@millrace/event-sourcing"
import { type Context, Effect } from "effect"
import * as Credits from "../../Credits.ts"
import { newReservationIdIn } from "../../Ids.ts"
import type { Requester } from "../../work/Contract.ts"
import type { Any } from "../../work/Operation.ts"
import { type OperationError, OperationFailed, TooManyJobs, UpstreamUnavailable } from "../../work/OperationError.ts"
import { called } from "../../work/Perform.ts"
import type { ConditionalPrice, NotPriced, Price } from "../PricePlan.ts"
import { type Call, type Caller, type ChargeError, CostExceedsLimit, type Key } from "./Call.ts"
import type { Services } from "./Services.ts"

/**
 * Checks the call, then computes its cost from the prices in force. The check runs at once; what is answered at once is an exit. `context`: the
 * clock and the generator of ids. `isConfirmed`: the store is asked for the prices, because those in memory were found outdated.
 */
export const quote = <E extends OperationError, R>(
  services: Pick<Services, "prices" | "jobs">,
  operation: Any<E, R>,
  input: unknown,
  caller: Caller,
  key: Key | undefined,
  context: Context.Context<never>,
  isConfirmed = false
): Effect.Effect<Call<E, R>, E | ChargeError, R> =>
  Effect.flatMapEager(check(services, operation, input, caller), () =>
    Effect.flatMapEager(quantityOf(operation, input), (quantity) => {
      const limit = caller.maxCost ?? Number.POSITIVE_INFINITY
      return Effect.flatMapEager(priceOf(services, operation, quantity, isConfirmed ? 0 : limit), (price) => {
        const { accountId, credential, requestId, wait } = caller
        const { condition, unitPrice, version: priceVersion } = price
        const cost = Credits.of(quantity * unitPrice)
        if (cost > limit) return Effect.fail(new CostExceedsLimit({ cost, limit: Credits.of(limit) }))
        const reservationId = caller.reservationId ?? newReservationIdIn(context)
        return Effect.succeed({
          operation,
          input,
          accountId,
          requestId,
          key,
          reservationId,
          quantity,
          priceVersion,
          unitPrice,
          cost,
          condition,
          ...(credential !== undefined && { credential }),
          ...(wait !== undefined && { wait })
        })
      })
    })
  )

/**
 * The price in force. Where the store must be waited for, a cost that will be held is by the prices in memory, whose condition the hold checks.
 * `assumable`: the highest such cost, because a higher one would be refused, and a refusal must be certain.
 */
const priceOf = (
  { prices }: Pick<Services, "prices">,
  { key }: Any,
  quantity: number,
  assumable: number
): Effect.Effect<Price & Partial<ConditionalPrice>, NotPriced | Aggregate.Failure> => {
  const now = prices.quoteNow(key)
  if (now !== undefined) return now
  const assumed = prices.assume(key)
  const cost = quantity * (assumed?.unitPrice ?? 0)
  return assumed !== undefined && cost > 0 && cost <= assumable ? Effect.succeed(assumed) : prices.quote(key)
}

/** Runs the operation's own check; for a job, also checks that the queue has room. */
const check = <E extends OperationError, R>(
  { jobs }: Pick<Services, "jobs">,
  operation: Any<E, R>,
  input: unknown,
  requester: Requester
): Effect.Effect<void, E | TooManyJobs | UpstreamUnavailable | OperationFailed, R> => {
  const checked = called(operation, "check", () => operation.check(input, requester))
  if (operation._tag !== "Job") return checked
  return Effect.flatMapEager(checked, () =>
    Effect.mapErrorEager(jobs.admit(requester.accountId, operation.limits.ofAccount), (error) =>
      error instanceof TooManyJobs ? error : new UpstreamUnavailable({ upstream: "jobs", reason: error._tag, isolated: true })
    )
  )
}

/** The units of a call. `OperationFailed` if the operation does not return a whole number of at least 0. */
export const quantityOf = (operation: Pick<Any, "key" | "quantity">, input: unknown): Effect.Effect<number, OperationFailed> => {
  const quantity: unknown = operation.quantity(input)
  if (typeof quantity === "number" && Number.isSafeInteger(quantity) && quantity >= 0) return Effect.succeed(quantity)
  const reason = `its quantity is ${String(quantity)}; it must be a whole number of at least 0`
  return Effect.fail(new OperationFailed({ operation: operation.key, reason }))
}
