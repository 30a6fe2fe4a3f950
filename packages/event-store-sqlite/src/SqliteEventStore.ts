/** The embedded durable event store: one SQLite file in WAL mode, shared by the processes of one host. It syncs before it answers. */
import { EventStore, follow, type Head, Paging, placeOf, positionOf, WatchedHead } from "@millrace/event-sourcing"
import { Effect, Exit, Layer, type Scope } from "effect"
import type { ConnectionOptions } from "./Connection.ts"
import type { Fault } from "./Fault.ts"
import { open, patiently } from "./Patience.ts"
import { PAGE, SqliteLog } from "./SqliteLog.ts"
import * as Transactions from "./Transactions.ts"

export { parsePosition, stepBack } from "@millrace/event-sourcing"

/** Milliseconds between two polls for events of other processes while there are followers. A poll costs microseconds. */
const POLL = 20

const unavailable = (fault: Fault) => new EventStore.StoreUnavailable({ reason: fault.message })

type Service = EventStore.EventStore["Service"]
type Read = <A>(look: () => A) => Effect.Effect<A, EventStore.StoreUnavailable>

export const make = Effect.fnUntraced(function* (options: ConnectionOptions) {
  const log = yield* open(options.filename, () => new SqliteLog(options), unavailable)
  const end = Effect.try({ try: () => positionOf(log.last()), catch: (error) => error })
  const head = new WatchedHead(positionOf(log.place), end, POLL, yield* Effect.context<Scope.Scope>())
  const submit = yield* Transactions.make(
    options.filename,
    (body) => log.transact(body),
    () => head.advance(positionOf(log.place))
  )
  const read: Read = (look) => patiently(options.filename, look, unavailable)
  const page = (look: () => ReadonlyArray<EventStore.RecordedEvent>) =>
    Effect.map(read(look), (events): Paging.Page => ({ events, isLast: events.length < PAGE }))
  return EventStore.EventStore.of({
    append: (stream, expected, events) => {
      const tooLarge = EventStore.tooLarge(stream, events)
      if (tooLarge !== undefined) return Effect.fail(tooLarge)
      return submit<EventStore.Appended, EventStore.WrongRevision | EventStore.AppendInDoubt | EventStore.StoreUnavailable>(
        EventStore.appendChars(events),
        () => {
          const outcome = log.append(stream, expected, events)
          return "actual" in outcome ? Exit.fail(new EventStore.WrongRevision({ stream, actual: outcome.actual })) : Exit.succeed(outcome)
        },
        (fault) => (fault.inDoubt ? new EventStore.AppendInDoubt({ stream, reason: fault.message }) : unavailable(fault))
      )
    },
    readStream: (stream, options) =>
      Paging.ofStream(({ direction, from, left }) => page(() => log.readStream(stream, direction, from, left)), options),
    lastRevision: (stream) => read(() => log.lastRevision(stream)),
    readAll: (after) => Paging.ofLog(after, (seen) => page(() => log.readAll(placeOf(seen)))),
    subscribe: subscriber(log, read, head),
    head: read(() => positionOf(log.last())),
    loadSnapshot: (name) => read(() => log.loadSnapshot(name)),
    saveSnapshot: (name, snapshot) => submit(snapshot.data.length, () => Exit.succeed(log.saveSnapshot(name, snapshot)), unavailable)
  })
})

/**
 * Most followers are at the same position, right before the newest events. These events are kept in memory, so that they are not read for
 * each follower. A kept page may end before the end of the log, but it has no gap.
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

export const layer = (options: ConnectionOptions): Layer.Layer<EventStore.EventStore, EventStore.StoreUnavailable> =>
  Layer.effect(EventStore.EventStore, make(options))
