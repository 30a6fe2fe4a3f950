/** Runs the work of an operation: limits its time, encodes its result, and records the upstream's success or failure. */
import { type Context, Duration, Effect, Exit, Function, Schema } from "effect"
import { memoised } from "../Memoised.ts"
import * as Metrics from "../observability/Metrics.ts"
import * as Spans from "../observability/Spans.ts"
import * as Running from "../Running.ts"
import type { Outcome } from "./CallOperation.ts"
import { CircuitBreaker } from "./CircuitBreaker.ts"
import { type OperationError, OperationFailed, UpstreamUnavailable } from "./OperationError.ts"
import * as TimeLimit from "./TimeLimit.ts"

/** What limits the work of an operation. */
export interface Task {
  readonly key: string
  readonly timeout: Duration.Input
  readonly local?: true
}

/** The result of the work, with its data as JSON text. */
export interface Done extends Omit<Outcome<unknown>, "data"> {
  readonly data: string
}

/** Runs work whose result has the schema `success`. */
export interface Perform {
  <A, E extends OperationError | OperationFailed, R>(
    task: Task,
    success: Schema.Codec<A, unknown>,
    work: Effect.Effect<Outcome<A>, E, R>
  ): Effect.Effect<Done, E | UpstreamUnavailable | OperationFailed, R>
  /** The same by callback: the only fiber is that of the work. `begin` is called at once. */
  readonly start: Start
}

type Start = <A, E extends OperationError | OperationFailed, R>(
  task: Task,
  success: Schema.Codec<A, unknown>,
  begin: () => Effect.Effect<Outcome<A>, E | OperationFailed, R>,
  context: Context.Context<R>,
  told: Running.Told<Done, E | UpstreamUnavailable | OperationFailed>
) => Running.Running

/** Returns the function that runs work. */
export const make: Effect.Effect<Perform, never, CircuitBreaker> = Effect.gen(function* () {
  const breaker = yield* CircuitBreaker
  const time = yield* Metrics.timeUpstreams
  const isTracing = yield* Spans.isTracing

  const startUntraced: Start = (task, success, begin, context, told) => {
    const { key, timeout } = task
    const upstream = upstreamOf(key)
    const began = time.begin()
    const late = () => Exit.fail(tookTooLong(upstream, timeout))
    return TimeLimit.start(begin(), context, timeout, late, (exit) => {
      const done = Exit.isSuccess(exit) ? encode(key, success, exit.value) : Exit.failCause(exit.cause)
      time.end(began, { upstream, exit: done })
      const result = task.local === true ? undefined : upstreamResult(done)
      if (result !== undefined) breaker.note(upstream, result)
      told(done)
    })
  }

  const perform = <A, E extends OperationError | OperationFailed, R>(
    task: Task,
    success: Schema.Codec<A, unknown>,
    work: Effect.Effect<Outcome<A>, E, R>
  ): Effect.Effect<Done, E | UpstreamUnavailable | OperationFailed, R> => {
    const performed = Running.effect<Done, E | UpstreamUnavailable | OperationFailed, R>((context, told) =>
      startUntraced(task, success, () => work, context, told)
    )
    return isTracing ? Spans.around(performed, () => describe(upstreamOf(task.key))) : performed
  }

  const startTraced: Start = (task, success, begin, context, told) =>
    Running.fork(perform(task, success, Effect.suspend(begin)), context, told)
  return Object.assign(perform, { start: isTracing ? startTraced : startUntraced })
})

const describe = (upstream: string): Spans.Description => ({
  name: `upstream ${upstream}`,
  attributes: { "millrace.upstream": upstream }
})

/** The upstream of an operation: its area, the part of the key before the dot. Operations of an area share a circuit. */
export const upstreamOf: (key: string) => string = memoised((key) => key.split(".", 1)[0] ?? key)

/**
 * Calls a function of an operation, and returns its effect. `OperationFailed` if it does not return an Effect, as can happen in a host in
 * JavaScript.
 */
export const called = <A, E, R>(
  operation: { readonly key: string },
  name: "check" | "run" | "open" | "recover",
  call: () => Effect.Effect<A, E, R>
): Effect.Effect<A, E | OperationFailed, R> => {
  try {
    const returned: unknown = call()
    if (Effect.isEffect(returned)) return returned as Effect.Effect<A, E, R>
    const found = returned instanceof Promise ? "a Promise" : returned === null ? "null" : `a value of type ${typeof returned}`
    return Effect.fail(new OperationFailed({ operation: operation.key, reason: `${name} returned ${found}; it must return an Effect` }))
  } catch (defect) {
    return Effect.die(defect)
  }
}

const tookTooLong = (upstream: string, timeout: Duration.Input) =>
  new UpstreamUnavailable({ upstream, reason: `it took longer than ${Duration.toMillis(timeout)} ms` })

const encoderOf = Function.memoize((schema: Schema.Codec<unknown, unknown>) => Schema.encodeUnknownSync(Schema.toCodecJson(schema)))

/**
 * Encodes the result as JSON text, which is answered, stored and hashed. A result that does not match its schema is a bug of the operation.
 */
export const encode = <A>(key: string, success: Schema.Codec<A, unknown>, outcome: Outcome<A>): Exit.Exit<Done, OperationFailed> => {
  const { cache, page, quantity, retryAfter } = outcome
  try {
    const data = JSON.stringify(encoderOf(success)(outcome.data))
    if (cache === undefined && page === undefined && quantity === undefined && retryAfter === undefined) return Exit.succeed({ data })
    return Exit.succeed({
      data,
      ...(quantity === undefined ? {} : { quantity }),
      ...(retryAfter === undefined ? {} : { retryAfter }),
      ...(page === undefined ? {} : { page }),
      ...(cache === undefined ? {} : { cache })
    })
  } catch (error) {
    return Exit.fail(new OperationFailed({ operation: key, reason: `its result does not match its schema: ${String(error)}` }))
  }
}

/** What a call says of its upstream. `NotFound` and `InvalidInput` are successes; a bug or an interruption says nothing. */
const upstreamResult = (exit: Exit.Exit<unknown, OperationError | OperationFailed>): "success" | "failure" | undefined => {
  if (exit._tag === "Success") return "success"
  for (const reason of exit.cause.reasons) {
    if (reason._tag !== "Fail") continue
    if (reason.error._tag === "UpstreamUnavailable") return reason.error.isolated === true ? undefined : "failure"
    if (reason.error._tag === "NotFound" || reason.error._tag === "InvalidInput") return "success"
  }
  return undefined
}
