/** The event store on PostgreSQL: appends of many streams share a transaction, synced by the server before any of them is answered. */
import { ClockGuard, EventStore, follow } from "@millrace/event-sourcing"
import { Effect, Layer, Option, Stream } from "effect"
import { isText } from "./BinaryArrays.ts"
import * as Connections from "./Connections.ts"
import { EVENTS } from "./EventTables.ts"
import { Fault } from "./Fault.ts"
import * as GroupCommit from "./GroupCommit.ts"
import { DEFAULT_SCHEMA, migrate } from "./Migrations.ts"
import * as PostgresLog from "./PostgresLog.ts"
import { Recent } from "./Recent.ts"
import * as Server from "./Server.ts"
import * as Wake from "./Wake.ts"

export { parsePosition } from "./PostgresLog.ts"

export interface PostgresEventStoreOptions extends Connections.ConnectionsOptions {
  /** The schema of the tables, beside the host's own: `millrace` by default. */
  readonly schema?: string
  /**
   * Where to listen for what other processes append: by default `url`. Behind a pooler in transaction mode name the server itself,
   * or `false`: subscriptions then look twenty times a second, and nothing is notified.
   */
  readonly listenUrl?: string | false
  /** For those who only look, also at a standby. Nothing is created or migrated; every write fails. */
  readonly readOnly?: boolean
}

/** Appends in a transaction. */
const GROUP = 1_000
/** Transactions under way at once: the server syncs one while it is sent the next. */
const LANES = 2
/** Snapshots saved together. */
const SNAPSHOTS = 100
/** How often the server is asked for its time. */
const ASK_TIME = "10 seconds"
/** Questions asked together. */
const QUESTIONS = 1_000

/** Ids in the one form that comes back as it was written. */
const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

const unavailable = (fault: Fault) => new EventStore.StoreUnavailable({ reason: fault.message })

