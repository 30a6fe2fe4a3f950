/**
 * The distributed event store on KurrentDB (EventStoreDB). Every append expects an exact revision and has a deadline. An append without an
 * answer is in doubt. The caller sends the identical batch again, and the server returns its outcome, no matter how much later.
 */
import { ClockGuard, EventIds, EventStore, follow, Paging, StreamName } from "@millrace/event-sourcing"
import { Effect, Layer, Option, type Scope, Stream } from "effect"
import type { Clients } from "./Clients.ts"
import type { InvalidConnectionString } from "./ConnectionString.ts"
import { Fault } from "./Driver.ts"
import * as Db from "./KurrentDb.ts"
import { FIRST_PAGE, type KurrentLog, PAGE } from "./KurrentLog.ts"
import { textOf } from "./Position.ts"
import { isSystem } from "./Selecting.ts"
import * as ServerTime from "./ServerTime.ts"
import * as Snapshots from "./Snapshots.ts"
import * as Turns from "./Turns.ts"

export { parsePosition } from "./Position.ts"

type Service = EventStore.EventStore["Service"]

/** How often a call is redirected to the leader, and the milliseconds in between. */
const REDIRECTS = 5
const REDIRECTED_AFTER = 20

/** The store without the clock check. */
export const make: Effect.Effect<Service, never, Db.KurrentDb> = Effect.gen(function* () {
  const { clients, log, feed } = yield* Db.KurrentDb
  const snapshots = Snapshots.make(clients, yield* EventIds)
  const lastRevision = Turns.shared((stream: string) =>
    Effect.map(
      redirected(clients.call((driver) => driver.readStream(stream, "backwards", undefined, 1))),
      ([last]): EventStore.ExpectedRevision => last?.revision ?? "noStream"
    )
  )
  return EventStore.EventStore.of({
    append: appender(clients, log, Turns.make(clients.deadline, lastRevision)),
    readStream: streamReader(log),
    lastRevision: (stream) => read(lastRevision(stream)),
    readAll: (after) =>
      Stream.paginate({ after, size: FIRST_PAGE }, ({ after, size }) =>
        Effect.map(read(log.pageAfter(after, size)), ({ events, next }) => {
          const rest = next === undefined ? Option.none() : Option.some({ after: next, size: PAGE })
          return [events, rest] as const
        })
      ),
    subscribe: (after, subscription = {}) =>
      Stream.unwrap(
        Effect.map(read(feed.begin), (head) => follow(after, head, (seen) => read(feed.after(seen)), feed.skipBy(subscription)))
      ),
    head: read(log.head),
    loadSnapshot: (name) => read(snapshots.load(name)),
    saveSnapshot: (name, snapshot) => read(snapshots.save(name, snapshot))
  })
})

const read = <A>(effect: Effect.Effect<A, Fault>) => Effect.mapError(redirected(effect), Db.unavailable)

const appender =
  (clients: Clients, log: KurrentLog, inTurn: Turns.InTurn): Service["append"] =>
  (stream, expected, events) =>
    Effect.suspend(() => {
      requireStorable(stream, events)
      const tooLarge = EventStore.tooLarge(stream, events)
      if (tooLarge !== undefined) return Effect.fail(tooLarge)
      const send = redirected(clients.call((driver) => driver.append(stream, expected, events)))
      return inTurn(stream, expected, events[0].id, send).pipe(
        Effect.flatMap(({ revision, position }) =>
          position === undefined ? locate(log, stream, revision) : Effect.succeed({ revision, position: textOf(position) })
        ),
        Effect.mapError((fault) => {
          switch (fault.kind) {
            case "wrongRevision":
              return new EventStore.WrongRevision({ stream, actual: fault.actual ?? "noStream" })
            case "tooLarge":
              return new EventStore.AppendTooLarge({ stream, bytes: EventStore.appendBytes(events) })
            case "noAnswer":
              return new EventStore.AppendInDoubt({ stream, reason: fault.message })
            default:
              return Db.unavailable(fault)
          }
        })
      )
    })

/** Finds the position of a repeated append whose events were truncated: the server does not return it. */
const locate = (log: KurrentLog, stream: StreamName.StreamName, revision: EventStore.Revision): Effect.Effect<EventStore.Appended, Fault> =>
  log.readStream(stream, "forwards", revision, 1).pipe(
    Effect.flatMap(([event]) => (event?.revision === revision ? Effect.succeed(event.position) : log.head)),
    Effect.map((position) => ({ revision, position })),
    Effect.mapError(({ message }) => new Fault({ kind: "noAnswer", message }))
  )

const streamReader =
  (log: KurrentLog): Service["readStream"] =>
  (stream, options) =>
    (options?.from ?? 0) < 0
      ? Stream.empty
      : Paging.ofStream(({ direction, from, left, isFirstPage }) => {
          const count = Math.min(left, isFirstPage ? FIRST_PAGE : PAGE)
          return Effect.map(read(log.readStream(stream, direction, from, count)), (events) => ({ events, isLast: events.length < count }))
        }, options)

/** How often the server is asked for its time while there are appends. */
const ASK_TIME = "1 minute"

/** The store with the clock check: it refuses the appends of a host whose clock is wrong. */
const guarded: Effect.Effect<Service, never, Db.KurrentDb | Scope.Scope> = Effect.gen(function* () {
  const { clients } = yield* Db.KurrentDb
  const { ask, timeOf } = ServerTime.make(clients, yield* EventIds)
  return yield* ClockGuard.make(yield* make, { ask: redirected(ask), timeOf, every: ASK_TIME, onlyForAppends: true })
})

/** Repeats a call that failed with `notLeader`. The driver sends it to the leader that the node named. */
const redirected = <A>(call: Effect.Effect<A, Fault>, left = REDIRECTS): Effect.Effect<A, Fault> =>
  Effect.catchIf(
    call,
    ({ kind }) => kind === "notLeader" && left > 0,
    () => Effect.delay(redirected(call, left - 1), REDIRECTED_AFTER)
  )

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Throws for events that the server would refuse without a clear error, or would not return unchanged. */
const requireStorable = (stream: string, events: ReadonlyArray<EventStore.EventData>): void => {
  if (!StreamName.isStreamName(stream)) throw new Error(`Not a stream name: ${JSON.stringify(stream)}`)
  for (const { id, type, data, metadata } of events) {
    if (!UUID.test(id)) throw new Error(`Not a UUID in lower case: ${JSON.stringify(id)}`)
    if (type === "" || isSystem(type)) throw new Error(`Not an event type: ${JSON.stringify(type)}`)
    if (!(type.isWellFormed() && data.isWellFormed() && metadata.isWellFormed()))
      throw new Error(`Event ${id} of ${stream} holds a lone surrogate: it cannot be stored as UTF-8`)
  }
}

export const layer = (options: Db.KurrentDbOptions): Layer.Layer<EventStore.EventStore | Db.KurrentDb, InvalidConnectionString> =>
  Layer.provideMerge(Layer.effect(EventStore.EventStore, guarded), Db.layer(options))
