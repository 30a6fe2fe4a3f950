/** Step 1: checks a call and prices it. A failure here holds nothing and writes nothing. */
import { type Context, Effect } from "effect"
import * as Credits from "../../Credits.ts"
import { newReservationIdIn } from "../../Ids.ts"
import type { Requester } from "../../work/Contract.ts"
import type { Any } from "../../work/Operation.ts"
import { type OperationError, OperationFailed, TooManyJobs, UpstreamUnavailable } from "../../work/OperationError.ts"
import { called } from "../../work/Perform.ts"
import { type Call, type Caller, type ChargeError, CostExceedsLimit, type Key } from "./Call.ts"
import type { Services } from "./Services.ts"

/**
 * Checks the call, then computes its cost from the prices in force. The check runs at once; what is answered at once is an exit. `context`: the
 * clock and the generator of ids.
 */
export const quote = <E extends OperationError, R>(
  services: Pick<Services, "prices" | "jobs">,
  operation: Any<E, R>,
  input: unknown,
  caller: Caller,
  key: Key | undefined,
  context: Context.Context<never>
): Effect.Effect<Call<E, R>, E | ChargeError, R> =>
  Effect.flatMapEager(check(services, operation, input, caller), () =>
    Effect.flatMapEager(quantityOf(operation, input), (quantity) =>
      Effect.flatMapEager(priceOf(services, operation), ({ unitPrice, version: priceVersion }) => {
        const { accountId, credential, maxCost, requestId, wait } = caller
        const cost = Credits.of(quantity * unitPrice)
        if (maxCost !== undefined && cost > maxCost) return Effect.fail(new CostExceedsLimit({ cost, limit: maxCost }))
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
          ...(credential !== undefined && { credential }),
          ...(wait !== undefined && { wait })
        })
      })
    )
  )

/** The price in force, at once if the prices in memory are the newest. */
const priceOf = ({ prices }: Pick<Services, "prices">, { key }: Any) => prices.quoteNow(key) ?? prices.quote(key)

/** Runs the operation's own check; for a job, also checks that the queue has room. */
const check = <E extends OperationError, R>(
  { jobs }: Pick<Services, "jobs">,
  operation: Any<E, R>,
  input: unknown,
  requester: Requester
): Effect.Effect<void, E | TooManyJobs | UpstreamUnavailable | OperationFailed, R> => {
  const checked = called(operation, "check", () => operation.check(input, requester))
  if (operation._tag !== "Job") return checked
  const room = Effect.mapError(jobs.admit(requester.accountId, operation.limits.ofAccount), (error) =>
    error instanceof TooManyJobs ? error : new UpstreamUnavailable({ upstream: "jobs", reason: error._tag, isolated: true })
  )
  return Effect.flatMap(checked, () => room)
}

/** The units of a call. `OperationFailed` if the operation does not return a whole number of at least 0. */
export const quantityOf = (operation: Pick<Any, "key" | "quantity">, input: unknown): Effect.Effect<number, OperationFailed> => {
  const quantity: unknown = operation.quantity(input)
  if (typeof quantity === "number" && Number.isSafeInteger(quantity) && quantity >= 0) return Effect.succeed(quantity)
  const reason = `its quantity is ${String(quantity)}; it must be a whole number of at least 0`
  return Effect.fail(new OperationFailed({ operation: operation.key, reason }))
}