/** On connections to a server that was looked at; others may share them. */
export const makeOn = Effect.fnUntraced(function* (
  connections: Connections.Connections,
  { url, schema = DEFAULT_SCHEMA, listenUrl = url, readOnly = false, deadline = 10_000 }: PostgresEventStoreOptions
) {
  yield* migrate(connections, schema, EVENTS, !readOnly)
  const log = PostgresLog.make(connections, schema, readOnly)
  const listening = listenUrl === false ? undefined : yield* Connections.settingsOf(listenUrl, deadline)
  const wake = yield* Wake.make(log, connections, schema, listening)

  const appends = yield* GroupCommit.make({
    send: log.append,
    lanes: LANES,
    count: GROUP,
    size: ({ events }: PostgresLog.Append) => sizeOf(events),
    key: ({ stream }) => stream,
    // Those who expect the same end of a stream are told apart in one transaction; whoever expects the result of another waits for it
    isRival: (one, earlier) => one.before === earlier.before
  })
  const snapshots = yield* GroupCommit.make({
    send: log.saveSnapshots,
    count: SNAPSHOTS,
    size: ({ data }: PostgresLog.NamedSnapshot) => data.length
  })
  const tails = yield* GroupCommit.make({ send: log.tails, lanes: LANES, count: QUESTIONS })
  const recent = new Recent()
  // Those who follow mostly stand at the same place: one query for all of them
  const pages = yield* GroupCommit.make({
    send: (places: ReadonlyArray<EventStore.Position>) =>
      Effect.gen(function* () {
        const found = new Map<EventStore.Position, PostgresLog.Page>()
        for (const place of places) if (!found.has(place)) found.set(place, yield* log.readAll(place))
        return places.map((place) => found.get(place) ?? { events: [], isLast: true })
      }),
    lanes: LANES,
    count: 8
  })

  const pageAfter = (seen: EventStore.Position): Effect.Effect<ReadonlyArray<EventStore.RecordedEvent>, EventStore.StoreUnavailable> =>
    Effect.suspend(() => {
      const written = recent.between(PostgresLog.placeOf(seen), PostgresLog.placeOf(wake.head.position))
      return written === undefined
        ? Effect.mapBoth(pages(seen), { onFailure: unavailable, onSuccess: ({ events }) => events })
        : Effect.succeed(written)
    })

  const lookingOnly = new EventStore.StoreUnavailable({ reason: `${connections.where} was opened read-only` })

  const append: EventStore.EventStore["Service"]["append"] = (stream, expected, events) => {
    const size = sizeOf(events)
    // A character is at most three bytes of UTF-8
    if (size * 3 > EventStore.MAX_APPEND_BYTES) {
      const bytes = EventStore.appendBytes(events)
      if (bytes > EventStore.MAX_APPEND_BYTES) return Effect.fail(new EventStore.AppendTooLarge({ stream, bytes }))
    }
    if (readOnly) return Effect.fail(lookingOnly)
    const before = expected === "noStream" ? -1 : expected
    if (!Number.isSafeInteger(before) || before < -1) return Effect.die(new Error(`No revision: ${expected}`))
    const unfit = events.find((event) => !isFit(event))
    if (unfit !== undefined)
      return Effect.die(new Error(`No event: its id must be a UUID in lower case, its texts well-formed and without NUL: ${unfit.id}`))
    return Effect.matchEffect(appends({ stream, before, events }), {
      onFailure: (fault) =>
        Effect.fail(fault.inDoubt ? new EventStore.AppendInDoubt({ stream, reason: fault.message }) : unavailable(fault)),
      onSuccess: (outcome): Effect.Effect<EventStore.Appended, EventStore.WrongRevision> => {
        if ("actual" in outcome) return Effect.fail(new EventStore.WrongRevision({ stream, actual: outcome.actual }))
        const { revision, position, isNew } = outcome
        // What was found there has the same ids, and whatever bytes it was written with
        if (isNew) recent.wrote({ stream, before, events }, PostgresLog.placeOf(position))
        wake.appended(position)
        return Effect.succeed({ revision, position })
      }
    })
  }

  const readStream: EventStore.EventStore["Service"]["readStream"] = (stream, { direction = "forwards", from, limit = Infinity } = {}) =>
    Stream.paginate({ from, left: limit }, (at: { readonly from: EventStore.Revision | undefined; readonly left: number }) =>
      at.left <= 0
        ? Effect.succeed([[], Option.none()] as const)
        : Effect.mapBoth(log.readStream(stream, direction, at.from, at.left), {
            onFailure: unavailable,
            onSuccess: ({ events, isLast }) => {
              const last = events.at(-1)
              const left = at.left - events.length
              const next = { from: (last?.revision ?? 0) + (direction === "forwards" ? 1 : -1), left }
              return [events, last === undefined || isLast || left <= 0 || next.from < 0 ? Option.none() : Option.some(next)] as const
            }
          })
    )

  const store = EventStore.EventStore.of({
    append,
    readStream,
    lastRevision: (stream) => Effect.mapError(tails(stream), unavailable),
    readAll: (after) =>
      Stream.paginate(after, (seen) =>
        Effect.mapBoth(log.readAll(seen), {
          onFailure: unavailable,
          onSuccess: ({ events, isLast }) => {
            const last = events.at(-1)
            return [events, last === undefined || isLast ? Option.none() : Option.some(last.position)] as const
          }
        })
      ),
    subscribe: (after) => follow(after, wake.head, pageAfter),
    head: Effect.mapBoth(log.last, { onFailure: unavailable, onSuccess: PostgresLog.positionOf }),
    loadSnapshot: (name) => Effect.mapError(log.loadSnapshot(name), unavailable),
    saveSnapshot: (name, snapshot) => (readOnly ? Effect.fail(lookingOnly) : Effect.mapError(snapshots({ name, ...snapshot }), unavailable))
  })
  if (readOnly) return store
  return yield* ClockGuard.make(store, {
    ask: connections.read<{ readonly now: number }>("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now"),
    timeOf: ([row]) =>
      row === undefined ? Effect.fail(new Fault("other", `${connections.where} did not tell its time`)) : Effect.succeed(row.now),
    every: ASK_TIME
  })
})

const isFit = ({ id, type, data, metadata }: EventStore.EventData) => ID.test(id) && isText(type) && isText(data) && isText(metadata)

/** Characters of an append: cheap to know, and never more than its bytes. */
const sizeOf = (events: ReadonlyArray<EventStore.EventData>): number => {
  let size = 0
  for (const { id, type, data, metadata } of events) size += id.length + type.length + data.length + metadata.length
  return size
}

export const make = Effect.fnUntraced(function* (options: PostgresEventStoreOptions) {
  const connections = yield* Connections.make(options)
  yield* Server.check(connections, options.readOnly ?? false)
  return yield* makeOn(connections, options)
}, Effect.mapError(unavailable))

export const layer = (options: PostgresEventStoreOptions): Layer.Layer<EventStore.EventStore, EventStore.StoreUnavailable> =>
  Layer.effect(EventStore.EventStore, make(options))
