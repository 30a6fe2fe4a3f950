/**
 * Deadlines: what falls due at a time unless the log says otherwise before, such as a hold that expires. A projection keeps the
 * open ones; at one host at a time a sweep acts on those that are due. Only an event closes a deadline, so nothing is lost in a
 * crash: it is acted on again.
 */
import { Clock, Duration, Effect, Exit, FiberSet, Schema, SchemaTransformation, type Scope, Semaphore } from "effect"
import type { Decider } from "./Decider.ts"
import type { Tagged } from "./EventCodec.ts"
import * as EventHandlers from "./EventHandlers.ts"
import type { EventStore, RecordedEvent } from "./EventStore.ts"
import * as Following from "./Following.ts"
import * as Lease from "./Lease.ts"
import * as Projection from "./Projection.ts"
import type { StateStore } from "./StateStore.ts"

export interface Deadline {
  /** What is due: one deadline for each key, the last one set. */
  readonly key: string
  /** Milliseconds since 1970. */
  readonly dueAt: number
  /** What `onDue` needs to know; small, for all that is open is in memory. */
  readonly payload: string
}

export type Change =
  | { readonly _tag: "set"; readonly key: string; readonly dueAt: number; readonly payload?: string }
  | { readonly _tag: "clear"; readonly key: string }

export interface Definition<E = never, R = never> extends Following.Selection {
  /** Names the projection and the lease. Never changes. */
  readonly name: string
  /** Counts up whenever `schedule` or the selection change. */
  readonly version: number
  /** The deadlines that an event sets and clears, in order. Must not throw. */
  readonly schedule: (event: RecordedEvent) => ReadonlyArray<Change>
  /**
   * Acts on what is due, usually by a command whose event clears it. Never called before its time; called again, sweep after sweep,
   * until it is cleared, and after a crash or a change of hosts maybe twice at once: so it must be idempotent.
   */
  readonly onDue: (deadline: Deadline) => Effect.Effect<void, E, R>
}

export type Schedule = Required<Following.Selection> & Pick<Definition, "schedule">

/** Typed handlers of a decider's events: each returns what its event changes. Spread the result into a {@link Definition}. */
export const of = <Event extends Tagged>(
  decider: Pick<Decider<never, Event>, "category" | "codec">,
  handlers: EventHandlers.Handlers<Event, [], ReadonlyArray<Change>>,
  options?: EventHandlers.Options<Event>
): Schedule => {
  const { categories, dispatch, types } = EventHandlers.of(decider, handlers, options)
  return { categories, types, schedule: (event) => dispatch(event) ?? [] }
}

/** The handlers of several deciders as one. */
export const all = (...schedules: ReadonlyArray<Schedule>): Schedule => ({
  categories: schedules.flatMap(({ categories }) => categories),
  types: schedules.flatMap(({ types }) => types),
  schedule: (event) => schedules.flatMap(({ schedule }) => schedule(event))
})

export interface Options extends Projection.Options, Lease.Options {
  /** The longest time between two sweeps while anything is open: 30 seconds by default. What falls due in between is not kept waiting. */
  readonly sweepEvery?: Duration.Input
  /** How many are acted on at once: 16 by default. */
  readonly concurrency?: number
  /** What takes longer counts as failed: one minute by default. */
  readonly timeout?: Duration.Input
}

export interface Failing extends Following.Trouble {
  readonly deadline: Deadline
  /** Milliseconds since 1970; infinity while it is being tried. */
  readonly retryAt: number
}

export interface Status {
  /** Whether this process is the one that sweeps. */
  readonly leader: boolean
  /** Those that failed, at this process; the first hundred. */
  readonly failing: ReadonlyArray<Failing>
  /** The sweep does not get through to its stores. It is tried again. */
  readonly trouble: Following.Trouble | undefined
  readonly projection: Projection.Status
}

type ReadError = Projection.ProjectionBehind | Projection.ProjectionStopped

export interface Deadlines {
  /** The open ones that are due at `now` (milliseconds since 1970), the oldest first. */
  readonly overdue: (now: number, options?: Projection.ReadOptions) => Effect.Effect<ReadonlyArray<Deadline>, ReadError>
  /** The open ones, the next first. */
  readonly list: (options?: Projection.ReadOptions & { readonly limit?: number }) => Effect.Effect<ReadonlyArray<Deadline>, ReadError>
  /** When the next one is or was due, in milliseconds since 1970; nothing while none is open. */
  readonly nextDueAt: (options?: Projection.ReadOptions) => Effect.Effect<number | undefined, ReadError>
  readonly rebuild: Projection.Projection<OpenDeadlines>["rebuild"]
  readonly status: Effect.Effect<Status>
}

// the open ones

