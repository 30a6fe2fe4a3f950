/** The embedded durable event store: one SQLite file in WAL mode, synced before an append is answered, shared by processes of one host. */
import { EventStore, follow, Head } from "@millrace/event-sourcing"
import { Effect, Exit, Layer, Option, type Scope, Stream } from "effect"
import type { ConnectionOptions } from "./Connection.ts"
import type { Fault } from "./Fault.ts"
import * as GroupCommit from "./GroupCommit.ts"
import { open, patiently } from "./Patience.ts"
import { PAGE, placeOf, positionOf, SqliteLog } from "./SqliteLog.ts"

export { parsePosition } from "./SqliteLog.ts"

export type SqliteEventStoreOptions = ConnectionOptions

/** How soon a subscription sees what another process wrote, at most, in milliseconds; each look costs microseconds. */
const POLL = 20

const unavailable = (fault: Fault) => new EventStore.StoreUnavailable({ reason: fault.message })

/** The end of a log that other processes write to as well: looked for while somebody waits for it, and only then. */
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

  /** A fault is not told here: whoever waits goes on waiting, whoever reads meets it. */
  look(): void {
    try {
      this.advance(positionOf(this.#log.last()))
    } catch {}
  }
}

export const make = Effect.fnUntraced(function* (options: SqliteEventStoreOptions) {
  const log = yield* open(options.filename, () => new SqliteLog(options), unavailable)
  const head = new WatchedHead(log, yield* Effect.scope)
  const group = yield* GroupCommit.make(
    (body) => log.transact(body),
    () => head.advance(positionOf(log.place))
  )
  const read = <A>(look: () => A) => patiently(options.filename, look, unavailable)

  const append: EventStore.EventStore["Service"]["append"] = (stream, expected, events) => {
    const size = sizeOf(events)
    // A character is at most three bytes of UTF-8
    if (size * 3 > EventStore.MAX_APPEND_BYTES) {
      const bytes = EventStore.appendBytes(events)
      if (bytes > EventStore.MAX_APPEND_BYTES) return Effect.fail(new EventStore.AppendTooLarge({ stream, bytes }))
    }
    return group.submit<EventStore.Appended, EventStore.WrongRevision | EventStore.AppendInDoubt | EventStore.StoreUnavailable>(
      size,
      () => {
        const outcome = log.append(stream, expected, events)
        return "actual" in outcome ? Exit.fail(new EventStore.WrongRevision({ stream, actual: outcome.actual })) : Exit.succeed(outcome)
      },
      (fault) => (fault.inDoubt ? new EventStore.AppendInDoubt({ stream, reason: fault.message }) : unavailable(fault))
    )
  }

  const readStream: EventStore.EventStore["Service"]["readStream"] = (stream, { direction = "forwards", from, limit = Infinity } = {}) => {
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

  const pageAfter = (after: EventStore.Position) => read(() => log.readAll(placeOf(after)))

  // Those who follow mostly stand at the same place, right before what was written last: then it need not be read back, nor twice. It
  // may be shorter than what is there by now, but it is a true run of the log all the same
  let newest: { readonly after: EventStore.Position; readonly events: ReadonlyArray<EventStore.RecordedEvent> } | undefined
  const sharedPageAfter = (
    after: EventStore.Position
  ): Effect.Effect<ReadonlyArray<EventStore.RecordedEvent>, EventStore.StoreUnavailable> =>
    newest?.after === after
      ? Effect.succeed(newest.events)
      : Effect.map(
          read(() => log.justWritten(placeOf(after)) ?? log.readAll(placeOf(after))),
          (events) => {
            if (events.length > 0) newest = { after, events }
            return events
          }
        )

  return EventStore.EventStore.of({
    append,
    readStream,
    lastRevision: (stream) => read(() => log.lastRevision(stream)),
    readAll: (after) =>
      Stream.paginate(after, (seen) =>
        Effect.map(pageAfter(seen), (events) => {
          const last = events.at(-1)
          return [events, last === undefined || events.length < PAGE ? Option.none() : Option.some(last.position)] as const
        })
      ),
    subscribe: (after) => follow(after, head, sharedPageAfter),
    head: read(() => positionOf(log.last())),
    loadSnapshot: (name) => read(() => log.loadSnapshot(name)),
    saveSnapshot: (name, snapshot) => group.submit(snapshot.data.length, () => Exit.succeed(log.saveSnapshot(name, snapshot)), unavailable)
  })
})

/** Characters of an append: cheap to know, and never more than its bytes. */
const sizeOf = (events: ReadonlyArray<EventStore.EventData>): number => {
  let size = 0
  for (const { id, type, data, metadata } of events) size += id.length + type.length + data.length + metadata.length
  return size
}

export const layer = (options: SqliteEventStoreOptions): Layer.Layer<EventStore.EventStore, EventStore.StoreUnavailable> =>
  Layer.effect(EventStore.EventStore, make(options))
