/**
 * Spans at the boundaries of the service. Without a tracer they cost nothing. A span never holds a request or a reply, and it names an
 * error without its text, which may quote the caller.
 */
import { Clock, Context, Effect, Exit, Function, Tracer } from "effect"
import { memoised } from "../Memoised.ts"
import * as Outcome from "./Outcome.ts"
import { isTraced } from "./TraceContext.ts"

export interface Description {
  readonly name: string
  readonly kind?: Tracer.SpanKind
  /** The parent span; by default the current one. */
  readonly parent?: Tracer.AnySpan
  /** Whether the span begins a new trace. */
  readonly root?: boolean
  readonly attributes?: Readonly<Record<string, unknown>>
}

/** Runs an effect in a span. Spans inside it also hide the texts of errors. `failure` names the error in a successful value. */
export const around = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  describe: () => Description,
  failure: (value: A) => string | undefined = () => undefined
): Effect.Effect<A, E, R> =>
  Effect.withFiber(({ context }) =>
    isTraced(context)
      ? Effect.provideService(traced(effect, describe(), failure), Tracer.Tracer, discreet(Context.get(context, Tracer.Tracer)))
      : effect
  )

/** Whether this process traces. Resolved once, when a layer is built. */
export const isTracing: Effect.Effect<boolean> = Effect.map(Effect.context<never>(), isTraced)

const traced = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  { name, ...options }: Description,
  failure: (value: A) => string | undefined
): Effect.Effect<A, E, R> =>
  Effect.useSpan(name, options, (span) =>
    Effect.onExit(Effect.withParentSpan(effect, span, { captureStackTrace: false }), (exit) =>
      Effect.map(Clock.Clock, (clock) => {
        const error = Exit.isSuccess(exit) ? failure(exit.value) : Outcome.ofCause(exit.cause)
        if (error !== undefined) span.attribute("error.type", error)
        span.end(clock.currentTimeNanosUnsafe(), endOf(error))
      })
    )
  )

const ends = new WeakSet<Exit.Exit<unknown, unknown>>()

/** The exit of an error's name. There are few names. */
const failureOf = memoised((error) => {
  const end = error === "cancelled" ? Exit.interrupt() : Exit.fail(error)
  ends.add(end)
  return end
})

const endOf = (error: string | undefined): Exit.Exit<void, string> => (error === undefined ? Exit.void : failureOf(error))

/** A tracer whose spans hold an error's name without its text. */
const discreet = Function.memoizeIdempotent((tracer: Tracer.Tracer) =>
  Tracer.make({
    ...tracer,
    span: (options) => {
      const span = tracer.span(options)
      const end = span.end.bind(span)
      span.end = (at, exit) => end(at, Exit.isSuccess(exit) || ends.has(exit) ? exit : endOf(Outcome.ofCause(exit.cause)))
      return span
    }
  })
)
