/** A circuit breaker for each upstream: after a run of failures its calls are answered at once, until one was let through and came back. */
import { Clock, Context, Effect, Layer } from "effect"
import * as Metrics from "../observability/Metrics.ts"
import { UpstreamUnavailable } from "../operations/OperationError.ts"

export interface CircuitBreakerOptions {
  /** Failures in a row that open it. */
  readonly failures?: number
  /** How long it stays open before one call may try, milliseconds. */
  readonly openFor?: number
}

export class CircuitBreaker extends Context.Service<
  CircuitBreaker,
  {
    /**
     * A call of this upstream: it fails at once while the circuit is open. When it is time to try, one call is let through and the
     * others wait for what it finds; where it ends without having found anything, refused for other reasons, the next may try.
     */
    readonly guard: <A, E, R>(upstream: string, call: Effect.Effect<A, E, R>) => Effect.Effect<A, E | UpstreamUnavailable, R>
    /** Milliseconds for which its calls are answered at once: none while the circuit is closed, or when it is time to try. */
    readonly openFor: (upstream: string) => Effect.Effect<number>
    /** What a call found. */
    readonly record: (upstream: string, result: "success" | "failure") => Effect.Effect<void>
  }
>()("@millrace/core/billing/CircuitBreaker") {
  static readonly layer = ({ failures = 5, openFor = 10_000 }: CircuitBreakerOptions = {}): Layer.Layer<CircuitBreaker> =>
    Layer.effect(
      CircuitBreaker,
      Effect.gen(function* () {
        const clock = yield* Clock.Clock
        const circuits = new Map<string, Circuit>()
        const watch = yield* Metrics.circuits((upstream) => (circuits.get(upstream)?.failures ?? 0) >= failures)
        return CircuitBreaker.of({
          guard: <A, E, R>(upstream: string, call: Effect.Effect<A, E, R>) =>
            Effect.suspend((): Effect.Effect<A, E | UpstreamUnavailable, R> => {
              const circuit = circuits.get(upstream)
              if (circuit === undefined || circuit.failures < failures) return call
              const now = clock.currentTimeMillisUnsafe()
              if (now < circuit.openUntil) return Effect.fail(new UpstreamUnavailable({ upstream, reason: "its circuit is open" }))
              const trial = {}
              circuit.trial = trial
              circuit.openUntil = now + openFor
              return Effect.ensuring(
                call,
                Effect.sync(() => {
                  if (circuit.trial === trial) circuit.openUntil = now
                })
              )
            }),
          openFor: (upstream) =>
            Effect.sync(() => {
              const circuit = circuits.get(upstream)
              if (circuit === undefined || circuit.failures < failures) return 0
              return Math.max(0, circuit.openUntil - clock.currentTimeMillisUnsafe())
            }),
          record: (upstream, result) =>
            Effect.sync(() => {
              watch(upstream)
              if (result === "success") return void circuits.delete(upstream)
              const circuit = circuits.get(upstream) ?? { failures: 0, openUntil: 0, trial: undefined }
              circuit.failures++
              circuit.openUntil = clock.currentTimeMillisUnsafe() + openFor
              circuit.trial = undefined
              circuits.set(upstream, circuit)
            })
        })
      })
    )
}

interface Circuit {
  /** In a row. */
  failures: number
  openUntil: number
  /** The call that tries, until it has found something. */
  trial: object | undefined
}
