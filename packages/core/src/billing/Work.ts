/** The work of a call: run, bounded in time, its data encoded, and what it says of its upstream. */
import { type Duration, Effect, Exit, Schema } from "effect"
import type { JobDefinition } from "../jobs/JobDefinition.ts"
import * as Metrics from "../observability/Metrics.ts"
import * as Spans from "../observability/Spans.ts"
import type * as Operation from "../operations/Operation.ts"
import { type OperationError, UpstreamUnavailable } from "../operations/OperationError.ts"
import { CircuitBreaker } from "./CircuitBreaker.ts"

/** The part of an operation that a call needs. */
export interface Runnable<Input, A, E extends OperationError, R> {
  readonly key: string
  readonly quantity: (input: Input) => number
  readonly success: Schema.Codec<A, unknown>
  readonly check: (input: Input, caller: Omit<Operation.Caller, "reservationId">) => Effect.Effect<void, E, R>
  readonly run: (input: Input, caller: Operation.Caller) => Effect.Effect<Operation.Outcome<A>, E, R>
  readonly recover?: (reservationId: string) => Effect.Effect<Operation.Outcome<A> | undefined, E, R>
  readonly job?: JobDefinition<Input, A, E, R>
  readonly local?: true
  readonly timeout: Duration.Input
}

/** Work that was done: its data as JSON text, and how much of what was held for. */
export interface Done {
  readonly data: string
  readonly quantity?: number
  readonly retryAfter?: number
  readonly page?: Operation.Page
}

const encoders = new WeakMap<object, (data: unknown) => unknown>()

/** An upstream's answer that its own schema refuses is no answer. */
export const encode = <A>(
  { success }: { readonly success: Schema.Codec<A, unknown> },
  { data, page, quantity, retryAfter }: Operation.Outcome<A>,
  upstream: string
): Effect.Effect<Done, UpstreamUnavailable> =>
  Effect.try({
    try: () => {
      let encoder = encoders.get(success)
      if (encoder === undefined) {
        encoder = Schema.encodeUnknownSync(Schema.toCodecJson(success))
        encoders.set(success, encoder)
      }
      return {
        data: JSON.stringify(encoder(data)),
        ...(quantity === undefined ? {} : { quantity }),
        ...(retryAfter === undefined ? {} : { retryAfter }),
        ...(page === undefined ? {} : { page })
      }
    },
    catch: (error) => new UpstreamUnavailable({ upstream, reason: String(error) })
  })

/** Does the work of a call. What fails here was not delivered. */
export type Attempt = <Input, A, E extends OperationError, R>(
  operation: Runnable<Input, A, E, R>,
  input: Input,
  caller: Operation.Caller
) => Effect.Effect<Done, E | UpstreamUnavailable, R>

export const make: Effect.Effect<Attempt, never, CircuitBreaker> = Effect.gen(function* () {
  const breaker = yield* CircuitBreaker
  const time = yield* Metrics.timeUpstreams
  const spanned = yield* Spans.spanner
  return (operation, input, caller) => {
    const upstream = upstreamOf(operation.key)
    const work = Effect.suspend(() => {
      const ended = time()
      return operation.run(input, caller).pipe(
        Effect.timeoutOrElse({
          duration: operation.timeout,
          orElse: () => Effect.fail(new UpstreamUnavailable({ upstream, reason: "it took too long" }))
        }),
        Effect.flatMap((outcome) => encode(operation, outcome, upstream)),
        Effect.onExit((exit) => {
          ended(upstream, exit)
          const found = operation.local === true ? undefined : foundBy(exit)
          return found === undefined ? Effect.void : breaker.record(upstream, found)
        })
      )
    })
    return spanned(work, () => ({ name: `upstream ${upstream}`, attributes: { "millrace.upstream": upstream } }))
  }
})

/** Operations of one area share an upstream, and so a circuit: the key's text before its dot. */
export const upstreamOf = (key: string): string => key.split(".", 1)[0] ?? key

/** What a call says of its upstream: also "not found" is an answer. A bug of ours says nothing, nor does a caller who left. */
const foundBy = (exit: Exit.Exit<unknown, OperationError>): "success" | "failure" | undefined => {
  if (Exit.isSuccess(exit)) return "success"
  for (const reason of exit.cause.reasons) {
    if (reason._tag !== "Fail") continue
    if (reason.error._tag === "UpstreamUnavailable") return reason.error.isolated === true ? undefined : "failure"
    if (reason.error._tag === "NotFound" || reason.error._tag === "InvalidInput") return "success"
  }
  return undefined
}
