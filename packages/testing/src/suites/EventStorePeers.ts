/** The contract of event stores: two clients of one log, as two processes have them. */
import assert from "node:assert/strict"
import type { StreamName } from "@millrace/event-sourcing"
import { Deferred, Effect, Fiber, Semaphore, Stream } from "effect"
import { atOnce, type Contract, failsafe, nth } from "./Contract.ts"
import {
  appendAnywhere,
  type Batch,
  freshEvents,
  freshStream,
  ids,
  LOSERS,
  lastOf,
  newId,
  ofStreams,
  readAllOf,
  readLog,
  type Store,
  wrongRevision
} from "./EventStoreFixtures.ts"

export const peers: Contract<readonly [Store, Store]> = {
  *"see each other's appends at once, as conflicts and as the end of a stream"([a, b]) {
    const stream = yield* freshStream
    const written: Array<string> = []
    for (let revision = 0; revision < 30; revision++) {
      const [writer, other] = revision % 2 === 0 ? [a, b] : [b, a]
      const expected = lastOf(revision)
      assert.equal(yield* other.lastRevision(stream), expected)
      const batch = yield* freshEvents(1)
      yield* writer.append(stream, expected, batch)
      written.push(...ids(batch))
      assert.equal(yield* other.lastRevision(stream), revision)
      assert.equal(wrongRevision(yield* Effect.exit(other.append(stream, expected, yield* freshEvents(1)))).actual, revision)
      assert.deepEqual(ids(yield* readAllOf(other, stream)), written)
    }
  },

  *"answer repeated appends of each other as the first time"([a, b]) {
    const stream = yield* freshStream
    const [first, second] = [yield* freshEvents(3), yield* freshEvents(2)]
    const appended = yield* a.append(stream, "noStream", first)
    assert.deepEqual(yield* b.append(stream, "noStream", first), appended)
    yield* b.append(stream, 2, second)
    assert.deepEqual(yield* a.append(stream, "noStream", first), appended)
    assert.deepEqual(ids(yield* readAllOf(a, stream)), ids([...first, ...second]))
  },

  *"lose nothing when both append to the same streams, and see the same order"([a, b]) {
    const streams = yield* Effect.replicateEffect(freshStream, 3)
    const before = yield* a.head
    const watch = (store: Store) => Stream.runCollect(Stream.take(ofStreams(store.subscribe(before), streams), 400))
    const watching = yield* Effect.forEach([a, b], (store) => Effect.forkScoped(watch(store)))
    const batches = yield* Effect.replicateEffect(freshEvents(2), 200)
    const losers = yield* Semaphore.make(LOSERS)
    const append = (batch: Batch, i: number) => appendAnywhere(i % 2 === 0 ? a : b, nth(streams, i % 3), batch, losers)
    const appended = yield* Effect.forEach(batches, append, atOnce)
    const [seenByA, seenByB] = yield* Effect.forEach(watching, (fiber) => failsafe("400 events", Fiber.join(fiber)))
    assert.deepEqual(seenByA, seenByB)
    assert.deepEqual(new Set(ids(seenByA ?? [])), new Set(ids(batches.flat())))
    for (const [i, { revision, position }] of appended.entries()) {
      const event = seenByA?.find((one) => one.stream === streams[i % 3] && one.revision === revision)
      assert.deepEqual([event?.id, event?.position], [nth(nth(batches, i), -1).id, position])
    }
  },

  *"see each other's events live, and the end of the log"([a, b]) {
    const stream = yield* freshStream
    const before = yield* b.head
    const isLive = yield* Deferred.make<void>()
    const live = b.subscribe(before).pipe(Stream.tap((batch) => (batch.live ? Deferred.succeed(isLive, undefined) : Effect.void)))
    const fiber = yield* Effect.forkScoped(Stream.runCollect(Stream.take(ofStreams(live, [stream]), 2)))
    yield* failsafe("caught up", Deferred.await(isLive))
    const batch = yield* freshEvents(2)
    const { position } = yield* a.append(stream, "noStream", batch)
    assert.deepEqual(ids(yield* failsafe("two events", Fiber.join(fiber))), ids(batch))
    assert((yield* b.head) >= position)
    assert.deepEqual(ids(yield* readLog(b, before, stream, (events) => events.length >= 2)), ids(batch))
  },

  *"share snapshots"([a, b]) {
    const name: StreamName.StreamName = `suiteSnapshot.v1-${yield* newId}`
    yield* a.saveSnapshot(name, { revision: 2, data: "2" })
    yield* b.saveSnapshot(name, { revision: 1, data: "1" })
    assert.deepEqual(yield* b.loadSnapshot(name), { revision: 2, data: "2" })
    yield* b.saveSnapshot(name, { revision: 3, data: "3" })
    assert.deepEqual(yield* a.loadSnapshot(name), { revision: 3, data: "3" })
  }
}
