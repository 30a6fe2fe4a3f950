/**
 * The pace of requests to an upstream that asks for one, kept by all hosts on a state store together: whoever sends holds a row of the store
 * for as long as nobody else may send, by its own monotonic clock. So no two clocks are compared. The accounts of a host have its turns in
 * rotation; hosts get theirs by chance.
 */
import { StateStore } from "@millrace/event-sourcing"
import { Clock, Context, Deferred, Duration, Effect, Layer } from "effect"
import { AccountTurns } from "./AccountTurns.ts"
import { UpstreamUnavailable } from "./OperationError.ts"

export interface Terms {
  /** The least time between two requests. */
  readonly every: Duration.Input
  /** The longest wait for a turn, which bounds how many callers wait. */
  readonly patience: Duration.Input
}

const SPACE = "pace"
/** How long the row of a host that died is in the way, beyond `every`: milliseconds. More than clocks may differ. */
const GRACE = 10_000
/** How often a host looks whether the row of another is gone. */
const POLL = Duration.millis(50)

const NOTHING = new Uint8Array()

/** The account on whose behalf a request is sent. Requests without one share their turns as an account would. */
export const PaceAccount = Context.Reference<string>("@millrace/core/work/Pace/PaceAccount", { defaultValue: () => "" })

const make = Effect.gen(function* () {
  const store = yield* StateStore.StateStore
  const clock = yield* Clock.Clock
  const scope = yield* Effect.scope
  /** A turn is held by who sends, for as long as nobody else may. */
  const gates = new Map<string, AccountTurns>()

  const gateOf = (upstream: string): AccountTurns => {
    const gate = gates.get(upstream) ?? new AccountTurns()
    gates.set(upstream, gate)
    return gate
  }

  /**
   * Waits until no host sends, and takes the row. Returns its version. Only the waiting can be interrupted: a row whose version nobody knows
   * would be in the way of all hosts until it expires.
   */
  const seize = (upstream: string, every: number, wait: Effect.Effect<void>): Effect.Effect<number, StateStore.StateUnavailable> =>
    Effect.suspend(() => {
      const expiresAt = Math.ceil(clock.currentTimeMillisUnsafe() + every + GRACE)
      return store.write([{ _tag: "put", space: SPACE, key: upstream, value: NOTHING, expiresAt, expected: "absent" }])
    }).pipe(Effect.catchTag("StateConflict", () => Effect.andThen(wait, seize(upstream, every, wait))))

  const leave = (upstream: string, version: number) =>
    Effect.ignore(store.write([{ _tag: "remove", space: SPACE, key: upstream, expected: version }]))

  const take = (upstream: string, gate: AccountTurns, account: string, every: number) =>
    Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        const turn = gate.ask(account)
        const end = Effect.sync(() => gate.end(turn))
        const taken = Effect.andThen(restore(Deferred.await(turn.begun)), seize(upstream, every, restore(Effect.sleep(POLL))))
        const version = yield* Effect.onError(taken, () => end)
        const later = Effect.ensuring(Effect.andThen(Effect.sleep(every), leave(upstream, version)), end)
        yield* Effect.forkIn(later, scope, { startImmediately: true })
      })
    )

  return {
    /**
     * Waits until a request may be sent, which must follow at once. Isolated `UpstreamUnavailable` if that takes longer than `patience`, at
     * once if so many turns go before it, or if the store does not answer.
     */
    turn: (upstream: string, terms: Terms): Effect.Effect<void, UpstreamUnavailable> =>
      Effect.flatMap(PaceAccount, (account) => {
        const [every, patience] = [terms.every, terms.patience].map((time) => Duration.toMillis(Duration.fromInputUnsafe(time))) as [
          number,
          number
        ]
        const gate = gateOf(upstream)
        const before = gate.before(account)
        const busy = new UpstreamUnavailable({
          upstream,
          reason: "too many requests wait for their turn",
          isolated: true,
          retryAfter: Math.max(1, Math.ceil((before * every) / 1_000))
        })
        if (before * every > patience) return Effect.fail(busy)
        return take(upstream, gate, account, every).pipe(
          Effect.catchTag("StateUnavailable", ({ reason }) => Effect.fail(new UpstreamUnavailable({ upstream, reason, isolated: true }))),
          Effect.timeoutOrElse({ duration: patience, orElse: () => Effect.fail(busy) })
        )
      })
  }
})

export class Pace extends Context.Service<Pace, Effect.Success<typeof make>>()("@millrace/core/work/Pace") {
  static readonly layer: Layer.Layer<Pace, never, StateStore.StateStore> = Layer.effect(this, make)
}
