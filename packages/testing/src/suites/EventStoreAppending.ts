/** The contract of event stores: appends, one at a time. */
import assert from "node:assert/strict"
import { EventStore } from "@millrace/event-sourcing"
import { Effect } from "effect"
import {
  ascends,
  type Batch,
  change,
  contents,
  freshEvent,
  freshEvents,
  freshStream,
  ids,
  readAllOf,
  type StoreContract,
  slice,
  wrongRevision
} from "./EventStoreFixtures.ts"

export const appending: StoreContract = {
  *"appends only at the expected revision"(store) {
    const [one, other] = [yield* freshStream, yield* freshStream]
    const batch = yield* freshEvents(2)
    assert.equal((yield* store.append(one, "noStream", batch)).revision, 1)
    for (const expected of ["noStream", 0, 2, 7] as const) {
      const refused = wrongRevision(yield* Effect.exit(store.append(one, expected, yield* freshEvents(1))))
      assert.deepEqual([refused.stream, refused.actual], [one, 1])
    }
    const refused = wrongRevision(yield* Effect.exit(store.append(other, 0, yield* freshEvents(1))))
    assert.deepEqual([refused.stream, refused.actual, refused.newer], [other, "noStream", undefined])
    const third = yield* freshEvents(1)
    assert.equal((yield* store.append(one, 1, third)).revision, 2)
    const events = yield* readAllOf(store, one)
    assert.deepEqual(contents(events), [...batch, ...third])
    assert.deepEqual(
      events.map(({ stream, revision }) => ({ stream, revision })),
      [0, 1, 2].map((revision) => ({ stream: one, revision }))
    )
    assert.deepEqual(yield* readAllOf(store, other), [])
  },

  *"tells with a refusal all events that the writer did not know, or none"(store) {
    const stream = yield* freshStream
    for (const [before, count] of [
      ["noStream", 3],
      [2, 2],
      [4, 120]
    ] as const)
      yield* store.append(stream, before, yield* freshEvents(count))
    const events = yield* readAllOf(store, stream)
    for (const expected of ["noStream", 0, 2, 3, 100, 123, 300] as const) {
      const { newer } = wrongRevision(yield* Effect.exit(store.append(stream, expected, yield* freshEvents(1))))
      if (newer !== undefined) assert.deepEqual(newer, events.slice(EventStore.revisionOf(expected) + 1))
      if (newer !== undefined) assert(newer.length > 0)
    }
  },

  *"returns the revision and position of the last event"(store) {
    const stream = yield* freshStream
    const first = yield* store.append(stream, "noStream", yield* freshEvents(3))
    const second = yield* store.append(stream, 2, yield* freshEvents(1))
    const events = yield* readAllOf(store, stream)
    assert.deepEqual([first.revision, second.revision], [2, 3])
    assert.deepEqual([first.position, second.position], [events[2]?.position, events[3]?.position])
    assert(ascends(events.map(({ position }) => position)))
    assert(first.position > EventStore.start)
  },

  *"answers a repeated append as the first time, also after later events"(store) {
    const stream = yield* freshStream
    const [first, second] = [yield* freshEvents(3), yield* freshEvents(2)]
    const appended = yield* store.append(stream, "noStream", first)
    assert.deepEqual(yield* store.append(stream, "noStream", first), appended)
    const later = yield* store.append(stream, 2, second)
    assert.deepEqual(yield* store.append(stream, "noStream", first), appended)
    assert.deepEqual(yield* store.append(stream, 2, second), later)
    assert.deepEqual(ids(yield* readAllOf(store, stream)), ids([...first, ...second]))
  },

  *"accepts a part of a written append again, but not more events or another order"(store) {
    const stream = yield* freshStream
    const batch = yield* freshEvents(4)
    yield* store.append(stream, "noStream", batch)
    const part = (from: number, to: number) => slice(batch, from, to)
    const parts = [
      ["noStream", part(0, 2), 1],
      ["noStream", part(0, 1), 0],
      [1, part(2, 4), 3],
      [0, part(1, 3), 2]
    ] as const
    for (const [expected, events, revision] of parts) assert.equal((yield* store.append(stream, expected, events)).revision, revision)
    const extra = yield* freshEvent
    const others = [
      ["noStream", change(batch, (all) => [...all, extra])],
      ["noStream", change(batch, (all) => all.toReversed())],
      ["noStream", change(batch, ([a, , c]) => [a, ...(c === undefined ? [] : [c])])],
      ["noStream", change(batch, (all) => [...all.slice(0, 3), extra])],
      [0, part(0, 2)],
      [2, change(part(3, 4), (all) => [...all, extra])]
    ] as const
    for (const [expected, events] of others)
      assert.equal(wrongRevision(yield* Effect.exit(store.append(stream, expected, events))).actual, 3)
    assert.deepEqual(ids(yield* readAllOf(store, stream)), ids(batch))
  },

  *"accepts an append of the largest size, and writes nothing of a larger one"(store) {
    const stream = yield* freshStream
    const [first, second] = [yield* freshEvent, yield* freshEvent]
    // Letters of two bytes, so that a store which counts characters fails
    const filledTo = (bytes: number): Batch => {
      const room = bytes - EventStore.appendBytes([first, { ...second, data: `""` }])
      return [first, { ...second, data: `"${"x".repeat(room % 2)}${"é".repeat(Math.floor(room / 2))}"` }]
    }
    const tooMuch = yield* Effect.flip(store.append(stream, "noStream", filledTo(EventStore.MAX_APPEND_BYTES + 1)))
    assert.deepEqual(tooMuch, new EventStore.AppendTooLarge({ stream, bytes: EventStore.MAX_APPEND_BYTES + 1 }))
    assert.equal(yield* store.lastRevision(stream), "noStream")
    assert.deepEqual(yield* readAllOf(store, stream), [])
    const most = filledTo(EventStore.MAX_APPEND_BYTES)
    assert.equal((yield* store.append(stream, "noStream", most)).revision, 1)
    assert.deepEqual(contents(yield* readAllOf(store, stream)), most)
  }
}
