/**
 * Deadlines fall due at a time unless an event clears them first, such as the expiry of a hold. A projection keeps the open deadlines. One
 * host at a time sweeps: it acts on the due deadlines. Only an event clears a deadline, so after a crash it is acted on again. A deadline
 * may also lapse. A process that does not sweep follows no deadlines, unless it is asked for them.
 */
import { Clock, Duration, Effect, Exit, FiberSet, type Scope, Semaphore } from "effect"
import type { Decider } from "./Decider.ts"
import type { Tagged } from "./EventCodec.ts"
import * as EventHandlers from "./EventHandlers.ts"
import type { EventStore, RecordedEvent } from "./EventStore.ts"
import * as Following from "./Following.ts"
import * as HashChain from "./HashChain.ts"
import * as Lease from "./Lease.ts"
import { byTime, type Deadline, OpenDeadlines, StoredDeadlines } from "./OpenDeadlines.ts"
import * as Projection from "./Projection.ts"
import type { StateStore } from "./StateStore.ts"

export { type Deadline, OpenDeadlines } from "./OpenDeadlines.ts"

export type Change =
  | {
      readonly _tag: "set"
      readonly key: string
      readonly dueAt: number
      readonly payload?: string
      /**
       * For a deadline that may find nothing to do, so that no event clears it: when it lapses. A host whose action succeeded does not act on it
       * again.
       */
      readonly until?: number
    }
  | { readonly _tag: "clear"; readonly key: string }

export interface Definition<E = never, R = never> extends Following.Selection {
  /** Names the projection and the lease. Never changes. */
  readonly name: string
  /** Raised whenever `schedule` or the selection changes. */
  readonly version: number
  /** The deadlines that an event sets and clears. Must not throw. */
  readonly schedule: (event: RecordedEvent) => ReadonlyArray<Change>
  /**
   * Acts on a due deadline, usually by a command whose event clears it. It is called at each sweep until the deadline is cleared. After a
   * crash or a change of hosts it may run twice at once, so it must be idempotent.
   */
  readonly onDue: (deadline: Deadline) => Effect.Effect<void, E, R>
}

export type Schedule = Required<Following.Selection> & Pick<Definition, "schedule">

/** Typed handlers of a decider's events: each returns the changes of its event. Spread the result into a {@link Definition}. */
export const of = <Event extends Tagged>(
  decider: Pick<Decider<never, Event>, "category" | "codec">,
  handlers: EventHandlers.Handlers<Event, [], ReadonlyArray<Change>>,
  options?: EventHandlers.Options<Event>
): Schedule => {
  const { categories, dispatch, types } = EventHandlers.of(decider, handlers, options)
  return { categories, types, schedule: (event) => dispatch(event) ?? [] }
}

/** Combines the handlers of several deciders. */
export const all = (...schedules: ReadonlyArray<Schedule>): Schedule => ({
  categories: schedules.flatMap(({ categories }) => categories),
  types: schedules.flatMap(({ types }) => types),
  schedule: (event) => {
    // Nearly always one of them schedules something, so its list is the answer
    let changes: ReadonlyArray<Change> = []
    for (const { schedule } of schedules) {
      const more = schedule(event)
      if (more.length > 0) changes = changes.length === 0 ? more : [...changes, ...more]
    }
    return changes
  }
})

export interface Options extends Projection.Options, Lease.Options {
  /** The longest time between two sweeps while a deadline is open: 30 seconds by default. An earlier deadline does not wait for it. */
  readonly sweepEvery?: Duration.Input
  /** How many deadlines are acted on at once: 16 by default. */
  readonly concurrency?: number
  /** After this time an action is interrupted and counts as failed: one minute by default. */
  readonly timeout?: Duration.Input
}

export interface Failing extends Following.Retrying {
  readonly deadline: Deadline
  /** Milliseconds since 1970; infinity while it is being acted on. */
  readonly retryAt: number
}

