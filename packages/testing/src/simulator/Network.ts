/**
 * The stores over a network. A host's request runs outside the host: once sent it arrives, even if the host dies, and the answer to a dead
 * host is lost.
 */
import { BlobStore } from "@millrace/core"
import { EventStore, type StateStore } from "@millrace/event-sourcing"
import { Clock, Context, Effect, Stream } from "effect"
import type { SeededRandom } from "../SeededRandom.ts"
import type { Faults, WriteStage } from "./Faults.ts"
import { type Blobs, blobFaults } from "./FaultyStores.ts"
import type { Process, World } from "./World.ts"

type Events = EventStore.EventStore["Service"]
type States = StateStore.StateStore["Service"]

/** A host's connection to its stores. */
export interface Connection {
  readonly world: World
  readonly process: Process
  /** Called at each stage of every write. */
  readonly onWrite: (stage: WriteStage) => void
}

const remote = <A, E>({ world, process }: Connection, effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  world.outside.ask(process, effect, Context.empty())

const remoteWrite = <A, E>(connection: Connection, write: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.suspend(() => {
    connection.onWrite("before")
    if (!connection.process.alive) return Effect.never
    const stages = Effect.sync(() => connection.onWrite("sent")).pipe(
      Effect.andThen(write),
      Effect.onExit(() => Effect.sync(() => connection.onWrite("arrived")))
    )
    return remote(connection, stages)
  })

export const events = (connection: Connection, store: Events): Events => {
  // An appending process wakes a subscription; the subscriber's own process must continue it
  const arrives = Effect.callback<void>((resume) => connection.world.schedule(connection.process, () => resume(Effect.void)))
  return {
    append: EventStore.wrapAppend(store.append, (...of) => remoteWrite(connection, store.append(...of))),
    readStream: (stream, options) => Stream.unwrap(Effect.as(arrives, store.readStream(stream, options))),
    lastRevision: (stream) => remote(connection, store.lastRevision(stream)),
    readAll: (after) => Stream.unwrap(Effect.as(arrives, store.readAll(after))),
    // What a subscriber skips would not arrive over the network, so it gets every batch
    subscribe: (after, { skip: _, ...selection } = {}) =>
      Stream.mapEffect(store.subscribe(after, selection), (batch) => Effect.as(arrives, batch)),
    head: remote(connection, store.head),
    loadSnapshot: (name) => remote(connection, store.loadSnapshot(name)),
    saveSnapshot: (name, snapshot) => remote(connection, store.saveSnapshot(name, snapshot))
  }
}

export const states = (connection: Connection, store: States): States => ({
  get: (space, key) => remote(connection, store.get(space, key)),
  list: (space, options) => remote(connection, store.list(space, options)),
  write: (changes) => remoteWrite(connection, store.write(changes))
})

/** The blobs of all hosts, with faults. `isCalm`: whether faults have ended. */
export const shelf = (
  connection: Connection,
  blobs: Blobs,
  faults: Faults,
  random: SeededRandom,
  isCalm: () => boolean
): BlobStore.Shelf => {
  const call = blobFaults(faults, random, isCalm)
  // A blob that another process stored may be removed at any time, so each read looks it up
  const source = (id: string) =>
    Effect.suspend((): Effect.Effect<BlobStore.Source, BlobStore.BlobNotFound> => {
      const bytes = blobs.get(id)?.bytes
      if (bytes === undefined) return Effect.fail(new BlobStore.BlobNotFound({ id }))
      const read = (position: number, length: number) => Effect.sync(() => bytes.subarray(position, position + length))
      return Effect.succeed({ storedBytes: bytes.length, read })
    })
  return {
    write: (fill) =>
      Effect.gen(function* () {
        const pieces: Array<Uint8Array> = []
        const blob = yield* fill((bytes) => Effect.sync(() => void pieces.push(bytes)))
        const put = Effect.map(Clock.currentTimeMillis, (at) => void blobs.set(blob.id, { bytes: Buffer.concat(pieces), at }))
        yield* remoteWrite(connection, call(put))
        return blob
      }),
    read: (id) => remote(connection, call(source(id))),
    remove: (id) => remoteWrite(connection, call(Effect.sync(() => void blobs.delete(id)))),
    list: Stream.suspend(() => Stream.fromIterable([...blobs].map(([id, { at, bytes }]) => ({ id, at, storedBytes: bytes.length })))),
    tidy: () => Effect.succeed(0)
  }
}
