/**
 * A billed call: find a replay, quote, hold, work, keep the reply, settle, answer. Each step is a module of `charge/`, `Execution` joins them,
 * and `Amends` handles failures. Wherever a call stops, its hold is captured or released exactly once.
 */
import type { Aggregate } from "@millrace/event-sourcing"
import { Context, type Duration, Effect, type Exit, Layer } from "effect"
import { newReservationId } from "../Ids.ts"
import type { Jobs } from "../jobs/Jobs.ts"
import type { Ledger } from "../ledger/Ledger.ts"
import * as Metrics from "../observability/Metrics.ts"
import * as Spans from "../observability/Spans.ts"
import { isTraced } from "../observability/TraceContext.ts"
import { effect, type Running, type Told } from "../Running.ts"
import type { Vault } from "../vault/Vault.ts"
import { CIRCUIT_OPEN, type CircuitBreaker } from "../work/CircuitBreaker.ts"
import type { Any, AnyJob, ErrorOf, InputOf, Services as ServicesOf } from "../work/Operation.ts"
import type { OperationError } from "../work/OperationError.ts"
import { upstreamOf } from "../work/Perform.ts"
import * as Reason from "../work/Reason.ts"
import type { CallInDoubt, CallsInDoubt } from "./CallsInDoubt.ts"
import * as Accept from "./charge/Accept.ts"
import * as Amends from "./charge/Amends.ts"
import type { Caller, ChargeError, Reply } from "./charge/Call.ts"
import * as Execution from "./charge/Execution.ts"
import * as Quote from "./charge/Quote.ts"
import * as Recover from "./charge/Recover.ts"
import * as Services from "./charge/Services.ts"
import * as Settle from "./charge/Settle.ts"
import { work } from "./charge/Work.ts"
import type { PriceBook } from "./PricePlan.ts"
import type { Replies } from "./Replies.ts"

export {
  type Caller,
  type ChargeError,
  CostExceedsLimit,
  HOLD_MARGIN,
  OutcomeUnknown,
  type Reply,
  ReplyUnavailable,
  ResultWithheld
} from "./charge/Call.ts"

export interface ChargeOptions {
  /** A success whose hold has ended is withheld, the default, or charged under a new reservation. */
  readonly late?: "withhold" | "charge"
}

const make = Effect.fnUntraced(function* ({ late = "withhold" }: ChargeOptions = {}) {
  const services = yield* Services.make(late)
  const observed = yield* observer
  const isTracing = yield* Spans.isTracing

  const execute = <E extends OperationError, R>(
    operation: Any<E, R>,
    input: unknown,
    caller: Caller,
    context: Context.Context<R>,
    told: Told<Reply, E | ChargeError>
  ): Running => Execution.start({ services, operation, input, caller, context, ended: observed }, told)

  return {
    /** Runs an operation for a caller and charges the units done. A call that fails is free. */
    run: <Op extends Any>(
      operation: Op,
      input: InputOf<Op>,
      caller: Caller
    ): Effect.Effect<Reply, ErrorOf<Op> | ChargeError, ServicesOf<Op>> => {
      const executed = effect<Reply, ErrorOf<Op> | ChargeError, ServicesOf<Op>>((context, told) =>
        execute(typed(operation), input, caller, context, told)
      )
      return isTracing ? Spans.around(executed, () => describe(operation.key)) : executed
    },
    /**
     * Starts a plain call for a caller without a fiber: `told` is called exactly once with what `run` would have ended with, possibly before
     * `start` returns. `context`: the services of the operation, and the references that the call's fibers begin with, such as the clock.
     * Undefined if the call is not plain (a job, an idempotency key, a traced context): then nothing was done, and `run` does it.
     */
    start: <Op extends Any>(
      operation: Op,
      input: InputOf<Op>,
      caller: Caller,
      context: Context.Context<ServicesOf<Op>>,
      told: Told<Reply, ErrorOf<Op> | ChargeError>
    ): Running | undefined =>
      operation._tag === "Job" || caller.idempotency !== undefined || isTraced(context)
        ? undefined
        : execute(typed(operation), input, caller, context, told),
    /** Runs an operation for a caller without an account. A priced operation is a defect. */
    runPublic: <Op extends Any>(operation: Op, input: InputOf<Op>, requestId: string) => {
      const { key, local } = operation
      const call = runPublic(services, typed(operation), input, requestId)
      const guarded = local === true ? call : services.breaker.guard(upstreamOf(key), call)
      const ran = Effect.onExitPrimitive(guarded, (exit) => observed(key, input, { requestId }, exit))
      return isTracing ? Spans.around(ran, () => describe(key)) : ran
    },
    /**
     * Waits at most `within` for the job that a call became. Returns the reply with the job's charge so far, and whether it is final.
     * `NotFound` if the job was cancelled meanwhile; `UpstreamUnavailable` if a store does not answer.
     */
    awaitJob: (operation: AnyJob, accountId: string, reply: Accept.Accepted, within?: Duration.Input) =>
      Accept.awaitEnd(services, operation, accountId, reply, within),
    /** Ends a hold that is due: asks a recoverable operation for the outcome and settles by it; releases any other hold. */
    recover: <E extends OperationError, R>(operation: Any<E, R> | undefined, accountId: string, reservationId: string) =>
      Recover.recover(services, operation, accountId, reservationId),
    /**
     * Makes a call free that failed with {@link OutcomeUnknown}: releases its hold or refunds its charge. Idempotent. False if the account
     * has no hold or charge of the call, or not yet.
     */
    makeFree: (call: Omit<CallInDoubt, "at">): Effect.Effect<boolean, Aggregate.Failure> => Amends.makeFree(services, call)
  }
})