const byTime = (a: Deadline, b: Deadline) => a.dueAt - b.dueAt || (a.key < b.key ? -1 : 1)

/**
 * By key, and a binary heap by time in which the moved and the cleared stay until they are on top or too many. Setting one of a
 * million costs a few steps; finding the due ones about as many as there are.
 */
export class OpenDeadlines {
  readonly #open = new Map<string, Deadline>()
  #heap: Array<Deadline> = []
  /** The earliest time set since this was last put back to infinity, by the one sweep that waits for it. */
  soonest = Number.POSITIVE_INFINITY

  get size(): number {
    return this.#open.size
  }

  /** In no order. */
  values(): Iterable<Deadline> {
    return this.#open.values()
  }

  /** Whether it is open, just as it is. */
  has(deadline: Deadline): boolean {
    return this.#open.get(deadline.key) === deadline
  }

  set(deadline: Deadline): void {
    if (!Number.isFinite(deadline.dueAt)) throw new Error(`${deadline.key} due at ${deadline.dueAt}`)
    this.#open.set(deadline.key, deadline)
    this.soonest = Math.min(this.soonest, deadline.dueAt)
    this.#rise(this.#heap.length, deadline)
    this.#tidy()
  }

  clear(key: string): void {
    this.#open.delete(key)
    this.#tidy()
  }

  /** Those due at `now`, the oldest first, and when the next one after them is. */
  at(now: number): { readonly due: ReadonlyArray<Deadline>; readonly next: number } {
    for (let top = this.#heap[0]; top !== undefined && !this.has(top); top = this.#heap[0]) {
      const last = this.#heap.pop()
      if (last !== undefined && last !== top) this.#sink(0, last)
    }
    const due: Array<Deadline> = []
    let next = Number.POSITIVE_INFINITY
    const places = [0]
    for (let place = places.pop(); place !== undefined; place = places.pop()) {
      const deadline = this.#heap[place]
      // Nothing below is earlier
      if (deadline === undefined || deadline.dueAt >= next) continue
      const open = this.has(deadline)
      if (open && deadline.dueAt > now) next = deadline.dueAt
      else {
        if (open) due.push(deadline)
        places.push(2 * place + 1, 2 * place + 2)
      }
    }
    return { due: due.sort(byTime), next }
  }

  #tidy(): void {
    if (this.#heap.length <= 2 * this.#open.size + 1_000) return
    this.#heap = [...this.#open.values()]
    for (let place = (this.#heap.length >> 1) - 1; place >= 0; place--) {
      const deadline = this.#heap[place]
      if (deadline !== undefined) this.#sink(place, deadline)
    }
  }

  #rise(place: number, deadline: Deadline): void {
    while (place > 0) {
      const above = (place - 1) >> 1
      const parent = this.#heap[above]
      if (parent === undefined || parent.dueAt <= deadline.dueAt) break
      this.#heap[place] = parent
      place = above
    }
    this.#heap[place] = deadline
  }

  #sink(place: number, deadline: Deadline): void {
    for (;;) {
      const left = this.#heap[2 * place + 1]
      const right = this.#heap[2 * place + 2]
      const child = right !== undefined && left !== undefined && right.dueAt < left.dueAt ? right : left
      if (child === undefined || child.dueAt >= deadline.dueAt) break
      this.#heap[place] = child
      place = 2 * place + (child === left ? 1 : 2)
    }
    this.#heap[place] = deadline
  }
}

const Stored = Schema.Array(Schema.Tuple([Schema.String, Schema.Finite, Schema.String])).pipe(
  Schema.decodeTo(
    Schema.instanceOf(OpenDeadlines),
    SchemaTransformation.transform({
      decode: (rows) => {
        const open = new OpenDeadlines()
        for (const [key, dueAt, payload] of rows) open.set({ key, dueAt, payload })
        return open
      },
      encode: (open) => Array.from(open.values(), ({ key, dueAt, payload }) => [key, dueAt, payload] as const)
    })
  )
)

// the sweep

/** The longest pause after failures, in milliseconds, unless sweeps are rarer still. */
const MAX_PAUSE = 10 * 60_000

const FAILING_SHOWN = 100

