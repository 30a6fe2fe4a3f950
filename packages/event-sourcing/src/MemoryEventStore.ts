/** An event store in memory, for tests, simulations and experiments. Its content is lost with the process. */
import { Effect, Exit, Layer, Stream } from "effect"
import * as Store from "./EventStore.ts"
import { selects } from "./Following.ts"
import { follow, Head, type Skip } from "./Head.ts"
import { placeOf, positionOf } from "./LogPlace.ts"
import * as Paging from "./Paging.ts"
import type { StreamName } from "./StreamName.ts"

/** The most events in a page. */
const PAGE = 1_000
/** The most newer events that a refused append is told. */
const NEWER = 100

const newerOf = (stream: ReadonlyArray<Store.RecordedEvent>, first: number): Pick<Store.WrongRevision, "newer"> =>
  stream.length > first && stream.length - first <= NEWER ? { newer: stream.slice(first) } : {}

export const make = Effect.sync(() => {
  const log: Array<Store.RecordedEvent> = []
  const streams = new Map<StreamName, Array<Store.RecordedEvent>>()
  const snapshots = new Map<StreamName, Store.StoredSnapshot>()
  const head = new Head(Store.start)

  const lastRevision = (name: StreamName) => Store.expectedOf((streams.get(name)?.length ?? 0) - 1)

  const submit: Store.SubmitAppend = (name, expected, events, told, conditions = []) => {
    const refused = Store.tooLarge(name, events) ?? Store.failedCondition(conditions, lastRevision)
    if (refused !== undefined) return told(Exit.fail(refused))
    const stream = streams.get(name) ?? []
    const first = expected === "noStream" ? 0 : expected + 1
    if (stream.length !== first) {
      const again = events.every((event, i) => stream[first + i]?.id === event.id)
      const last = stream[first + events.length - 1]
      return told(
        again && last !== undefined
          ? Exit.succeed({ revision: last.revision, position: last.position })
          : Exit.fail(new Store.WrongRevision({ stream: name, actual: lastRevision(name), ...newerOf(stream, first) }))
      )
    }
    streams.set(name, stream)
    for (const { id, type, data, metadata } of events) {
      const recorded = { id, type, data, metadata, stream: name, revision: stream.length, position: positionOf(log.length + 1) }
      stream.push(recorded)
      log.push(recorded)
    }
    const appended = { revision: stream.length - 1, position: positionOf(log.length) }
    head.advance(appended.position)
    told(Exit.succeed(appended))
  }

  const readStream: Store.EventStore["Service"]["readStream"] = (name, { direction = "forwards", from, limit } = {}) =>
    Stream.suspend(() => {
      const stream = streams.get(name) ?? []
      const events = direction === "forwards" ? stream.slice(from ?? 0) : stream.slice(0, (from ?? stream.length) + 1).reverse()
      return Stream.fromArray(events.slice(0, limit))
    })

  /** Places count from 1 without gaps, so the events after a place begin at that index of the array. */
  const page = (after: Store.Position) => Effect.sync(() => log.slice(placeOf(after), placeOf(after) + PAGE))

  const skipBy = ({ skip, ...selection }: Store.Subscription): Skip | undefined => {
    const matches = selects(selection)
    return skip && ((after) => (log.slice(placeOf(after)).some(matches) || !skip(after, head.position) ? undefined : head.position))
  }

  return Store.EventStore.of({
    append: Store.appendBy(submit, { isConditional: true }),
    readStream,
    lastRevision: Object.assign((stream: StreamName) => Effect.sync(() => lastRevision(stream)), { now: lastRevision }),
    readAll: (after) => Paging.ofLog(after, (seen) => Effect.map(page(seen), (events) => ({ events, isLast: events.length < PAGE }))),
    subscribe: (after, subscription = {}) => follow(after, head, page, skipBy(subscription)),
    head: Effect.sync(() => head.position),
    loadSnapshot: (name) => Effect.sync(() => snapshots.get(name)),
    saveSnapshot: (name, snapshot) =>
      Effect.sync(() => {
        const there = snapshots.get(name)
        if (there === undefined || there.revision <= snapshot.revision) snapshots.set(name, snapshot)
      })
  })
})

export const layer: Layer.Layer<Store.EventStore> = Layer.effect(Store.EventStore, make)