export class Charge extends Context.Service<Charge, Effect.Success<ReturnType<typeof make>>>()("@millrace/core/billing/Charge") {
  static readonly layer = (
    options?: ChargeOptions
  ): Layer.Layer<Charge, never, Ledger | PriceBook | Replies | CallsInDoubt | Vault | Jobs | CircuitBreaker> =>
    Layer.effect(this, make(options))
}

/** Types an operation by its errors and services. */
const typed = <Op extends Any>(operation: Op) => operation as Any<ErrorOf<Op>, ServicesOf<Op>>

const runPublic = Effect.fnUntraced(function* <E extends OperationError, R>(
  services: Services.Services,
  operation: Any<E, R>,
  input: unknown,
  requestId: string
): Effect.fn.Return<Reply, E | ChargeError, R> {
  const caller = { accountId: "public", requestId }
  yield* operation.check(input, caller)
  const { unitPrice } = yield* services.prices.quote(operation.key)
  if ((yield* Quote.quantityOf(operation, input)) * unitPrice > 0)
    return yield* Effect.die(new Error(`${operation.key} has a price: it needs an account`))
  if (operation._tag === "Job") return yield* Effect.die(new Error(`${operation.key} is a job: it needs an account`))
  const reservationId = yield* newReservationId
  return Settle.answered(caller, yield* work(services, operation, input, { ...caller, reservationId }))
})

/** Counts a call by its outcome. Returns the log of a failure that the caller is not told. */
const observer = Effect.map(
  Metrics.countCharges,
  (count) =>
    (
      operation: string,
      input: unknown,
      caller: Partial<Caller> & Pick<Caller, "requestId">,
      exit: Exit.Exit<Reply, { readonly _tag: string }>
    ): Effect.Effect<void> | undefined => {
      count(operation, exit)
      return exit._tag === "Failure" ? logged(operation, input, caller, exit) : undefined
    }
)

const describe = (operation: string): Spans.Description => ({
  name: `charge ${operation}`,
  attributes: { "millrace.operation": operation }
})

const logged = (
  operation: string,
  input: unknown,
  { accountId, requestId }: Partial<Caller> & Pick<Caller, "requestId">,
  { cause }: Exit.Failure<Reply, { readonly _tag: string }>
): Effect.Effect<void> | undefined => {
  for (const reason of cause.reasons) {
    if (reason._tag !== "Fail" || !Reason.isUntold(reason.error)) continue
    const { error } = reason
    const facts = { requestId, accountId, operation, reason: Reason.redact(error.reason, input) }
    // The failures that opened the circuit were logged as warnings
    if (error.reason === CIRCUIT_OPEN) return Effect.logDebug("A circuit is open", facts)
    return error._tag === "OperationFailed"
      ? Effect.logError("An operation is faulty", facts)
      : Effect.logWarning("An upstream failed", facts)
  }
  return undefined
}
