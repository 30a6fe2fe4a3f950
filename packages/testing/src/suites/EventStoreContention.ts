/** The contract of event stores: appends of many writers at once, and any schedule of appends. */
import assert from "node:assert/strict"
import type { EventStore, StreamName } from "@millrace/event-sourcing"
import { Effect, Exit, Semaphore } from "effect"
import fc from "fast-check"
import { nth, property } from "./Contract.ts"
import {
  appendAnywhere,
  type Batch,
  change,
  type EventData,
  freshEvents,
  freshStream,
  ids,
  LOSERS,
  readAllOf,
  type StoreContract,
  wrongRevision
} from "./EventStoreFixtures.ts"

export const contention: StoreContract = {
  "is answered alike however often it is sent at once, and is written once": (store) =>
    Effect.gen(function* () {
      const stream = yield* freshStream
      const [first, second] = [yield* freshEvents(3), yield* freshEvents(2)]
      const send = (expected: EventStore.ExpectedRevision, batch: Batch) =>
        Effect.all(
          Array.from({ length: 20 }, () => store.append(stream, expected, batch)),
          { concurrency: "unbounded" }
        )
      assert.equal(new Set((yield* send("noStream", first)).map(({ position }) => position)).size, 1)
      assert.deepEqual(new Set((yield* send(2, second)).map(({ revision }) => revision)), new Set([4]))
      assert.deepEqual(ids(yield* readAllOf(store, stream)), ids([...first, ...second]))
    }),

  "fails alone on a conflict, among appends sent at once": (store) =>
    Effect.gen(function* () {
      const sent = yield* Effect.forEach(
        Array.from({ length: 9 }, (_, i) => i % 3 === 0),
        (isTaken) =>
          Effect.all({
            stream: freshStream,
            batch: freshEvents(2),
            there: Effect.map(freshEvents(1), (one) => (isTaken ? one : undefined))
          })
      )
      for (const { stream, there } of sent) if (there !== undefined) yield* store.append(stream, "noStream", there)
      const exits = yield* Effect.forEach(sent, ({ stream, batch }) => Effect.exit(store.append(stream, "noStream", batch)), {
        concurrency: "unbounded"
      })
      for (const [i, { stream, batch, there }] of sent.entries()) {
        if (there === undefined) assert(Exit.isSuccess(nth(exits, i)))
        else assert.equal(wrongRevision(nth(exits, i)).actual, 0)
        assert.deepEqual(ids(yield* readAllOf(store, stream)), ids(there ?? batch))
      }
    }),

  "begins a stream for one of many who try at once": (store) =>
    Effect.gen(function* () {
      const stream = yield* freshStream
      const batches = yield* Effect.replicateEffect(freshEvents(2), 32)
      const exits = yield* Effect.forEach(batches, (batch) => Effect.exit(store.append(stream, "noStream", batch)), {
        concurrency: "unbounded"
      })
      const winners = batches.filter((_, i) => Exit.isSuccess(nth(exits, i)))
      assert.equal(winners.length, 1)
      for (const exit of exits) if (Exit.isFailure(exit)) assert.equal(wrongRevision(exit).actual, 1)
      assert.deepEqual(ids(yield* readAllOf(store, stream)), ids(nth(winners, 0)))
    }),

  "loses nothing of 1,000 who append to one stream at once": (store) =>
    Effect.gen(function* () {
      const stream = yield* freshStream
      const batches = yield* Effect.replicateEffect(freshEvents(1), 1_000)
      const losers = yield* Semaphore.make(LOSERS)
      const appended = yield* Effect.forEach(batches, (batch) => appendAnywhere(store, stream, batch, losers), { concurrency: "unbounded" })
      const events = yield* readAllOf(store, stream)
      assert.equal(events.length, 1_000)
      for (const [i, { revision, position }] of appended.entries())
        assert.deepEqual([nth(events, revision).id, nth(events, revision).position], [nth(batches, i)[0].id, position])
    }),

  "is answered as a model of the stream says, whatever the schedule": (store) =>
    property(
      fc.array(
        fc.oneof(
          fc.record({
            kind: fc.constant("new"),
            stream: fc.nat(2),
            count: fc.integer({ min: 1, max: 4 }),
            offset: fc.constantFrom(0, 0, 0, -1, 1, -3)
          }),
          fc.record({
            kind: fc.constant("again"),
            nth: fc.nat(30),
            into: fc.constantFrom<(batch: Batch) => ReadonlyArray<EventData>>(
              (batch) => batch,
              (batch) => batch.slice(0, -1),
              (batch) => batch.toReversed(),
              (batch) => [...batch, ...batch]
            ),
            offset: fc.constantFrom(0, 0, 0, 1, -1)
          })
        ),
        { minLength: 1, maxLength: 24 }
      ),
      40,
      (schedule) =>
        Effect.gen(function* () {
          const streams = yield* Effect.replicateEffect(freshStream, 3)
          const model = new Map(streams.map((stream): [StreamName.StreamName, Array<string>] => [stream, []]))
          const sent: Array<{ readonly stream: StreamName.StreamName; readonly first: number; readonly batch: Batch }> = []
          for (const step of schedule) {
            if ("nth" in step && sent.length === 0) continue
            const stream = "nth" in step ? nth(sent, step.nth % sent.length).stream : nth(streams, step.stream)
            const there = model.get(stream) ?? []
            const first = Math.max(0, step.offset + ("nth" in step ? nth(sent, step.nth % sent.length).first : there.length))
            const batch = "nth" in step ? change(nth(sent, step.nth % sent.length).batch, step.into) : yield* freshEvents(step.count)
            sent.push({ stream, first, batch })
            const exit = yield* Effect.exit(store.append(stream, first === 0 ? "noStream" : first - 1, batch))
            const isNew = first === there.length
            if (isNew) there.push(...ids(batch))
            if (isNew || batch.every(({ id }, i) => there[first + i] === id)) {
              assert(Exit.isSuccess(exit), String(exit))
              assert.equal(exit.value.revision, first + batch.length - 1)
            } else assert.equal(wrongRevision(exit).actual, there.length === 0 ? "noStream" : there.length - 1)
          }
          for (const [stream, there] of model) {
            assert.deepEqual(ids(yield* readAllOf(store, stream)), there)
            assert.equal(yield* store.lastRevision(stream), there.length === 0 ? "noStream" : there.length - 1)
          }
        })
    ),

  "keeps all that was acknowledged and nothing that was refused, whoever else appends at once": (store) =>
    property(
      fc.array(fc.record({ stream: fc.nat(2), count: fc.integer({ min: 1, max: 3 }), offset: fc.constantFrom(0, 0, 0, 1, 2) }), {
        minLength: 2,
        maxLength: 40
      }),
      25,
      (schedule) =>
        Effect.gen(function* () {
          const streams = yield* Effect.replicateEffect(freshStream, 3)
          const run = ({ stream: place, count, offset }: (typeof schedule)[number]) =>
            Effect.gen(function* () {
              const [stream, batch] = [nth(streams, place), yield* freshEvents(count)]
              const last = yield* store.lastRevision(stream)
              const first = offset + (last === "noStream" ? 0 : last + 1)
              const exit = yield* Effect.exit(store.append(stream, first === 0 ? "noStream" : first - 1, batch))
              return { stream, first, batch, exit }
            })
          const told = yield* Effect.forEach(schedule, run, { concurrency: "unbounded" })
          for (const stream of streams) {
            const written = told
              .filter((one) => one.stream === stream && Exit.isSuccess(one.exit))
              .sort((a, b) => a.first - b.first)
              .flatMap(({ batch }) => ids(batch))
            assert.deepEqual(ids(yield* readAllOf(store, stream)), written)
          }
          for (const { exit } of told) if (Exit.isFailure(exit)) wrongRevision(exit)
        })
    )
}
