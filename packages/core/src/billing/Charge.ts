/**
 * A billed call, step by step: find a replay, quote, hold, work, keep the reply, settle, answer. Each step is a module of `charge/`, and
 * `Amends` handles failures. Wherever a call stops, its hold is captured or released exactly once.
 */
import type { Aggregate } from "@millrace/event-sourcing"
import { Context, type Duration, Effect, type Exit, Layer } from "effect"
import { newReservationId } from "../Ids.ts"
import type { Jobs } from "../jobs/Jobs.ts"
import type { Ledger } from "../ledger/Ledger.ts"
import * as Metrics from "../observability/Metrics.ts"
import * as Spans from "../observability/Spans.ts"
import { isTraced } from "../observability/TraceContext.ts"
import type { Vault } from "../vault/Vault.ts"
import { CIRCUIT_OPEN, type CircuitBreaker } from "../work/CircuitBreaker.ts"
import type { Any, AnyJob, ErrorOf, InputOf, Services as ServicesOf } from "../work/Operation.ts"
import type { OperationError } from "../work/OperationError.ts"
import { upstreamOf } from "../work/Perform.ts"
import * as Reason from "../work/Reason.ts"
import type { CallInDoubt, CallsInDoubt } from "./CallsInDoubt.ts"
import * as Accept from "./charge/Accept.ts"
import * as Amends from "./charge/Amends.ts"
import type { Call, Caller, ChargeError, Held, Key, Reply } from "./charge/Call.ts"
import * as Free from "./charge/Free.ts"
import * as Hold from "./charge/Hold.ts"
import * as Quote from "./charge/Quote.ts"
import * as Recover from "./charge/Recover.ts"
import * as Replay from "./charge/Replay.ts"
import * as Services from "./charge/Services.ts"
import * as Settle from "./charge/Settle.ts"
import { type Delivered, work } from "./charge/Work.ts"
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

/** A call under way, for a caller without a fiber. */
export interface Started {
  /** Interrupts the work. The hold is then released, and the call ends as an interrupted `run` does. */
  readonly interrupt: () => void
}

const make = Effect.fnUntraced(function* ({ late = "withhold" }: ChargeOptions = {}) {
  const services = yield* Services.make(late)
  const observe = yield* observer
  return {
    /** Runs an operation for a caller and charges the units done. A call that fails is free. */
    run: <Op extends Any>(operation: Op, input: InputOf<Op>, caller: Caller) =>
      observe(operation.key, input, caller, run(services, typed(operation), input, caller)),
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
      told: (exit: Exit.Exit<Reply, ErrorOf<Op> | ChargeError>) => void
    ): Started | undefined => {
      if (operation._tag === "Job" || caller.idempotency !== undefined || isTraced(context)) return undefined
      const call = observe(operation.key, input, caller, run(services, typed(operation), input, caller))
      const fiber = Effect.runForkWith(context)(call)
      fiber.addObserver(told)
      return { interrupt: () => fiber.interruptUnsafe() }
    },
    /** Runs an operation for a caller without an account. A priced operation is a defect. */
    runPublic: <Op extends Any>(operation: Op, input: InputOf<Op>, requestId: string) =>
      observe(operation.key, input, { requestId }, guarded(services, operation, runPublic(services, typed(operation), input, requestId))),
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

const run = <E extends OperationError, R>(
  services: Services.Services,
  operation: Any<E, R>,
  input: unknown,
  caller: Caller
): Effect.Effect<Reply, E | ChargeError, R> =>
  caller.idempotency === undefined
    ? fresh(services, operation, input, caller, undefined)
    : keyed(services, operation, input, caller, caller.idempotency)

/** Looks up the idempotency key before any check, so that a finished call is replayed whatever has changed since. */
const keyed = Effect.fnUntraced(function* <E extends OperationError, R>(
  services: Services.Services,
  operation: Any<E, R>,
  input: unknown,
  caller: Caller,
  idempotency: NonNullable<Caller["idempotency"]>
): Effect.fn.Return<Reply, E | ChargeError, R> {
  const key = yield* Replay.keyOf(services, caller, idempotency)
  const replayed = yield* Replay.find(services, { operation, input, ...caller }, key)
  return replayed === undefined ? yield* fresh(services, operation, input, caller, key) : replayed.reply
})

/** A call that is no replay. */
const fresh = <E extends OperationError, R>(
  services: Services.Services,
  operation: Any<E, R>,
  input: unknown,
  caller: Caller,
  key: Key | undefined
): Effect.Effect<Reply, E | ChargeError, R> =>
  guarded(
    services,
    operation,
    Effect.flatMap(Quote.quote(services, operation, input, caller, key), (call) => charge(services, call))
  )

/** Fails at once while the circuit of the operation's upstream is open. */
const guarded = <A, E, R>({ breaker }: Pick<Services.Services, "breaker">, { key, local }: Any, call: Effect.Effect<A, E, R>) =>
  local === true ? call : breaker.guard(upstreamOf(key), call)

/** Between the hold and its end, only the work is interruptible. */
const charge = <E extends OperationError, R>(services: Services.Services, call: Call<E, R>): Effect.Effect<Reply, E | ChargeError, R> => {
  const { input, operation } = call
  if (operation._tag === "Job") return Accept.call(services, call, operation)
  if (call.cost === 0) return Free.call(services, call, operation)
  return Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(Hold.make(services, call), (held) => {
      if (held._tag === "Replayed") return Effect.succeed(held.reply)
      const done = Amends.onFailure(services, call, restore(work(services, operation, input, call)))
      return Effect.flatMap(done, (done) => settled(services, held, done))
    })
  )
}

/** Keeps the reply of a call with a key, then settles. */
const settled = <E extends OperationError, R>(
  services: Services.Services,
  held: Held<E, R>,
  done: Delivered
): Effect.Effect<Reply, E | ChargeError, R> => {
  const settle = Settle.charge(services, held, done)
  if (held.call.key === undefined) return settle
  const kept = Effect.tapCause(Replay.keepOrYield(services, held, done), () => Amends.release(services, held.call, "service_error"))
  return Effect.andThen(kept, settle)
}

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

/** Counts a call and traces it by its outcome. Logs reasons of failures that the caller is not told. */
const observer = Effect.gen(function* () {
  const count = yield* Metrics.countCharges
  const spanned = yield* Spans.spanner
  return <E extends { readonly _tag: string }, R>(
    operation: string,
    input: unknown,
    caller: Partial<Caller> & Pick<Caller, "requestId">,
    call: Effect.Effect<Reply, E, R>
  ): Effect.Effect<Reply, E, R> => {
    const ended = (exit: Exit.Exit<Reply, E>): Effect.Effect<void> | undefined => {
      count(operation, exit)
      return exit._tag === "Failure" ? logged(operation, input, caller, exit) : undefined
    }
    return spanned(Effect.onExitPrimitive(call, ended), () => ({
      name: `charge ${operation}`,
      attributes: { "millrace.operation": operation }
    }))
  }
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
