/** Step 1: checks a call and prices it. A failure here holds nothing and writes nothing. */
import { Effect } from "effect"
import * as Credits from "../../Credits.ts"
import { newReservationId } from "../../Ids.ts"
import type { Requester } from "../../work/Contract.ts"
import type { Any } from "../../work/Operation.ts"
import { type OperationError, OperationFailed, TooManyJobs, UpstreamUnavailable } from "../../work/OperationError.ts"
import { called } from "../../work/Perform.ts"
import { type Call, type Caller, type ChargeError, CostExceedsLimit, type Key } from "./Call.ts"
import type { Services } from "./Services.ts"

/** Checks the call, then computes its cost from the prices in force. */
export const quote = <E extends OperationError, R>(
  services: Pick<Services, "prices" | "jobs">,
  operation: Any<E, R>,
  input: unknown,
  caller: Caller,
  key: Key | undefined
): Effect.Effect<Call<E, R>, E | ChargeError, R> =>
  Effect.gen(function* () {
    const { accountId, credential, maxCost, requestId, wait } = caller
    yield* check(services, operation, input, caller)
    const quantity = yield* quantityOf(operation, input)
    const { version, unitPrice } = yield* services.prices.quote(operation.key)
    const cost = Credits.of(quantity * unitPrice)
    if (maxCost !== undefined && cost > maxCost) return yield* new CostExceedsLimit({ cost, limit: maxCost })
    const reservationId = yield* newReservationId
    const priced = { quantity, priceVersion: version, unitPrice, cost }
    const asked = { ...(credential === undefined ? {} : { credential }), ...(wait === undefined ? {} : { wait }) }
    return { operation, input, accountId, requestId, key, reservationId, ...priced, ...asked }
  })

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
  return Effect.andThen(checked, room)
}

/** The units of a call. `OperationFailed` if the operation does not return a whole number of at least 0. */
export const quantityOf = (operation: Pick<Any, "key" | "quantity">, input: unknown): Effect.Effect<number, OperationFailed> => {
  const quantity: unknown = operation.quantity(input)
  if (typeof quantity === "number" && Number.isSafeInteger(quantity) && quantity >= 0) return Effect.succeed(quantity)
  const reason = `its quantity is ${String(quantity)}; it must be a whole number of at least 0`
  return Effect.fail(new OperationFailed({ operation: operation.key, reason }))
}
