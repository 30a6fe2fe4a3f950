/** The contract of event stores: reading streams and the log. */
import assert from "node:assert/strict"
import { EventStore } from "@millrace/event-sourcing"
import { Effect, Stream } from "effect"
import { nth } from "./Contract.ts"
import {
  ascends,
  type Batch,
  followed,
  freshEvents,
  freshStream,
  ids,
  lastOf,
  readAllOf,
  readLog,
  type Store,
  type StoreContract,
  slice
} from "./EventStoreFixtures.ts"

const LENGTH = 2_500
const longStream = (store: Store) =>
  Effect.gen(function* () {
    const stream = yield* freshStream
    const batch = yield* freshEvents(LENGTH)
    for (let i = 0; i < LENGTH; i += 500) yield* store.append(stream, lastOf(i), slice(batch, i, i + 500))
    return { stream, all: ids(batch) }
  })

export const reading: StoreContract = {
  *"reads a stream in both directions, from any revision, up to any limit"(store) {
    const { stream, all } = yield* longStream(store)
    const read = (options?: EventStore.ReadStreamOptions) => Effect.map(readAllOf(store, stream, options), ids)
    const back = all.toReversed()
    assert.deepEqual(yield* read(), all)
    assert.deepEqual(yield* read({ direction: "forwards" }), all)
    assert.deepEqual(yield* read({ direction: "backwards" }), back)
    assert.deepEqual(yield* read({ from: 2_498 }), all.slice(2_498))
    assert.deepEqual(yield* read({ from: LENGTH }), [])
    assert.deepEqual(yield* read({ from: 3, limit: 1 }), all.slice(3, 4))
    assert.deepEqual(yield* read({ from: 0, direction: "backwards" }), all.slice(0, 1))
    assert.deepEqual(yield* read({ from: 1, direction: "backwards", limit: 9 }), back.slice(-2))
    assert.deepEqual(yield* read({ direction: "backwards", limit: 1 }), back.slice(0, 1))
    for (const limit of [0, 1, 500, 511, 512, 513, 999, 1_000, 1_001, 1_024, 2_000, LENGTH, LENGTH + 1]) {
      assert.deepEqual(yield* read({ limit }), all.slice(0, limit))
      assert.deepEqual(yield* read({ limit, from: 700 }), all.slice(700, 700 + limit))
      assert.deepEqual(yield* read({ limit, direction: "backwards" }), back.slice(0, limit))
      assert.deepEqual(yield* read({ limit, from: 1_700, direction: "backwards" }), all.slice(0, 1_701).toReversed().slice(0, limit))
    }
  },

  *"finds nothing in a stream that does not exist"(store) {
    const stream = yield* freshStream
    assert.deepEqual(yield* readAllOf(store, stream), [])
    assert.deepEqual(yield* readAllOf(store, stream, { direction: "backwards", limit: 1 }), [])
    assert.deepEqual(yield* readAllOf(store, stream, { from: 5 }), [])
    assert.equal(yield* store.lastRevision(stream), "noStream")
  },

  *"reads the log in order after any position"(store) {
    const before = yield* store.head
    const { stream, all } = yield* longStream(store)
    const log = yield* readLog(store, before, stream, (events) => events.length >= LENGTH)
    assert.deepEqual(ids(log), all)
    assert(ascends(log.map(({ position }) => position)))
    for (const i of [0, 1, 510, 511, 512, 998, 999, 1_000, 2_498, 2_499]) {
      const rest = yield* Stream.runCollect(Stream.filter(store.readAll(nth(log, i).position), (event) => event.stream === stream))
      assert.deepEqual(ids(rest), all.slice(i + 1))
    }
    const fromStart = Stream.filter(store.readAll(EventStore.start), (event) => event.stream === stream)
    assert.deepEqual(yield* Stream.runCollect(Stream.take(fromStart, 1)), log.slice(0, 1))
  },

  *"reads appends to different streams in their order"(store) {
    const [one, two] = [yield* freshStream, yield* freshStream]
    const before = yield* store.head
    const batches: Array<Batch> = []
    for (let i = 0; i < 20; i++) {
      const batch = yield* freshEvents(2)
      yield* store.append(i % 2 === 0 ? one : two, lastOf(2 * Math.floor(i / 2)), batch)
      batches.push(batch)
    }
    assert.deepEqual(ids(yield* followed(store, before, [one, two], 40)), ids(batches.flat()))
  },

  *"allows readers to stop early many times"(store) {
    const { stream, all } = yield* longStream(store)
    const before = yield* store.head
    for (let i = 0; i < 256; i++) {
      const [first] = yield* Stream.runCollect(Stream.take(store.readStream(stream, { from: i }), 1))
      assert.equal(first?.id, all[i])
      yield* Stream.runDrain(Stream.take(store.readAll(EventStore.start), 1))
    }
    assert.equal((yield* store.append(stream, LENGTH - 1, yield* freshEvents(1))).revision, LENGTH)
    yield* followed(store, before, [stream], 1)
  },

  *"returns the end of the log"(store) {
    const stream = yield* freshStream
    const before = yield* store.head
    const { position } = yield* store.append(stream, "noStream", yield* freshEvents(3))
    yield* followed(store, before, [stream], 3)
    const head = yield* store.head
    assert(head >= position && position > before)
    const after = yield* Stream.runCollect(Stream.filter(store.readAll(head), (event) => event.stream === stream))
    assert.deepEqual(after, [])
  },

  *"returns the end of a stream as soon as it was appended"(store) {
    const stream = yield* freshStream
    assert.equal(yield* store.lastRevision(stream), "noStream")
    for (let revision = 0; revision < 40; revision++) {
      yield* store.append(stream, lastOf(revision), yield* freshEvents(1))
      assert.equal(yield* store.lastRevision(stream), revision)
      // Where a store answers at once, it has the append of this process; undefined is no answer
      const { now = () => revision } = store.lastRevision
      assert.equal(now(stream) ?? revision, revision)
    }
  }
}
