/** The embedded durable event store: one SQLite file in WAL mode, shared by processes of one host, and synced before it answers. */
import { EventStore, follow, Head } from "@millrace/event-sourcing"
import { Effect, Exit, Layer, Option, type Scope, Stream } from "effect"
import type { ConnectionOptions } from "./Connection.ts"
import type { Fault } from "./Fault.ts"
import * as GroupCommit from "./GroupCommit.ts"
import { open, patiently } from "./Patience.ts"
import { placeOf, positionOf } from "./Position.ts"
import { PAGE, SqliteLog } from "./SqliteLog.ts"

export { parsePosition, stepBack } from "./Position.ts"

export type SqliteEventStoreOptions = ConnectionOptions

/** Milliseconds between two looks for events of other processes, while somebody follows; each look costs microseconds. */
const POLL = 20

const unavailable = (fault: Fault) => new EventStore.StoreUnavailable({ reason: fault.message })

/** The end of a log to which other processes write, too. It is looked for only while somebody waits for it. */
class WatchedHead extends Head {
  readonly #log: SqliteLog
  readonly #scope: Scope.Scope
  #waiting = 0
  #isWatched = false

  constructor(log: SqliteLog, scope: Scope.Scope) {
    super(positionOf(log.place))
    this.#log = log
    this.#scope = scope
  }

  override past(position: EventStore.Position): Effect.Effect<void> {
    return Effect.acquireUseRelease(
      Effect.suspend(() => {
        this.#waiting++
        if (this.#isWatched) return Effect.void
        this.#isWatched = true
        return Effect.asVoid(Effect.forkIn(this.#watch(), this.#scope))
      }),
      () => super.past(position),
      () => Effect.sync(() => this.#waiting--)
    )
  }

  #watch(): Effect.Effect<void> {
    return Effect.andThen(
      Effect.sleep(POLL),
      Effect.suspend(() => {
        this.#isWatched = this.#waiting > 0
        if (!this.#isWatched) return Effect.void
        this.look()
        return this.#watch()
      })
    )
  }

  /** A fault is not told here: followers go on waiting, and readers get the fault themselves. */
  look(): void {
    try {
      this.advance(positionOf(this.#log.last()))
    } catch {}
  }
}

type Service = EventStore.EventStore["Service"]
type Read = <A>(look: () => A) => Effect.Effect<A, EventStore.StoreUnavailable>

export const make = Effect.fnUntraced(function* (options: SqliteEventStoreOptions) {
  const log = yield* open(options.filename, () => new SqliteLog(options), unavailable)
  const head = new WatchedHead(log, yield* Effect.scope)
  const group = yield* GroupCommit.make(
    (body) => log.transact(body),
    () => head.advance(positionOf(log.place))
  )
  const read: Read = (look) => patiently(options.filename, look, unavailable)
  return EventStore.EventStore.of({
    append: (stream, expected, events) => {
      const size = sizeOf(events)
      // A character is at most three bytes of UTF-8
      const bytes = size * 3 > EventStore.MAX_APPEND_BYTES ? EventStore.appendBytes(events) : 0
      if (bytes > EventStore.MAX_APPEND_BYTES) return Effect.fail(new EventStore.AppendTooLarge({ stream, bytes }))
      return group.submit<EventStore.Appended, EventStore.WrongRevision | EventStore.AppendInDoubt | EventStore.StoreUnavailable>(
        size,
        () => {
          const outcome = log.append(stream, expected, events)
          return "actual" in outcome ? Exit.fail(new EventStore.WrongRevision({ stream, actual: outcome.actual })) : Exit.succeed(outcome)
        },
        (fault) => (fault.inDoubt ? new EventStore.AppendInDoubt({ stream, reason: fault.message }) : unavailable(fault))
      )
    },
    readStream: streamReader(log, read),
    lastRevision: (stream) => read(() => log.lastRevision(stream)),
    readAll: logReader(log, read),
    subscribe: subscriber(log, read, head),
    head: read(() => positionOf(log.last())),
    loadSnapshot: (name) => read(() => log.loadSnapshot(name)),
    saveSnapshot: (name, snapshot) => group.submit(snapshot.data.length, () => Exit.succeed(log.saveSnapshot(name, snapshot)), unavailable)
  })
})

const streamReader =
  (log: SqliteLog, read: Read): Service["readStream"] =>
  (stream, { direction = "forwards", from, limit = Infinity } = {}) => {
    const page = (at: { readonly from: EventStore.Revision | undefined; readonly left: number }) =>
      Effect.map(
        read(() => log.readStream(stream, direction, at.from, at.left)),
        (events) => {
          const last = events.at(-1)
          const isEnd = last === undefined || events.length < PAGE || events.length === at.left
          const next = isEnd
            ? Option.none()
            : Option.some({ from: last.revision + (direction === "forwards" ? 1 : -1), left: at.left - events.length })
          return [events, next] as const
        }
      )
    return Stream.paginate({ from, left: limit }, page)
  }

const logReader =
  (log: SqliteLog, read: Read): Service["readAll"] =>
  (after) =>
    Stream.paginate(after, (seen) =>
      Effect.map(
        read(() => log.readAll(placeOf(seen))),
        (events) => {
          const last = events.at(-1)
          return [events, last === undefined || events.length < PAGE ? Option.none() : Option.some(last.position)] as const
        }
      )
    )

/**
 * Followers mostly stand at the same position, right before the newest events. Those are kept, so they are not read back for each
 * follower. A kept page may be shorter than the log is by now, but it has no gap.
 */
const subscriber = (log: SqliteLog, read: Read, head: Head): Service["subscribe"] => {
  let newest: { readonly after: EventStore.Position; readonly events: ReadonlyArray<EventStore.RecordedEvent> } | undefined
  const pageAfter = (after: EventStore.Position): Effect.Effect<ReadonlyArray<EventStore.RecordedEvent>, EventStore.StoreUnavailable> =>
    newest?.after === after
      ? Effect.succeed(newest.events)
      : Effect.map(
          read(() => log.justWritten(placeOf(after)) ?? log.readAll(placeOf(after))),
          (events) => {
            if (events.length > 0) newest = { after, events }
            return events
          }
        )
  return (after) => follow(after, head, pageAfter)
}

/** Characters of an append: cheap to know, and never more than its bytes. */
const sizeOf = (events: ReadonlyArray<EventStore.EventData>): number => {
  let size = 0
  for (const { id, type, data, metadata } of events) size += id.length + type.length + data.length + metadata.length
  return size
}

export const layer = (options: SqliteEventStoreOptions): Layer.Layer<EventStore.EventStore, EventStore.StoreUnavailable> =>
  Layer.effect(EventStore.EventStore, make(options))
