/**
 * Spans at the boundaries, where somebody looks at spans, and nothing at all where nobody does. They say what was done and how it
 * ended, never what was asked or answered: a failure is told by its name, since its text may quote a caller.
 */
import { Clock, Context, Effect, Exit, Tracer } from "effect"
import * as Outcome from "./Outcome.ts"
import { isTraced } from "./TraceContext.ts"

export interface Description {
  readonly name: string
  readonly kind?: Tracer.SpanKind
  /** The span outside that it belongs to; by default the one it runs in. */
  readonly parent?: Tracer.AnySpan
  /** Whether it begins a trace, whatever it runs in. */
  readonly root?: boolean
  readonly attributes?: Readonly<Record<string, unknown>>
}

/**
 * An effect in a span, and what it spans itself likewise discreet. `failure`: what a value is a failure of, though the effect
 * succeeded.
 */
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

/** {@link around}, or what does nothing: decided once, when a layer is built, by whether anybody looks at spans then. */
export const spanner: Effect.Effect<typeof around> = Effect.map(Effect.context<never>(), (context) =>
  isTraced(context) ? around : (effect) => effect
)

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

/** Names are few, so this is too. */
const failures = new Map<string, Exit.Exit<never, string>>()

const endOf = (error: string | undefined): Exit.Exit<void, string> => {
  if (error === undefined) return Exit.void
  let end = failures.get(error)
  if (end === undefined) {
    end = error === "cancelled" ? Exit.interrupt() : Exit.fail(error)
    failures.set(error, end)
    ends.add(end)
  }
  return end
}

const made = new WeakMap<Tracer.Tracer, Tracer.Tracer>()

/** A tracer that tells of a failure no more than its name. */
export const discreet = (tracer: Tracer.Tracer): Tracer.Tracer => {
  let own = made.get(tracer)
  if (own === undefined) {
    own = Tracer.make({
      ...tracer,
      span: (options) => {
        const span = tracer.span(options)
        const end = span.end.bind(span)
        span.end = (at, exit) => end(at, Exit.isSuccess(exit) || ends.has(exit) ? exit : endOf(Outcome.ofCause(exit.cause)))
        return span
      }
    })
    made.set(tracer, own).set(own, own)
  }
  return own
}
