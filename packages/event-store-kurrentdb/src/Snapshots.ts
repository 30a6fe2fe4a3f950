/** Snapshots: a stream for each name, of which the server keeps the newest event (`$maxCount` 1). They are not part of the log. */
import type { EventIds, EventStore, StreamName } from "@millrace/event-sourcing"
import { Clock, Effect, Option, Schema, Semaphore } from "effect"
import type { Clients } from "./Clients.ts"
import type { Fault } from "./Driver.ts"
import { textsOf } from "./KurrentLog.ts"
import { SNAPSHOT } from "./Selecting.ts"

export interface Snapshots {
  readonly load: (name: StreamName.StreamName) => Effect.Effect<EventStore.StoredSnapshot | undefined, Fault>
  readonly save: (name: StreamName.StreamName, snapshot: EventStore.StoredSnapshot) => Effect.Effect<void, Fault>
}

/** Attempts to save while other hosts save the same snapshot. */
const ATTEMPTS = 20
/** Within one host, saves of the same name queue. */
const QUEUES = 16

const Metadata = Schema.fromJsonString(Schema.Struct({ revision: Schema.Int }))
const decodeMetadata = Schema.decodeUnknownOption(Metadata)
const encodeMetadata = Schema.encodeSync(Metadata)

interface Found {
  readonly stored: EventStore.StoredSnapshot | undefined
  /** Where the stream of the snapshot ends. */
  readonly last: EventStore.ExpectedRevision
}

export const make = (clients: Clients, newId: EventIds): Snapshots => {
  const queues = Array.from({ length: QUEUES }, () => Semaphore.makeUnsafe(1))

  const find = (name: StreamName.StreamName): Effect.Effect<Found, Fault> =>
    Effect.map(
      clients.call((driver) => driver.readStream(name, "backwards", undefined, 1)),
      ([event]) => {
        if (event === undefined) return { stored: undefined, last: "noStream" }
        const { data, metadata } = textsOf(event)
        const told = decodeMetadata(metadata)
        const stored = Option.isSome(told) ? { revision: told.value.revision, data } : undefined
        return { stored, last: event.revision }
      }
    )

  const keepNewest = (name: StreamName.StreamName) =>
    Effect.gen(function* () {
      const id = newId(yield* Clock.currentTimeMillis)
      const metadata = { id, type: "$metadata", data: `{"$maxCount":1}`, metadata: "" }
      yield* clients
        .call((driver) => driver.append(`$$${name}`, "noStream", [metadata]))
        .pipe(
          // It was set before
          Effect.catchIf(
            ({ kind }) => kind === "wrongRevision",
            () => Effect.void
          )
        )
    })

  const save = (name: StreamName.StreamName, snapshot: EventStore.StoredSnapshot, attempts = 1): Effect.Effect<void, Fault> =>
    Effect.gen(function* () {
      const { stored, last } = yield* find(name)
      if (stored !== undefined && stored.revision > snapshot.revision) return
      if (last === "noStream") yield* keepNewest(name)
      const { revision, data } = snapshot
      const event = { id: newId(yield* Clock.currentTimeMillis), type: SNAPSHOT, data, metadata: encodeMetadata({ revision }) }
      yield* clients
        .call((driver) => driver.append(name, last, [event]))
        .pipe(
          Effect.catchIf(
            ({ kind }) => kind === "wrongRevision" && attempts < ATTEMPTS,
            () => save(name, snapshot, attempts + 1)
          )
        )
    })

  return {
    load: (name) => Effect.map(find(name), ({ stored }) => stored),
    save: (name, snapshot) =>
      Effect.suspend(() => {
        const queue = queues[queueOf(name)]
        return queue === undefined ? save(name, snapshot) : queue.withPermit(save(name, snapshot))
      })
  }
}

const queueOf = (name: string): number => {
  let sum = 0
  for (let i = 0; i < name.length; i++) sum = (sum * 31 + name.charCodeAt(i)) % QUEUES
  return sum
}
