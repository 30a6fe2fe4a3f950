/**
 * The one subscription of a store, from which all who follow the log are fed: a connection takes a hundred calls, but any number may
 * follow. It resumes by itself after whatever goes wrong, from the last position or checkpoint, and says how far behind it is. Those who
 * have further to go read pages until they are as far.
 */
import { type EventStore, Following, Head } from "@millrace/event-sourcing"
import { Cause, Clock, Effect, Exit, Option, type Scope, Semaphore } from "effect"
import type { Clients } from "./Clients.ts"
import { Fault, type Filter, type Message, type Recorded } from "./Driver.ts"
import { decode, type KurrentLog, PAGE } from "./KurrentLog.ts"
import { type LogPosition, placeOf, textOf } from "./Position.ts"

export interface Status {
  /** Up to where the log was seen; nothing while nobody followed it yet. */
  readonly position: EventStore.Position | undefined
  /** Whether the subscription stands. */
  readonly connected: boolean
  /** Bytes of log between there and its end, when it was last compared. */
  readonly behind: number
  /** Since when, in milliseconds since 1970, the log may have gone on without the subscription. */
  readonly behindSince: number | undefined
  /** What went wrong, and how often since it last went well. */
  readonly trouble: Following.Retrying | undefined
}

export interface Feed {
  /** Begins, unless it has begun. */
  readonly begin: Effect.Effect<void, Fault>
  readonly head: Head
  /** The next events after a position: from memory where they are there, else from the server. */
  readonly after: (position: EventStore.Position) => Effect.Effect<ReadonlyArray<EventStore.RecordedEvent>, Fault>
  readonly status: Effect.Effect<Status>
}

/** What is kept in memory for those who follow closely: events, and characters of them. */
const KEPT = 4_096
const KEPT_SIZE = 16_000_000
/** Waiting to resume doubles so many times: to about a second and a half. */
const DOUBLINGS = 5

/** `look`: milliseconds between two comparisons with the end of the log. */
export const make = (clients: Clients, log: KurrentLog, filter: Filter, look: number): Effect.Effect<Feed, never, Scope.Scope> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const scope = yield* Effect.scope
    const once = yield* Semaphore.make(1)
    const recent = new Recent()
    let head: Head | undefined
    let at: LogPosition | undefined
    let attempts = 0
    let connected = false
    let behind = 0
    let behindSince: number | undefined
    let trouble: Following.Retrying | undefined

    const caughtSight = (event: Recorded) => {
      if (event.position === undefined) return
      const position = textOf(event.position)
      // A subscription begins after the last event, and no server is believed to count exactly so
      if (at !== undefined && position <= textOf(at)) return
      at = event.position
      if (!log.isOurs(event)) return
      try {
        recent.add(decode(event))
      } catch {
        // Whoever follows meets it when reading
        recent.begin(position)
      }
      head?.advance(position)
    }

    const take = (message: Message) => {
      switch (message._tag) {
        case "event":
          return caughtSight(message.event)
        case "checkpoint":
          at = message.position
          return
        case "confirmed":
          connected = true
          attempts = 0
          trouble = undefined
      }
    }

    const unconfirmed = Effect.delay(
      Effect.suspend(() =>
        connected ? Effect.never : Effect.fail(new Fault({ kind: "noAnswer", message: `No subscription within ${clients.deadline} ms` }))
      ),
      clients.deadline
    )

    /** Fails when the log went on and the subscription did not, from one look to the next. */
    const watch = Effect.gen(function* () {
      let lagging: EventStore.Position | undefined
      for (;;) {
        yield* Effect.sleep(look)
        const end = yield* Effect.option(log.head)
        const position = head?.position
        if (Option.isNone(end) || position === undefined) continue
        behind = end.value <= position ? 0 : bytesBetween(position, end.value)
        if (behind === 0) {
          behindSince = undefined
          lagging = undefined
          continue
        }
        behindSince ??= clock.currentTimeMillisUnsafe()
        if (lagging === position)
          return yield* Effect.fail(new Fault({ kind: "noAnswer", message: "The subscription stands still while the log goes on" }))
        lagging = position
      }
    })

    const follow = Effect.gen(function* () {
      for (;;) {
        const exit = yield* Effect.exit(
          clients.hold("feed", (driver) => Effect.raceAllFirst([driver.follow(at, filter, take), unconfirmed, watch]))
        )
        connected = false
        behindSince ??= clock.currentTimeMillisUnsafe()
        attempts++
        trouble = { reason: Exit.isFailure(exit) ? reasonOf(exit.cause) : "It ended", attempts }
        yield* Following.backOff(Math.min(attempts, DOUBLINGS))
      }
    })

    const begin = once.withPermit(
      Effect.suspend(() => {
        if (head !== undefined) return Effect.void
        return Effect.flatMap(log.head, (end) => {
          head = new Head(end)
          at = placeOf(end)
          recent.begin(end)
          return Effect.asVoid(Effect.forkIn(follow, scope))
        })
      })
    )

    return {
      begin,
      get head() {
        if (head === undefined) throw new Error("The feed has not begun")
        return head
      },
      after: (position) =>
        Effect.suspend(() => {
          const events = recent.after(position)
          return events.length > 0 ? Effect.succeed(events) : log.after(position)
        }),
      status: Effect.sync(() => ({ position: head?.position, connected, behind, behindSince, trouble }))
    }
  })

const bytesBetween = (from: EventStore.Position, to: EventStore.Position): number =>
  Number((placeOf(to)?.commit ?? 0n) - (placeOf(from)?.commit ?? 0n))

const reasonOf = (cause: Cause.Cause<Fault>): string => {
  const error = Cause.squash(cause)
  return error instanceof Error ? error.message : String(error)
}

/** The newest events, all of them after some position. */
class Recent {
  #since: EventStore.Position | undefined
  #events: Array<EventStore.RecordedEvent> = []
  #size = 0

  begin(since: EventStore.Position): void {
    this.#since = since
    this.#events = []
    this.#size = 0
  }

  add(event: EventStore.RecordedEvent): void {
    this.#events.push(event)
    this.#size += event.data.length + event.metadata.length
    if (this.#events.length <= KEPT && this.#size <= KEPT_SIZE) return
    const dropped = this.#events.splice(0, Math.ceil(this.#events.length / 2))
    this.#since = dropped.at(-1)?.position
    this.#size = this.#events.reduce((sum, { data, metadata }) => sum + data.length + metadata.length, 0)
  }

  /** Nothing where it cannot tell. */
  after(position: EventStore.Position): ReadonlyArray<EventStore.RecordedEvent> {
    if (this.#since === undefined || position < this.#since) return []
    let low = 0
    let high = this.#events.length
    while (low < high) {
      const middle = (low + high) >> 1
      const there = this.#events[middle]
      if (there !== undefined && there.position > position) high = middle
      else low = middle + 1
    }
    return this.#events.slice(low, low + PAGE)
  }
}
