/** An event store over any list of events, and ways to tamper with a log. */
import { EventStore, HashChain, type StreamName } from "@millrace/event-sourcing"
import { Effect, Layer, Stream } from "effect"
import { Audit } from "../src/index.ts"
import type { Log } from "./Histories.ts"

type Events = ReadonlyArray<EventStore.RecordedEvent>

/** A store that has exactly these events and snapshots, in pages of this many events. It takes no appends. */
export const storeOf = ({ events, snapshots }: Log, page = 7): Layer.Layer<EventStore.EventStore> => {
  const stream = (name: StreamName.StreamName) => events.filter((event) => event.stream === name)
  return Layer.succeed(EventStore.EventStore, {
    append: () => Effect.die("Nothing is appended to the log of a test"),
    readStream: (name, { from = 0, limit } = {}) =>
      Stream.fromArray(
        stream(name)
          .filter(({ revision }) => revision >= from)
          .slice(0, limit)
      ),
    lastRevision: (name) => Effect.sync(() => stream(name).at(-1)?.revision ?? "noStream"),
    readAll: (after) => Stream.rechunk(Stream.fromArray(events.filter(({ position }) => position > after || after === "")), page),
    subscribe: () => Stream.never,
    head: Effect.sync(() => events.at(-1)?.position ?? EventStore.start),
    loadSnapshot: (name) => Effect.sync(() => snapshots.get(name)),
    saveSnapshot: () => Effect.void
  })
}

export const audit = (log: Log, options: Audit.Options = {}, page?: number) =>
  Effect.runPromise(Audit.run(options).pipe(Effect.provide(storeOf(log, page))))

/** Events in another order, or others, in the places of a log: positions count on as a store would have given them. */
export const placed = (events: Events): Events =>
  events.map((event, i) => ({ ...event, position: EventStore.position(String(i + 1).padStart(16, "0")) }))

/** The log of a forger who can rewrite everything: revisions and hashes are as if these events had been written. */
export const rehashed = (events: Events): Events => {
  const ends = new Map<string, { revision: number; hash: string }>()
  return events.map((event) => {
    const { revision, hash } = ends.get(event.stream) ?? { revision: -1, hash: HashChain.start(event.stream) }
    const { at: _, ...metadata } = HashChain.metadataOf(event)
    const sealed = HashChain.seal(hash, event.stream, revision + 1, event, HashChain.atOf(event), JSON.stringify(metadata))
    ends.set(event.stream, { revision: revision + 1, hash: HashChain.hashOf(sealed) })
    return { ...event, ...sealed, revision: revision + 1 }
  })
}

/** An event with other data. */
export const withData = (event: EventStore.RecordedEvent, change: (data: Record<string, unknown>) => Record<string, unknown>) => ({
  ...event,
  data: JSON.stringify(change(JSON.parse(event.data)))
})

export const FORGED_ID = "00000000-0000-7000-8000-ffffffffffff"

/** Changes of one event, by what is changed. */
export const edits: Readonly<Record<string, (event: EventStore.RecordedEvent) => EventStore.RecordedEvent>> = {
  data: (event) => withData(event, (data) => ({ ...data, note: 1 })),
  amount: (event) =>
    withData(event, (data) =>
      Object.fromEntries(Object.entries(data).map(([key, value]) => [key, typeof value === "number" ? value + 1 : value]))
    ),
  "a byte of text": (event) => ({ ...event, data: event.data.replace(/[a-z0-9](?="?\}?$)/u, (c) => (c === "x" ? "y" : "x")) || " " }),
  type: (event) => ({ ...event, type: `${event.type}d` }),
  id: (event) => ({ ...event, id: FORGED_ID }),
  time: (event) => ({ ...event, metadata: event.metadata.replace(/"at":"2026-01/u, `"at":"2027-01`) }),
  hash: (event) => ({
    ...event,
    metadata: event.metadata.replace(/"hash":"./u, (open) => open.slice(0, -1) + (open.endsWith("A") ? "B" : "A"))
  }),
  "who did it": (event) => ({ ...event, metadata: `${event.metadata.slice(0, -1)},"actor":"nobody"}` })
}

/** An event as it is encoded: its type as `_tag`, beside its data; `$correlationId` is of its metadata. */
export interface Tagged {
  readonly _tag: string
  readonly [field: string]: unknown
}

export type Entry = readonly [stream: StreamName.StreamName, at: string, event: Tagged]

/** The id of the event at a place of such a log, counted from 0. */
export const idAt = (place: number): string => `00000000-0000-7000-8000-${place.toString(16).padStart(12, "0")}`

/** A log of the given events, sealed in the given order, without any decision. */
export const written = (entries: ReadonlyArray<Entry>): Events =>
  rehashed(
    placed(
      entries.map(([stream, at, { _tag: type, $correlationId, ...data }], i) => ({
        id: idAt(i),
        type,
        data: JSON.stringify(data),
        metadata: JSON.stringify({ hash: "x".repeat(43), at, $correlationId }),
        stream,
        revision: 0,
        position: EventStore.start
      }))
    )
  )
