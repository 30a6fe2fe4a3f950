/** An event store in memory, for tests, simulations and experiments. It is lost with the process. */
import { Effect, Layer, Option, Stream } from "effect"
import * as Store from "./EventStore.ts"
import { follow, Head } from "./Head.ts"
import type { StreamName } from "./StreamName.ts"

/** Events read at once. */
const PAGE = 1_000

const positionOf = (place: number) => Store.position(place.toString().padStart(16, "0"))

export const make = Effect.sync(() => {
  const log: Array<Store.RecordedEvent> = []
  const streams = new Map<StreamName, Array<Store.RecordedEvent>>()
  const snapshots = new Map<StreamName, Store.StoredSnapshot>()
  const head = new Head(Store.start)

  const lastRevision = (name: StreamName): Store.ExpectedRevision => {
    const stream = streams.get(name)
    return stream === undefined ? "noStream" : stream.length - 1
  }

  const append: Store.EventStore["Service"]["append"] = (name, expected, events) =>
    Effect.suspend((): Effect.Effect<Store.Appended, Store.WrongRevision | Store.AppendTooLarge> => {
      const bytes = Store.appendBytes(events)
      if (bytes > Store.MAX_APPEND_BYTES) return Effect.fail(new Store.AppendTooLarge({ stream: name, bytes }))
      const stream = streams.get(name) ?? []
      const first = expected === "noStream" ? 0 : expected + 1
      if (stream.length !== first) {
        const again = events.every((event, i) => stream[first + i]?.id === event.id)
        const last = stream[first + events.length - 1]
        return again && last !== undefined
          ? Effect.succeed({ revision: last.revision, position: last.position })
          : Effect.fail(new Store.WrongRevision({ stream: name, actual: lastRevision(name) }))
      }
      streams.set(name, stream)
      for (const { id, type, data, metadata } of events) {
        const recorded = { id, type, data, metadata, stream: name, revision: stream.length, position: positionOf(log.length + 1) }
        stream.push(recorded)
        log.push(recorded)
      }
      const appended = { revision: stream.length - 1, position: positionOf(log.length) }
      head.advance(appended.position)
      return Effect.succeed(appended)
    })

  const readStream: Store.EventStore["Service"]["readStream"] = (name, { direction = "forwards", from, limit } = {}) =>
    Stream.suspend(() => {
      const stream = streams.get(name) ?? []
      const events = direction === "forwards" ? stream.slice(from ?? 0) : stream.slice(0, (from ?? stream.length) + 1).reverse()
      return Stream.fromArray(events.slice(0, limit))
    })

  /** Positions count from 1 without gaps, so the place in the array is the position. */
  const placeOf = (after: Store.Position) => (after === Store.start ? 0 : Number(after))
  const page = (after: Store.Position) => Effect.sync(() => log.slice(placeOf(after), placeOf(after) + PAGE))

  return Store.EventStore.of({
    append,
    readStream,
    lastRevision: (stream) => Effect.sync(() => lastRevision(stream)),
    // Page after page, so that a reader also gets what is appended while it reads
    readAll: (after) =>
      Stream.paginate(after, (seen) =>
        Effect.map(page(seen), (events) => {
          const last = events.at(-1)
          return [events, last === undefined || events.length < PAGE ? Option.none() : Option.some(last.position)] as const
        })
      ),
    subscribe: (after) => follow(after, head, page),
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
