/**
 * The client in use, and its successor: whenever a call gets no answer, later ones go by a fresh client, for the old one may be in a
 * state that it never leaves. The old one is closed when the last of its calls has ended.
 *
 * A connection takes a hundred open calls; the next one waits for ever, without a word. So calls wait here, and not for ever.
 */
import { Clock, Effect, Option, type Scope, Semaphore } from "effect"
import { type Driver, Fault } from "./Driver.ts"

export interface Clients {
  /** A call that ends by itself. When it does not within the deadline, it is in doubt. */
  readonly call: <A>(body: (driver: Driver) => Effect.Effect<A, Fault>) => Effect.Effect<A, Fault>
  /** A call that lasts: a subscription. The feed of those who follow the log has a place that nobody else can take. */
  readonly hold: <A>(who: "feed" | "consumer", body: (driver: Driver) => Effect.Effect<A, Fault>) => Effect.Effect<A, Fault>
  /** Milliseconds that a call may take. */
  readonly deadline: number
  /** How often a fresh client took over. */
  readonly renewals: () => number
}

/** Together below the hundred, for a call that was given up may count on the server for a moment yet. */
const CALLS = 64
const CONSUMERS = 24

/** A node that is gone refuses a fresh client as it did the old one: at most one in so many milliseconds. */
const RENEW_EVERY = 50

interface Lease {
  readonly driver: Driver
  uses: number
  isRetired: boolean
}

export const make = (connect: () => Driver, deadline: number): Effect.Effect<Clients, never, Scope.Scope> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const calls = yield* Semaphore.make(CALLS)
    const places = { feed: yield* Semaphore.make(1), consumer: yield* Semaphore.make(CONSUMERS) }
    const waiting = new Set<() => void>()
    const leases = new Set<Lease>()
    const lease = (): Lease => {
      const made: Lease = { driver: connect(), uses: 0, isRetired: false }
      leases.add(made)
      return made
    }
    let current = lease()
    let renewedAt = 0
    let renewals = 0
    let isClosed = false

    const close = (old: Lease) => {
      if (leases.delete(old)) old.driver.close()
    }

    const renew = (old: Lease) => {
      const now = clock.currentTimeMillisUnsafe()
      if (isClosed || current !== old || now - renewedAt < RENEW_EVERY) return
      renewedAt = now
      renewals++
      current = lease()
      old.isRetired = true
      if (old.uses === 0) close(old)
    }

    const release = (used: Lease) => {
      used.uses--
      if (used.isRetired && used.uses === 0) close(used)
      if ([...leases].every(({ uses }) => uses === 0)) for (const go of [...waiting]) go()
    }

    const using = <A>(body: (driver: Driver) => Effect.Effect<A, Fault>): Effect.Effect<A, Fault> =>
      Effect.acquireUseRelease(
        Effect.suspend(() => {
          if (isClosed) return Effect.fail(new Fault({ kind: "unreachable", message: "closed" }))
          current.uses++
          return Effect.succeed(current)
        }),
        (taken) =>
          Effect.tapError(body(taken.driver), ({ kind }) =>
            Effect.sync(() => {
              if (kind === "noAnswer" || kind === "unreachable") renew(taken)
            })
          ),
        (taken) => Effect.sync(() => release(taken))
      )

    // Interruptible wherever it is called: or else nobody could stop waiting for an answer that does not come
    const within = <A>(effect: Effect.Effect<A, Fault>, late: Fault) =>
      Effect.timeoutOrElse(Effect.interruptible(effect), { duration: deadline, orElse: () => Effect.fail(late) })

    const noAnswer = new Fault({ kind: "noAnswer", message: `No answer within ${deadline} ms` })
    const noTurn = new Fault({ kind: "unreachable", message: `${CALLS} calls are open, and none ended within ${deadline} ms` })
    const noRoom = new Fault({ kind: "unreachable", message: `${CONSUMERS} subscriptions are open: another store can open more` })

    const call: Clients["call"] = (body) =>
      Effect.acquireUseRelease(
        within(calls.take(1), noTurn),
        () => using((driver) => within(body(driver), noAnswer)),
        () => calls.release(1)
      )

    const hold: Clients["hold"] = (who, body) =>
      Effect.flatMap(
        places[who].withPermitsIfAvailable(1)(using(body)),
        Option.match({ onNone: () => Effect.fail(noRoom), onSome: Effect.succeed })
      )

    const idle: Effect.Effect<void> = Effect.callback((resume) => {
      if ([...leases].every(({ uses }) => uses === 0)) return resume(Effect.void)
      const go = () => resume(Effect.void)
      waiting.add(go)
      return Effect.sync(() => waiting.delete(go))
    })

    yield* Effect.addFinalizer(() =>
      Effect.gen(function* () {
        isClosed = true
        // What was sent is answered first
        yield* Effect.timeoutOption(Effect.interruptible(idle), deadline)
        for (const one of [...leases]) close(one)
      })
    )
    return { call, hold, deadline, renewals: () => renewals }
  })
