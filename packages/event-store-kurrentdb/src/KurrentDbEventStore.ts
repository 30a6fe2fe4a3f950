/**
 * The distributed event store, on KurrentDB (EventStoreDB). Every append is at an exact revision and has a deadline; one without an
 * answer is in doubt, and the identical batch, sent again, is answered by what became of it, however long ago.
 */
import { ClockGuard, EventIds, EventStore, follow, StreamName } from "@millrace/event-sourcing"
import { Effect, Layer, Option, Schedule, type Scope, Stream } from "effect"
import type { InvalidConnectionString } from "./ConnectionString.ts"
import { Fault } from "./Driver.ts"
import * as Db from "./KurrentDb.ts"
import { FIRST_PAGE, PAGE } from "./KurrentLog.ts"
import { textOf } from "./Position.ts"
import { isSystem } from "./Selecting.ts"
import * as ServerTime from "./ServerTime.ts"
import * as Snapshots from "./Snapshots.ts"
import * as Turns from "./Turns.ts"

export { parsePosition } from "./Position.ts"

type Service = EventStore.EventStore["Service"]

/** How often a call goes to the node that is said to lead, before it is given up for now, and the milliseconds in between. */
const REDIRECTS = 5
const REDIRECTED_AFTER = 20

/** The store by itself, whatever this host's clock says. */
export const make: Effect.Effect<Service, never, Db.KurrentDb> = Effect.gen(function* () {
  const { clients, log, feed } = yield* Db.KurrentDb
  const snapshots = Snapshots.make(clients, yield* EventIds)
  const read = <A>(effect: Effect.Effect<A, Fault>) => Effect.mapError(redirected(effect), Db.unavailable)

  const lastRevision = Turns.shared((stream: string) =>
    Effect.map(
      redirected(clients.call((driver) => driver.readStream(stream, "backwards", undefined, 1))),
      ([last]): EventStore.ExpectedRevision => last?.revision ?? "noStream"
    )
  )
  const inTurn = Turns.make(clients.deadline, lastRevision)

  const append: Service["append"] = (stream, expected, events) =>
    Effect.suspend(() => {
      requireStorable(stream, events)
      const bytes = EventStore.appendBytes(events)
      if (bytes > EventStore.MAX_APPEND_BYTES) return Effect.fail(new EventStore.AppendTooLarge({ stream, bytes }))
      const send = redirected(clients.call((driver) => driver.append(stream, expected, events)))
      return inTurn(stream, expected, events[0].id, send).pipe(
        Effect.flatMap(({ revision, position }) =>
          position === undefined ? locate(stream, revision) : Effect.succeed({ revision, position: textOf(position) })
        ),
        Effect.mapError((fault) => {
          switch (fault.kind) {
            case "wrongRevision":
              return new EventStore.WrongRevision({ stream, actual: fault.actual ?? "noStream" })
            case "tooLarge":
              return new EventStore.AppendTooLarge({ stream, bytes })
            case "noAnswer":
              return new EventStore.AppendInDoubt({ stream, reason: fault.message })
            default:
              return Db.unavailable(fault)
          }
        })
      )
    })

  /** Where an append that was sent again ended, if the server does not tell, because its events were truncated since. */
  const locate = (stream: StreamName.StreamName, revision: EventStore.Revision): Effect.Effect<EventStore.Appended, Fault> =>
    log.readStream(stream, "forwards", revision, 1).pipe(
      Effect.flatMap(([event]) => (event?.revision === revision ? Effect.succeed(event.position) : log.head)),
      Effect.map((position) => ({ revision, position })),
      Effect.mapError(({ message }) => new Fault({ kind: "noAnswer", message }))
    )

  const readStream: Service["readStream"] = (stream, { direction = "forwards", from, limit = Number.POSITIVE_INFINITY } = {}) => {
    const page = (at: Place) => {
      const count = Math.min(at.left, at.size)
      return Effect.map(read(log.readStream(stream, direction, at.from, count)), (events) => {
        const last = events.at(-1)
        const next = last && last.revision + (direction === "forwards" ? 1 : -1)
        const left = at.left - events.length
        const isEnd = next === undefined || next < 0 || left === 0 || events.length < count
        return [events, isEnd ? Option.none() : Option.some({ from: next, left, size: PAGE })] as const
      })
    }
    return limit <= 0 || (from !== undefined && from < 0) ? Stream.empty : Stream.paginate({ from, left: limit, size: FIRST_PAGE }, page)
  }

  const readAll: Service["readAll"] = (after) =>
    Stream.paginate({ after, size: FIRST_PAGE }, ({ after, size }) =>
      Effect.map(read(log.pageAfter(after, size)), ({ events, next }) => {
        const rest = next === undefined ? Option.none() : Option.some({ after: next, size: PAGE })
        return [events, rest] as const
      })
    )

  return EventStore.EventStore.of({
    append,
    readStream,
    lastRevision: (stream) => read(lastRevision(stream)),
    readAll,
    subscribe: (after) => Stream.unwrap(Effect.map(read(feed.begin), () => follow(after, feed.head, (seen) => read(feed.after(seen))))),
    head: read(log.head),
    loadSnapshot: (name) => read(snapshots.load(name)),
    saveSnapshot: (name, snapshot) => read(snapshots.save(name, snapshot))
  })
})

/** How often the server is asked for its time, while anything is appended. */
const ASK_TIME = "1 minute"

/** The store, for a host whose clock is right. */
const guarded: Effect.Effect<Service, never, Db.KurrentDb | Scope.Scope> = Effect.gen(function* () {
  const { clients } = yield* Db.KurrentDb
  const { ask, timeOf } = ServerTime.make(clients, yield* EventIds)
  return yield* ClockGuard.make(yield* make, { ask: redirected(ask), timeOf, every: ASK_TIME, onlyForAppends: true })
})

/** Where a reader of a stream is: the next event, how many are wanted yet, and how many at a time. */
interface Place {
  readonly from: EventStore.Revision | undefined
  readonly left: number
  readonly size: number
}

/** The client knows where the leader is as soon as it was told: asked again, it goes there. */
const redirected = <A>(effect: Effect.Effect<A, Fault>): Effect.Effect<A, Fault> =>
  Effect.retry(effect, { while: ({ kind }) => kind === "notLeader", schedule: Schedule.spaced(REDIRECTED_AFTER), times: REDIRECTS })

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** A defect for what the server would refuse without saying why, or would not give back as it was. */
const requireStorable = (stream: string, events: ReadonlyArray<EventStore.EventData>): void => {
  if (!StreamName.isStreamName(stream)) throw new Error(`No stream name: ${JSON.stringify(stream)}`)
  for (const { id, type, data, metadata } of events) {
    if (!UUID.test(id)) throw new Error(`No UUID in small letters: ${JSON.stringify(id)}`)
    if (type === "" || isSystem(type)) throw new Error(`No type of an event: ${JSON.stringify(type)}`)
    if (!(type.isWellFormed() && data.isWellFormed() && metadata.isWellFormed()))
      throw new Error(`Event ${id} of ${stream} holds a lone surrogate: it cannot be kept as UTF-8`)
  }
}

/** The store on a cluster that others use as well, such as {@link Db.KurrentDb} reactions. */
export const layerOn: Layer.Layer<EventStore.EventStore, never, Db.KurrentDb> = Layer.effect(EventStore.EventStore, guarded)

export const layer = (options: Db.KurrentDbOptions): Layer.Layer<EventStore.EventStore | Db.KurrentDb, InvalidConnectionString> =>
  Layer.provideMerge(layerOn, Db.layer(options))