export interface Status {
  /** Whether this process sweeps. */
  readonly leader: boolean
  /** The deadlines whose last action failed at this process, 100 at most. */
  readonly failing: ReadonlyArray<Failing>
  /** The last store failure of the sweep, which is retried. */
  readonly trouble: Following.Retrying | undefined
  readonly projection: Projection.Status
}

type ReadError = Projection.ProjectionBehind | Projection.ProjectionStopped

export interface Deadlines {
  /** The deadlines that are due at `now` (milliseconds since 1970), the oldest first. */
  readonly overdue: (now: number, options?: Projection.ReadOptions) => Effect.Effect<ReadonlyArray<Deadline>, ReadError>
  /** The open deadlines, the earliest first. */
  readonly list: (options?: Projection.ReadOptions & { readonly limit?: number }) => Effect.Effect<ReadonlyArray<Deadline>, ReadError>
  readonly rebuild: Projection.Projection<OpenDeadlines>["rebuild"]
  readonly status: Effect.Effect<Status>
}

// the sweep

/** The longest pause after failures, in milliseconds; `sweepEvery` counts if it is longer. */
const MAX_PAUSE = 10 * 60_000

const FAILING_SHOWN = 100

/** Only the process that sweeps needs the deadlines all the time. */
const IDLE_AFTER = "1 minute"

/** Keeps the deadlines and acts on the due ones in the background, until the scope closes. */
export const make = <E, R>(
  definition: Definition<E, R>,
  options: Options = {}
): Effect.Effect<Deadlines, never, EventStore | StateStore | Scope.Scope | R> =>
  Effect.gen(function* () {
    const { name, schedule, onDue, ...of } = definition
    const projection = yield* Projection.make(
      {
        ...of,
        name,
        state: StoredDeadlines,
        initial: () => new OpenDeadlines(),
        evolve: (open, event) => {
          for (const change of schedule(event))
            if (change._tag === "clear") open.clear(change.key)
            else {
              const { key, dueAt, payload = "", until } = change
              if (until === undefined) open.set({ key, dueAt, payload })
              else open.set({ key, dueAt, payload, until }, HashChain.timeOf(event))
            }
          return open
        }
      },
      { idleAfter: IDLE_AFTER, ...options }
    )
    const sweeper = new Sweeper(projection, onDue, options)
    yield* Effect.forkScoped(Lease.keep(`deadlines/${name}`, options)(() => projection.keep(sweeper.lead)))
    return {
      overdue: (now, options) => Effect.map(projection.read(options), ({ state }) => state.at(now).due),
      list: (options) => Effect.map(projection.read(options), ({ state }) => [...state.values()].sort(byTime).slice(0, options?.limit)),
      rebuild: projection.rebuild,
      status: Effect.map(projection.status, (status) => ({ ...sweeper.status(), projection: status }))
    }
  })

/** A deadline that was acted on and may still be open. */
interface Acted {
  readonly deadline: Deadline
  /** When to act again, milliseconds since 1970; infinity while it is being acted on. */
  readonly retryAt: number
  readonly failing?: Following.Retrying
}

/** Acts on the due deadlines while this process holds the lease. */
class Sweeper<E, R> {
  readonly #projection: Projection.Projection<OpenDeadlines>
  readonly #onDue: Definition<E, R>["onDue"]
  readonly #options: Options
  /** Milliseconds between two sweeps. */
  readonly #pause: number
  /** By key. */
  readonly #acted = new Map<string, Acted>()
  #leader = false
  #trouble: Following.Retrying | undefined

  constructor(projection: Projection.Projection<OpenDeadlines>, onDue: Definition<E, R>["onDue"], options: Options) {
    this.#projection = projection
    this.#onDue = onDue
    this.#options = options
    this.#pause = Duration.toMillis(options.sweepEvery ?? "30 seconds")
  }

