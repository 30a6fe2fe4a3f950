/**
 * The client in use. After a call without an answer, later calls use a fresh client, because some states of a client are never left. The
 * old client is closed when its last call has ended.
 *
 * A connection takes 100 open calls, and the server leaves the next one waiting without a word. So calls queue here, with a deadline.
 */
import { Clock, Effect, type Scope, Semaphore } from "effect"
import { type Driver, Fault } from "./Driver.ts"

export interface Clients {
  /** Makes a call that ends by itself. One that does not end within the deadline fails with `noAnswer`. */
  readonly call: <A>(body: (driver: Driver) => Effect.Effect<A, Fault>) => Effect.Effect<A, Fault>
  /** Makes a call that lasts: the subscription. It does not queue with the others. */
  readonly hold: <A>(body: (driver: Driver) => Effect.Effect<A, Fault>) => Effect.Effect<A, Fault>
  /** Milliseconds that a call may take. */
  readonly deadline: number
  /** How often a fresh client replaced another. */
  readonly renewals: () => number
}

/** Well below 100: a call that was given up here may count on the server for a moment longer. */
const CALLS = 64

/** Milliseconds between two replacements: a node that is gone refuses the fresh client, too. */
const RENEW_EVERY = 50

/** Closes the clients with the scope, once every call was answered or its deadline has passed. */
export const make = (connect: () => Driver, deadline: number): Effect.Effect<Clients, never, Scope.Scope> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const turns = yield* Semaphore.make(CALLS)
    const leases = new Leases(connect, () => clock.currentTimeMillisUnsafe())

    // Interruptible even where the caller is not: otherwise an answer that does not come could not be given up
    const within = <A>(effect: Effect.Effect<A, Fault>, late: Fault) =>
      Effect.timeoutOrElse(Effect.interruptible(effect), { duration: deadline, orElse: () => Effect.fail(late) })
    const noAnswer = new Fault({ kind: "noAnswer", message: `No answer within ${deadline} ms` })
    const noTurn = new Fault({ kind: "unreachable", message: `${CALLS} calls are open, and none ended within ${deadline} ms` })

    yield* Effect.addFinalizer(() =>
      Effect.gen(function* () {
        leases.refuse()
        yield* Effect.timeoutOption(Effect.interruptible(leases.idle), deadline)
        leases.close()
      })
    )
    return {
      call: (body) =>
        Effect.acquireUseRelease(
          within(turns.take(1), noTurn),
          () => leases.using((driver) => within(body(driver), noAnswer)),
          () => turns.release(1)
        ),
      hold: (body) => leases.using(body),
      deadline,
      renewals: () => leases.renewals
    }
  })

interface Lease {
  readonly driver: Driver
  /** Calls that are open. */
  uses: number
}

/** The client in use, and those before it whose calls have not ended. */
class Leases {
  readonly #connect: () => Driver
  readonly #now: () => number
  readonly #open = new Set<Lease>()
  readonly #waiting = new Set<() => void>()
  #current: Lease
  #renewedAt = 0
  #isClosed = false
  renewals = 0

  constructor(connect: () => Driver, now: () => number) {
    this.#connect = connect
    this.#now = now
    this.#current = this.#lease()
  }

  using<A>(body: (driver: Driver) => Effect.Effect<A, Fault>): Effect.Effect<A, Fault> {
    return Effect.acquireUseRelease(
      Effect.suspend(() => {
        if (this.#isClosed) return Effect.fail(new Fault({ kind: "unreachable", message: "closed" }))
        this.#current.uses++
        return Effect.succeed(this.#current)
      }),
      (taken) =>
        Effect.tapError(body(taken.driver), ({ kind }) =>
          Effect.sync(() => {
            if (kind === "noAnswer" || kind === "unreachable") this.#renew(taken)
          })
        ),
      (taken) => Effect.sync(() => this.#release(taken))
    )
  }

  /** Fails every later call. */
  refuse(): void {
    this.#isClosed = true
  }

  /** Ends when no call is open. */
  readonly idle: Effect.Effect<void> = Effect.callback((resume) => {
    if (this.#isIdle()) return resume(Effect.void)
    const go = () => resume(Effect.void)
    this.#waiting.add(go)
    return Effect.sync(() => this.#waiting.delete(go))
  })

  /** Breaks off the calls that are still open. */
  close(): void {
    for (const lease of [...this.#open]) this.#close(lease)
  }

  #lease(): Lease {
    const lease: Lease = { driver: this.#connect(), uses: 0 }
    this.#open.add(lease)
    return lease
  }

  #renew(old: Lease): void {
    const now = this.#now()
    if (this.#isClosed || this.#current !== old || now - this.#renewedAt < RENEW_EVERY) return
    this.#renewedAt = now
    this.renewals++
    this.#current = this.#lease()
    if (old.uses === 0) this.#close(old)
  }

  #release(used: Lease): void {
    used.uses--
    if (used !== this.#current && used.uses === 0) this.#close(used)
    if (this.#waiting.size > 0 && this.#isIdle()) for (const go of [...this.#waiting]) go()
  }

  #isIdle(): boolean {
    return [...this.#open].every(({ uses }) => uses === 0)
  }

  #close(lease: Lease): void {
    if (this.#open.delete(lease)) lease.driver.close()
  }
}
