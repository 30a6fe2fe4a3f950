/** A circuit breaker for each upstream: after a run of failures its calls are answered at once, until one was let through and came back. */
import { Clock, Context, Effect, Layer } from "effect"
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
    /** Fails while the circuit of this upstream is open; lets one call through when it is time to try. */
    readonly check: (upstream: string) => Effect.Effect<void, UpstreamUnavailable>
    readonly record: (upstream: string, result: "success" | "failure") => Effect.Effect<void>
  }
>()("@millrace/core/billing/CircuitBreaker") {
  static readonly layer = ({ failures = 5, openFor = 10_000 }: CircuitBreakerOptions = {}): Layer.Layer<CircuitBreaker> =>
    Layer.effect(
      CircuitBreaker,
      Effect.gen(function* () {
        const clock = yield* Clock.Clock
        const circuits = new Map<string, { failures: number; openUntil: number }>()
        return CircuitBreaker.of({
          check: (upstream) =>
            Effect.suspend(() => {
              const circuit = circuits.get(upstream)
              if (circuit === undefined || circuit.failures < failures) return Effect.void
              const now = clock.currentTimeMillisUnsafe()
              if (now < circuit.openUntil) return Effect.fail(new UpstreamUnavailable({ upstream, reason: "its circuit is open" }))
              // This call tries; the others wait for what it finds
              circuit.openUntil = now + openFor
              return Effect.void
            }),
          record: (upstream, result) =>
            Effect.sync(() => {
              if (result === "success") return void circuits.delete(upstream)
              const circuit = circuits.get(upstream) ?? { failures: 0, openUntil: 0 }
              circuit.failures++
              circuit.openUntil = clock.currentTimeMillisUnsafe() + openFor
              circuits.set(upstream, circuit)
            })
        })
      })
    )
}
