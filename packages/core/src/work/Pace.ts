/**
 * The pace of requests to an upstream that asks for one, kept by all hosts on a state store together: whoever sends holds a row of the store
 * for as long as nobody else may send, by its own monotonic clock. So no two clocks are compared.
 */
import { StateStore } from "@millrace/event-sourcing"
import { Clock, Context, Duration, Effect, Layer, Semaphore } from "effect"
import { UpstreamUnavailable } from "./OperationError.ts"

export interface Terms {
  /** The least time between two requests. */
  readonly every: Duration.Input
  /** The longest wait for a turn. */
  readonly patience: Duration.Input
}

const SPACE = "pace"
/** How long the row of a host that died is in the way, beyond `every`: milliseconds. More than clocks may differ. */
const GRACE = 10_000
/** How often a host looks whether the row of another is gone. */
const POLL = Duration.millis(50)

const NOTHING = new Uint8Array()

interface Gate {
  /** Held by who sends, for as long as nobody else may. */
  readonly turn: Semaphore.Semaphore
  /** Calls of this host that wait. */
  waiting: number
}

const make = Effect.gen(function* () {
  const store = yield* StateStore.StateStore
  const clock = yield* Clock.Clock
  const scope = yield* Effect.scope
  const gates = new Map<string, Gate>()

  const gateOf = (upstream: string): Gate => {
    const gate = gates.get(upstream) ?? { turn: Semaphore.makeUnsafe(1), waiting: 0 }
    gates.set(upstream, gate)
    return gate
  }

  /** Waits until no host sends, and takes the row. Returns its version. */
  const seize = (upstream: string, every: number): Effect.Effect<number, StateStore.StateUnavailable> =>
    Effect.suspend(() => {
      const expiresAt = Math.ceil(clock.currentTimeMillisUnsafe() + every + GRACE)
      return store.write([{ _tag: "put", space: SPACE, key: upstream, value: NOTHING, expiresAt, expected: "absent" }])
    }).pipe(Effect.catchTag("StateConflict", () => Effect.delay(seize(upstream, every), POLL)))

  const leave = (upstream: string, version: number) =>
    Effect.ignore(store.write([{ _tag: "remove", space: SPACE, key: upstream, expected: version }]))

  const take = (upstream: string, gate: Gate, every: number) =>
    Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        yield* restore(gate.turn.take(1))
        const version = yield* Effect.onError(restore(seize(upstream, every)), () => gate.turn.release(1))
        const later = Effect.ensuring(Effect.andThen(Effect.sleep(every), leave(upstream, version)), gate.turn.release(1))
        yield* Effect.forkIn(later, scope, { startImmediately: true })
      })
    )

  return {
    /**
     * Waits until a request may be sent, which must follow at once. Isolated `UpstreamUnavailable` if that takes longer than `patience`, at
     * once if so many wait already, or if the store does not answer.
     */
    turn: (upstream: string, terms: Terms): Effect.Effect<void, UpstreamUnavailable> =>
      Effect.suspend(() => {
        const [every, patience] = [terms.every, terms.patience].map((time) => Duration.toMillis(Duration.fromInputUnsafe(time))) as [
          number,
          number
        ]
        const gate = gateOf(upstream)
        const busy = new UpstreamUnavailable({
          upstream,
          reason: "too many requests wait for their turn",
          isolated: true,
          retryAfter: Math.max(1, Math.ceil((gate.waiting * every) / 1_000))
        })
        if (gate.waiting * every > patience) return Effect.fail(busy)
        gate.waiting++
        return take(upstream, gate, every).pipe(
          Effect.catchTag("StateUnavailable", ({ reason }) => Effect.fail(new UpstreamUnavailable({ upstream, reason, isolated: true }))),
          Effect.timeoutOrElse({ duration: patience, orElse: () => Effect.fail(busy) }),
          Effect.ensuring(Effect.sync(() => gate.waiting--))
        )
      })
  }
})

export class Pace extends Context.Service<Pace, Effect.Success<typeof make>>()("@millrace/core/work/Pace") {
  static readonly layer: Layer.Layer<Pace, never, StateStore.StateStore> = Layer.effect(this, make)
}
