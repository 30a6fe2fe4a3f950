/**
 * One line on a terminal that tells how far the reading of a log or the copying of files is: a bar, the rate, and the time left. The command
 * line shows it on stderr; it is erased when the work ends. Elsewhere, and for a library, nothing is shown.
 */
import { EventStore } from "@millrace/event-sourcing"
import { Clock, Context, Effect, Stream } from "effect"

/** What the line is written to: a part of `tty.WriteStream`. */
export interface Terminal {
  readonly isTTY?: boolean
  readonly columns?: number
  readonly write: (text: string) => unknown
}

/** Where progress is shown; undefined for nowhere. The line moves the cursor, which a dumb terminal cannot. */
export const Shown = Context.Reference<Terminal | undefined>("millrace/Progress/Shown", { defaultValue: () => undefined })

/** A terminal that can show progress; undefined for a pipe, a file, and a terminal that is dumb. */
export const terminalOf = (terminal: Terminal, term: string | undefined): Terminal | undefined =>
  terminal.isTTY === true && term !== "dumb" ? terminal : undefined

const ERASE = "\r\u001b[K"
/** Milliseconds between two lines. */
const PAUSE = 100
const CELLS = 16
/** Bytes. */
const MEGABYTE = 1_000_000

const duration = (millis: number): string => {
  const seconds = Math.ceil(millis / 1000)
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  return minutes < 60 ? `${minutes} min ${seconds % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/** A small amount of what is not counted in whole units has one decimal. */
const amount = (n: number): string => n.toLocaleString("en", { maximumFractionDigits: n < 10 ? 1 : 0 })

/** `Auditing  [####------------]  25 %  120,000 events  85,000/s  4 s left`. Milliseconds; `part` from 0 to 1. */
export const line = (what: string, done: number, part: number, elapsed: number, unit = "events"): string => {
  const filled = Math.round(part * CELLS)
  const rate = elapsed === 0 ? 0 : Math.round((done / elapsed) * 1000)
  const left = part === 0 || elapsed === 0 ? "" : `  ${duration((elapsed * (1 - part)) / part)} left`
  const bar = `[${"#".repeat(filled)}${"-".repeat(CELLS - filled)}]`
  return `${what}  ${bar}  ${Math.floor(part * 100)} %  ${amount(done)} ${unit}  ${rate.toLocaleString("en")}/s${left}`
}

/** Writes over the line before, as far as it fits. A terminal of unknown width has 0 columns. */
const write = (terminal: Terminal, text: string): void => {
  terminal.write(ERASE + text.slice(0, (terminal.columns || 80) - 1))
}

/** Positions of all stores of Millrace are numbers as text. For any other, only the events are counted. */
const partOf = (position: string, head: string): number => {
  const part = Number(position) / Number(head)
  return Number.isFinite(part) ? Math.min(1, Math.max(0, part)) : 0
}

/** One reading of a log, as it is shown. */
class Reading {
  #events = 0
  /** What ends soon is not shown. */
  #shownAt: number
  readonly #began: number
  readonly #what: string
  readonly #head: string
  readonly #terminal: Terminal
  readonly #now: () => number

  constructor(what: string, head: string, terminal: Terminal, now: () => number) {
    this.#what = what
    this.#head = head
    this.#terminal = terminal
    this.#now = now
    this.#began = now()
    this.#shownAt = this.#began
  }

  advance(events: ReadonlyArray<EventStore.RecordedEvent>): void {
    this.#events += events.length
    const now = this.#now()
    const last = events.at(-1)
    if (last === undefined || now - this.#shownAt < PAUSE) return
    this.#shownAt = now
    write(this.#terminal, line(this.#what, this.#events, partOf(last.position, this.#head), now - this.#began))
  }
}

/** Shows how far each reading of the whole log is, while the effect runs. */
export const watch =
  (what: string) =>
  <A, E, R>(effect: Effect.Effect<A, E, R | EventStore.EventStore>): Effect.Effect<A, E, R | EventStore.EventStore> =>
    Effect.gen(function* () {
      const terminal = yield* Shown
      if (terminal === undefined) return yield* effect
      const store = yield* EventStore.EventStore
      const clock = yield* Clock.Clock
      const readAll: typeof store.readAll = (after) =>
        Stream.unwrap(
          Effect.map(store.head, (head) => {
            const reading = new Reading(what, head, terminal, () => clock.currentTimeMillisUnsafe())
            return Stream.mapArray(store.readAll(after), (events) => {
              reading.advance(events)
              return events
            })
          })
        )
      const watched = EventStore.EventStore.of({ ...store, readAll })
      const erase = Effect.sync(() => terminal.write(ERASE))
      return yield* effect.pipe(Effect.provideService(EventStore.EventStore, watched), Effect.ensuring(erase))
    })

/** The subscriptions that have not reached the end of the log yet, as one line: that of the slowest. */
class Rebuilding {
  readonly #open = new Map<object, { events: number; part: number }>()
  #shown = false
  #shownAt: number
  readonly #began: number
  readonly #what: string
  readonly #terminal: Terminal
  readonly #now: () => number

  constructor(what: string, terminal: Terminal, now: () => number) {
    this.#what = what
    this.#terminal = terminal
    this.#now = now
    this.#began = now()
    this.#shownAt = this.#began
  }

  /** Watches a subscription that begins after a position. */
  watch<E>(batches: Stream.Stream<EventStore.Batch, E>, after: string, head: string): Stream.Stream<EventStore.Batch, E> {
    const subscription = { events: 0, part: partOf(after, head) }
    this.#open.set(subscription, subscription)
    const advance = (batch: EventStore.Batch) => {
      if (!this.#open.has(subscription)) return batch
      subscription.events += batch.events.length
      subscription.part = partOf(EventStore.endOf(batch) ?? after, head)
      if (batch.live) this.#end(subscription)
      else this.#show()
      return batch
    }
    return Stream.ensuring(
      Stream.map(batches, advance),
      Effect.sync(() => this.#end(subscription))
    )
  }

  #show(): void {
    const now = this.#now()
    const [first, ...rest] = this.#open.values()
    if (first === undefined || now - this.#shownAt < PAUSE) return
    this.#shownAt = now
    this.#shown = true
    const { events, part } = rest.reduce((slowest, next) => (next.part < slowest.part ? next : slowest), first)
    write(this.#terminal, line(this.#what, events, part, now - this.#began))
  }

  #end(subscription: object): void {
    this.#open.delete(subscription)
    if (this.#open.size > 0 || !this.#shown) return
    this.#shown = false
    this.#terminal.write(ERASE)
  }
}

/** An event store that shows how far its subscriptions are, until each has reached the end of the log: projections that are rebuilt. */
export const rebuilding = (what: string): Effect.Effect<EventStore.EventStore["Service"], never, EventStore.EventStore> =>
  Effect.gen(function* () {
    const store = yield* EventStore.EventStore
    const terminal = yield* Shown
    if (terminal === undefined) return store
    const clock = yield* Clock.Clock
    const shared = new Rebuilding(what, terminal, () => clock.currentTimeMillisUnsafe())
    const subscribe: typeof store.subscribe = (after, selection) =>
      Stream.unwrap(Effect.map(store.head, (head) => shared.watch(store.subscribe(after, selection), after, head)))
    return EventStore.EventStore.of({ ...store, subscribe })
  })

/** Takes how much is done, and of how much. */
export type Advance = (done: number, of: number) => void

/** Shows how far work is that counts itself. Where it does less than before, it has begun anew, as a second reading of a file does. */
export const counting = <A, E, R>(what: string, unit: string, work: (advance: Advance) => Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.gen(function* () {
    const terminal = yield* Shown
    if (terminal === undefined) return yield* work(() => {})
    const clock = yield* Clock.Clock
    let began = clock.currentTimeMillisUnsafe()
    let shownAt = began
    let last = 0
    const advance: Advance = (done, of) => {
      const now = clock.currentTimeMillisUnsafe()
      if (done < last) began = now
      last = done
      if (now - shownAt < PAUSE) return
      shownAt = now
      // A file may grow while it is read
      write(terminal, line(what, done, of === 0 ? 1 : Math.min(1, done / of), now - began, unit))
    }
    return yield* Effect.ensuring(
      work(advance),
      Effect.sync(() => terminal.write(ERASE))
    )
  })

/** Shows how far work is that counts its bytes. */
export const bytes = <A, E, R>(what: string, work: (advance: Advance) => Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  counting(what, "MB", (advance) => work((done, of) => advance(done / MEGABYTE, of / MEGABYTE)))