/** Begins to keep the deadlines and to act on those that are due, in the background, for as long as the scope is open. */
export const make = <E, R>(
  definition: Definition<E, R>,
  options: Options = {}
): Effect.Effect<Deadlines, never, EventStore | StateStore | Scope.Scope | R> =>
  Effect.gen(function* () {
    const { name, schedule, onDue, ...of } = definition
    const { concurrency = 16, timeout = "1 minute" } = options
    const pause = Duration.toMillis(options.sweepEvery ?? "30 seconds")

    const projection = yield* Projection.make(
      {
        ...of,
        name,
        state: Stored,
        initial: () => new OpenDeadlines(),
        evolve: (open, event) => {
          for (const change of schedule(event))
            if (change._tag === "clear") open.clear(change.key)
            else open.set({ key: change.key, dueAt: change.dueAt, payload: change.payload ?? "" })
          return open
        }
      },
      options
    )

    let leader = false
    let trouble: Following.Trouble | undefined
    const told = (now: Following.Trouble | undefined) => {
      trouble = now
    }

    /** What is acted on or was, and may still be open: when to act again, at infinity while it is acted on, and what failed. */
    const acted = new Map<string, { readonly deadline: Deadline; readonly retryAt: number; readonly failing?: Following.Trouble }>()
    const last = (deadline: Deadline) => {
      const entry = acted.get(deadline.key)
      return entry?.deadline === deadline ? entry : undefined
    }
    const actAt = (deadline: Deadline): number => last(deadline)?.retryAt ?? deadline.dueAt

    const act = (open: OpenDeadlines, deadline: Deadline) =>
      Effect.gen(function* () {
        const before = last(deadline)
        acted.set(deadline.key, { ...before, deadline, retryAt: Number.POSITIVE_INFINITY })
        const exit = yield* Effect.exit(Effect.timeout(onDue(deadline), timeout))
        const now = yield* Clock.currentTimeMillis
        if (last(deadline) !== undefined) acted.delete(deadline.key)
        if (!open.has(deadline)) return
        if (Exit.isSuccess(exit)) return void acted.set(deadline.key, { deadline, retryAt: now + pause })
        const attempts = 1 + (before?.failing?.attempts ?? 0)
        const later = Math.min(pause * 2 ** (attempts - 1), Math.max(pause, MAX_PAUSE))
        const failing = { reason: Following.reasonOf(exit.cause), attempts }
        acted.set(deadline.key, { deadline, retryAt: now + later, failing })
      })

    /** Begins with all that are due, as places become free; those that take long are not waited for. */
    const sweep = (places: Semaphore.Semaphore, acting: FiberSet.FiberSet) =>
      Effect.gen(function* () {
        const { state: open } = yield* projection.caughtUp()
        for (const [key, { deadline }] of acted) if (!open.has(deadline)) acted.delete(key)
        const now = yield* Clock.currentTimeMillis
        for (const deadline of open.at(now).due) {
          if (actAt(deadline) > now) continue
          yield* places.take(1)
          // It may have been cleared while it waited for its place
          if (open.has(deadline)) yield* FiberSet.run(acting, Effect.ensuring(act(open, deadline), places.release(1)))
          else yield* places.release(1)
        }
        told(undefined)
      })

    const rest = Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      let { state: open, position } = yield* projection.read()
      open.soonest = Number.POSITIVE_INFINITY
      if (open.size === 0) return yield* projection.past(position)
      const { due, next } = open.at(now)
      const until = due.reduce((until, deadline) => Math.min(until, actAt(deadline)), Math.min(next, now + pause))
      const sooner = Effect.gen(function* () {
        while (open.soonest >= until) {
          yield* projection.past(position)
          const folded = yield* projection.read()
          open = folded.state
          position = folded.position
        }
      })
      if (until > now) yield* Effect.raceFirst(Effect.sleep(Math.ceil(until - now)), sooner)
    })

    const lead = Effect.gen(function* () {
      leader = true
      const places = yield* Semaphore.make(concurrency)
      const acting = yield* FiberSet.make()
      return yield* Effect.forever(Following.insist(Effect.andThen(sweep(places, acting), rest), told))
    }).pipe(
      Effect.scoped,
      Effect.ensuring(
        Effect.sync(() => {
          leader = false
          acted.clear()
        })
      )
    )
    yield* Effect.forkScoped(Lease.keep(`deadlines/${name}`, options)(() => lead))

    return {
      overdue: (now, options) => Effect.map(projection.read(options), ({ state }) => state.at(now).due),
      list: (options) => Effect.map(projection.read(options), ({ state }) => [...state.values()].sort(byTime).slice(0, options?.limit)),
      nextDueAt: (options) =>
        Effect.map(projection.read(options), ({ state }) => {
          const { next } = state.at(Number.NEGATIVE_INFINITY)
          return next === Number.POSITIVE_INFINITY ? undefined : next
        }),
      rebuild: projection.rebuild,
      status: Effect.gen(function* () {
        const failing: Array<Failing> = []
        for (const { deadline, retryAt, failing: trouble } of acted.values())
          if (trouble !== undefined && failing.push({ ...trouble, deadline, retryAt }) === FAILING_SHOWN) break
        return { leader, failing, trouble, projection: yield* projection.status }
      })
    }
  })
