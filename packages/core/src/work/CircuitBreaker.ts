/** A circuit breaker for each upstream: after a run of failures its calls fail at once, until one that was let through has succeeded. */
import { Clock, Context, Effect, Layer } from "effect"
import * as Metrics from "../observability/Metrics.ts"
import { UpstreamUnavailable } from "./OperationError.ts"

/** Why a call fails that was not let through. */
export const CIRCUIT_OPEN = "its circuit is open"

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
     * Fails at once while the circuit of this upstream is open. When it is time to try, one call is let through; the others still fail
     * until it shows something. Where it ends without having asked the upstream, the next call may try.
     */
    readonly guard: <A, E, R>(upstream: string, call: Effect.Effect<A, E, R>) => Effect.Effect<A, E | UpstreamUnavailable, R>
    /** Milliseconds for which its calls still fail at once: 0 while the circuit is closed, or when it is time to try. */
    readonly openFor: (upstream: string) => Effect.Effect<number>
    /** What a call showed. */
    readonly record: (upstream: string, result: "success" | "failure") => Effect.Effect<void>
  }
>()("@millrace/core/work/CircuitBreaker") {
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
              if (now < circuit.openUntil) return Effect.fail(new UpstreamUnavailable({ upstream, reason: CIRCUIT_OPEN }))
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
  /** The call that was let through, until it has shown something. */
  trial: object | undefined
}
