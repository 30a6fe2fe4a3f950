/** Snapshots. Each name has a stream of which the server keeps the newest event (`$maxCount` 1). They are not part of the log. */
import type { EventIds, EventStore, StreamName } from "@millrace/event-sourcing"
import { Effect, Hash, Option, Schema, Semaphore } from "effect"
import type { Clients } from "./Clients.ts"
import type { Fault } from "./Driver.ts"
import { textsOf } from "./KurrentLog.ts"
import * as OwnStreams from "./OwnStreams.ts"
import { SNAPSHOT } from "./Selecting.ts"

/** Attempts to save while other hosts save the same snapshot. */
const ATTEMPTS = 20
/** Saves of the same name queue within one host. */
const QUEUES = 16

const Metadata = Schema.fromJsonString(Schema.Struct({ revision: Schema.Int }))
const decodeMetadata = Schema.decodeUnknownOption(Metadata)
const encodeMetadata = Schema.encodeSync(Metadata)

export const make = (clients: Clients, newId: EventIds) => {
  const { append, keepNewest } = OwnStreams.make(clients, newId)
  const queues = Array.from({ length: QUEUES }, () => Semaphore.makeUnsafe(1))

  /** The snapshot and the last revision of its stream. */
  const find = (name: StreamName.StreamName) =>
    Effect.map(
      clients.call((driver) => driver.readStream(name, "backwards", undefined, 1)),
      ([event]): { readonly stored?: EventStore.StoredSnapshot | undefined; readonly last: EventStore.ExpectedRevision } => {
        if (event === undefined) return { last: "noStream" }
        const { data, metadata } = textsOf(event)
        const told = decodeMetadata(metadata)
        const stored = Option.isSome(told) ? { revision: told.value.revision, data } : undefined
        return { stored, last: event.revision }
      }
    )

  const save = (name: StreamName.StreamName, snapshot: EventStore.StoredSnapshot, attempts = 1): Effect.Effect<void, Fault> =>
    Effect.gen(function* () {
      const { stored, last } = yield* find(name)
      if (stored !== undefined && stored.revision > snapshot.revision) return
      if (last === "noStream") yield* keepNewest(name, 1)
      const { revision, data } = snapshot
      yield* Effect.catchIf(
        append(name, last, SNAPSHOT, data, encodeMetadata({ revision })),
        (fault) => OwnStreams.isOvertaken(fault) && attempts < ATTEMPTS,
        () => save(name, snapshot, attempts + 1)
      )
    })

  return {
    load: (name: StreamName.StreamName) => Effect.map(find(name), ({ stored }) => stored),
    save: (name: StreamName.StreamName, snapshot: EventStore.StoredSnapshot) =>
      Effect.suspend(() => {
        const queue = queues[Math.abs(Hash.string(name)) % QUEUES]
        return queue === undefined ? save(name, snapshot) : queue.withPermit(save(name, snapshot))
      })
  }
}
