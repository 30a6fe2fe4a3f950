/** A circuit breaker for each upstream: after a run of failures its calls fail at once, until a trial call has succeeded. */
import { Clock, Context, Effect, Layer } from "effect"
import * as Metrics from "../observability/Metrics.ts"
import { UpstreamUnavailable } from "./OperationError.ts"

/** The reason of calls that fail because the circuit is open. */
export const CIRCUIT_OPEN = "its circuit is open"

export interface CircuitBreakerOptions {
  /** Consecutive failures that open a circuit: 5 by default. */
  readonly failures?: number
  /** How long a circuit stays open before a trial call, milliseconds: 10,000 by default. */
  readonly openFor?: number
}

/** How an upstream is. */
export interface CircuitStatus {
  readonly upstream: string
  /** Failures since its last success. */
  readonly failures: number
  /** Milliseconds for which its calls still fail at once. */
  readonly openFor: number
}

export class CircuitBreaker extends Context.Service<
  CircuitBreaker,
  {
    /**
     * Admits a call, or returns why it fails at once. The caller calls what it returns when the call has ended. While the upstream's circuit is
     * open, all calls fail. After `openFor`, one trial call runs, and the others still fail until it records a result. If the trial ends
     * without a result, the next call becomes the trial.
     */
    readonly admit: (upstream: string) => UpstreamUnavailable | (() => void)
    /** Runs a call if it is admitted. */
    readonly guard: <A, E, R>(upstream: string, call: Effect.Effect<A, E, R>) => Effect.Effect<A, E | UpstreamUnavailable, R>
    /** Milliseconds for which calls still fail at once: 0 while the circuit is closed or a trial call may run. */
    readonly openFor: (upstream: string) => Effect.Effect<number>
    /** The upstreams that were called since this process started, by name. */
    readonly circuits: Effect.Effect<ReadonlyArray<CircuitStatus>>
    /** Records the result of a call of the upstream. */
    readonly record: (upstream: string, result: "success" | "failure") => Effect.Effect<void>
    /** {@link record} without an effect. */
    readonly note: (upstream: string, result: "success" | "failure") => void
  }
>()("@millrace/core/work/CircuitBreaker") {
  static readonly layer = ({ failures = 5, openFor = 10_000 }: CircuitBreakerOptions = {}): Layer.Layer<CircuitBreaker> =>
    Layer.effect(
      CircuitBreaker,
      Effect.gen(function* () {
        const clock = yield* Clock.Clock
        const circuits = new Map<string, Circuit>()
        const called = new Set<string>()
        const open = (upstream: string) => {
          const circuit = circuits.get(upstream)
          return circuit !== undefined && circuit.failures >= failures ? circuit : undefined
        }
        const watch = yield* Metrics.circuits((upstream) => open(upstream) !== undefined)
        const admit = (upstream: string): UpstreamUnavailable | (() => void) => {
          const circuit = open(upstream)
          if (circuit === undefined) return NOTHING
          const now = clock.currentTimeMillisUnsafe()
          if (now < circuit.openUntil) return new UpstreamUnavailable({ upstream, reason: CIRCUIT_OPEN })
          const trial = {}
          circuit.trial = trial
          circuit.openUntil = now + openFor
          return () => {
            if (circuit.trial === trial) circuit.openUntil = now
          }
        }
        const note = (upstream: string, result: "success" | "failure"): void => {
          watch(upstream)
          called.add(upstream)
          if (result === "success") return void circuits.delete(upstream)
          const circuit = circuits.get(upstream) ?? { failures: 0, openUntil: 0, trial: undefined }
          circuit.failures++
          circuit.openUntil = clock.currentTimeMillisUnsafe() + openFor
          circuit.trial = undefined
          circuits.set(upstream, circuit)
        }
        return CircuitBreaker.of({
          admit,
          guard: <A, E, R>(upstream: string, call: Effect.Effect<A, E, R>) =>
            Effect.acquireUseRelease(
              Effect.suspend(() => {
                const ended = admit(upstream)
                return typeof ended === "function" ? Effect.succeed(ended) : Effect.fail(ended)
              }),
              () => call,
              (ended) => Effect.sync(ended)
            ),
          openFor: (upstream) => Effect.sync(() => Math.max(0, (open(upstream)?.openUntil ?? 0) - clock.currentTimeMillisUnsafe())),
          circuits: Effect.sync(() => {
            const now = clock.currentTimeMillisUnsafe()
            return [...called].sort().map((upstream) => ({
              upstream,
              failures: circuits.get(upstream)?.failures ?? 0,
              openFor: Math.max(0, (open(upstream)?.openUntil ?? 0) - now)
            }))
          }),
          record: (upstream, result) => Effect.sync(() => note(upstream, result)),
          note
        })
      })
    )
}

const NOTHING = () => {}

interface Circuit {
  /** Consecutive failures. */
  failures: number
  openUntil: number
  /** The trial call, until it records a result. */
  trial: object | undefined
}
