/** The contract of event stores: appends of many writers at once, and any schedule of appends. */
import assert from "node:assert/strict"
import type { EventStore, StreamName } from "@millrace/event-sourcing"
import { Effect, Exit, Semaphore } from "effect"
import fc from "fast-check"
import { atOnce, nth, property } from "./Contract.ts"
import {
  appendAnywhere,
  type Batch,
  change,
  type EventData,
  freshEvents,
  freshStream,
  ids,
  LOSERS,
  lastOf,
  readAllOf,
  type StoreContract,
  wrongRevision
} from "./EventStoreFixtures.ts"

/** An append to one of three streams, at its end or at a wrong revision. */
const newAppend = fc.record({ stream: fc.nat(2), count: fc.integer({ min: 1, max: 4 }), offset: fc.constantFrom(0, 0, 0, -1, 1, -3) })

/** An append that was sent before, unchanged or changed, at the same revision or at another. */
const repeatedAppend = fc.record({
  nth: fc.nat(30),
  into: fc.constantFrom<(batch: Batch) => ReadonlyArray<EventData>>(
    (batch) => batch,
    (batch) => batch.slice(0, -1),
    (batch) => batch.toReversed(),
    (batch) => [...batch, ...batch]
  ),
  offset: fc.constantFrom(0, 0, 0, 1, -1)
})

/** An append after a look at the stream's end, there or a little further. */
const racingAppend = fc.record({ stream: fc.nat(2), count: fc.integer({ min: 1, max: 3 }), offset: fc.constantFrom(0, 0, 0, 1, 2) })

export const contention: StoreContract = {
  *"writes an append once that is sent many times at once, and answers all alike"(store) {
    const stream = yield* freshStream
    const [first, second] = [yield* freshEvents(3), yield* freshEvents(2)]
    const send = (expected: EventStore.ExpectedRevision, batch: Batch) =>
      Effect.replicateEffect(store.append(stream, expected, batch), 20, atOnce)
    assert.equal(new Set((yield* send("noStream", first)).map(({ position }) => position)).size, 1)
    assert.deepEqual(new Set((yield* send(2, second)).map(({ revision }) => revision)), new Set([4]))
    assert.deepEqual(ids(yield* readAllOf(store, stream)), ids([...first, ...second]))
  },

  *"refuses only the conflicting ones among appends sent at once"(store) {
    const begin = (isTaken: boolean) =>
      Effect.all({ stream: freshStream, batch: freshEvents(2), there: isTaken ? freshEvents(1) : Effect.undefined })
    const sent = yield* Effect.all(Array.from({ length: 9 }, (_, i) => begin(i % 3 === 0)))
    for (const { stream, there } of sent) if (there !== undefined) yield* store.append(stream, "noStream", there)
    const exits = yield* Effect.forEach(sent, ({ stream, batch }) => Effect.exit(store.append(stream, "noStream", batch)), atOnce)
    for (const [i, { stream, batch, there }] of sent.entries()) {
      if (there === undefined) assert(Exit.isSuccess(nth(exits, i)))
      else assert.equal(wrongRevision(nth(exits, i)).actual, 0)
      assert.deepEqual(ids(yield* readAllOf(store, stream)), ids(there ?? batch))
    }
  },

  *"lets one of many writers begin a stream"(store) {
    const stream = yield* freshStream
    const batches = yield* Effect.replicateEffect(freshEvents(2), 32)
    const exits = yield* Effect.forEach(batches, (batch) => Effect.exit(store.append(stream, "noStream", batch)), atOnce)
    const winners = batches.filter((_, i) => Exit.isSuccess(nth(exits, i)))
    assert.equal(winners.length, 1)
    for (const exit of exits) if (Exit.isFailure(exit)) assert.equal(wrongRevision(exit).actual, 1)
    assert.deepEqual(ids(yield* readAllOf(store, stream)), ids(nth(winners, 0)))
  },

  *"loses none of 1,000 appends to one stream at once"(store) {
    const stream = yield* freshStream
    const batches = yield* Effect.replicateEffect(freshEvents(1), 1_000)
    const losers = yield* Semaphore.make(LOSERS)
    const appended = yield* Effect.forEach(batches, (batch) => appendAnywhere(store, stream, batch, losers), atOnce)
    const events = yield* readAllOf(store, stream)
    assert.equal(events.length, 1_000)
    for (const [i, { revision, position }] of appended.entries())
      assert.deepEqual([nth(events, revision).id, nth(events, revision).position], [nth(batches, i)[0].id, position])
  },

  *"behaves as a model of the stream under any schedule"(store) {
    yield* property(fc.array(fc.oneof(newAppend, repeatedAppend), { minLength: 1, maxLength: 24 }), 40, function* (schedule) {
      const streams = yield* Effect.replicateEffect(freshStream, 3)
      const model = new Map(streams.map((stream): [StreamName.StreamName, Array<string>] => [stream, []]))
      const sent: Array<{ readonly stream: StreamName.StreamName; readonly first: number; readonly batch: Batch }> = []
      for (const step of schedule) {
        if ("nth" in step && sent.length === 0) continue
        const again = (n: number) => nth(sent, n % sent.length)
        const stream = "nth" in step ? again(step.nth).stream : nth(streams, step.stream)
        const there = model.get(stream) ?? []
        const first = Math.max(0, step.offset + ("nth" in step ? again(step.nth).first : there.length))
        const batch = "nth" in step ? change(again(step.nth).batch, step.into) : yield* freshEvents(step.count)
        sent.push({ stream, first, batch })
        const exit = yield* Effect.exit(store.append(stream, lastOf(first), batch))
        const isNew = first === there.length
        if (isNew) there.push(...ids(batch))
        if (isNew || batch.every(({ id }, i) => there[first + i] === id)) {
          assert(Exit.isSuccess(exit), String(exit))
          assert.equal(exit.value.revision, first + batch.length - 1)
        } else assert.equal(wrongRevision(exit).actual, lastOf(there.length))
      }
      for (const [stream, there] of model) {
        assert.deepEqual(ids(yield* readAllOf(store, stream)), there)
        assert.equal(yield* store.lastRevision(stream), lastOf(there.length))
      }
    })
  },

  *"keeps every confirmed append and no refused one while others append"(store) {
    yield* property(fc.array(racingAppend, { minLength: 2, maxLength: 40 }), 25, function* (schedule) {
      const streams = yield* Effect.replicateEffect(freshStream, 3)
      const run = ({ stream: place, count, offset }: (typeof schedule)[number]) =>
        Effect.gen(function* () {
          const [stream, batch] = [nth(streams, place), yield* freshEvents(count)]
          const last = yield* store.lastRevision(stream)
          const first = offset + (last === "noStream" ? 0 : last + 1)
          const exit = yield* Effect.exit(store.append(stream, lastOf(first), batch))
          return { stream, first, batch, exit }
        })
      const sent = yield* Effect.forEach(schedule, run, atOnce)
      for (const stream of streams) {
        const written = sent
          .filter((one) => one.stream === stream && Exit.isSuccess(one.exit))
          .sort((a, b) => a.first - b.first)
          .flatMap(({ batch }) => ids(batch))
        assert.deepEqual(ids(yield* readAllOf(store, stream)), written)
      }
      for (const { exit } of sent) if (Exit.isFailure(exit)) wrongRevision(exit)
    })
  }
}