  status(): Omit<Status, "projection"> {
    const failing: Array<Failing> = []
    for (const { deadline, retryAt, failing: retrying } of this.#acted.values())
      if (retrying !== undefined && failing.push({ ...retrying, deadline, retryAt }) === FAILING_SHOWN) break
    return { leader: this.#leader, failing, trouble: this.#trouble }
  }

  readonly #report: Following.Report = (retrying) => {
    this.#trouble = retrying
  }

  /** Sweeps for ever. */
  get lead(): Effect.Effect<never, never, R> {
    return Effect.gen({ self: this }, function* () {
      this.#leader = true
      const places = yield* Semaphore.make(this.#options.concurrency ?? 16)
      const acting = yield* FiberSet.make()
      const round = Effect.andThen(this.#sweep(places, acting), this.#rest)
      return yield* Effect.forever(Following.retryForever(round, this.#report))
    }).pipe(
      Effect.scoped,
      Effect.ensuring(
        Effect.sync(() => {
          this.#leader = false
          this.#acted.clear()
        })
      )
    )
  }

  #last(deadline: Deadline): Acted | undefined {
    const entry = this.#acted.get(deadline.key)
    return entry?.deadline === deadline ? entry : undefined
  }

  #actAt(deadline: Deadline): number {
    return this.#last(deadline)?.retryAt ?? deadline.dueAt
  }

  /** Starts the actions of all due deadlines as places become free, and does not wait for slow ones. */
  #sweep(places: Semaphore.Semaphore, acting: FiberSet.FiberSet) {
    return Effect.gen({ self: this }, function* () {
      const { state: open } = yield* this.#projection.caughtUp()
      for (const [key, { deadline }] of this.#acted) if (!open.has(deadline)) this.#acted.delete(key)
      const now = yield* Clock.currentTimeMillis
      for (const deadline of open.at(now).due) {
        if (this.#actAt(deadline) > now) continue
        yield* places.take(1)
        // The deadline may have been cleared while it waited for its place
        if (open.has(deadline)) yield* FiberSet.run(acting, Effect.ensuring(this.#act(open, deadline), places.release(1)))
        else yield* places.release(1)
      }
      this.#report(undefined)
    })
  }

  #act(open: OpenDeadlines, deadline: Deadline): Effect.Effect<void, never, R> {
    return Effect.gen({ self: this }, function* () {
      const before = this.#last(deadline)
      this.#acted.set(deadline.key, { ...before, deadline, retryAt: Number.POSITIVE_INFINITY })
      const exit = yield* Effect.exit(Effect.timeout(this.#onDue(deadline), this.#options.timeout ?? "1 minute"))
      const now = yield* Clock.currentTimeMillis
      if (this.#last(deadline) !== undefined) this.#acted.delete(deadline.key)
      if (!open.has(deadline)) return
      if (Exit.isSuccess(exit)) return void this.#acted.set(deadline.key, { deadline, retryAt: deadline.until ?? now + this.#pause })
      const attempts = 1 + (before?.failing?.attempts ?? 0)
      const later = Math.min(this.#pause * 2 ** (attempts - 1), Math.max(this.#pause, MAX_PAUSE))
      const failing = { reason: Following.reasonOf(exit.cause), attempts }
      this.#acted.set(deadline.key, { deadline, retryAt: now + later, failing })
    })
  }

  /** Waits until a deadline is due, a retry is due, or an earlier deadline is set; at most until the next sweep. */
  get #rest() {
    return Effect.gen({ self: this }, function* () {
      const now = yield* Clock.currentTimeMillis
      const { state: open } = yield* this.#projection.read()
      open.soonest = Number.POSITIVE_INFINITY
      if (open.size === 0) {
        this.#acted.clear()
        // A rebuild replaces the state
        return yield* this.#projection.until(({ state }) => state !== open || state.size > 0)
      }
      const { due, next } = open.at(now)
      const until = due.reduce((until, deadline) => Math.min(until, this.#actAt(deadline)), Math.min(next, now + this.#pause))
      const sooner = this.#projection.until(({ state }) => state !== open || state.soonest < until)
      if (until > now) yield* Effect.raceFirst(Effect.sleep(Math.ceil(until - now)), sooner)
    })
  }
}
