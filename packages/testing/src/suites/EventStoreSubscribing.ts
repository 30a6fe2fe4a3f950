/** The contract of event stores: following the log. */
import assert from "node:assert/strict"
import { EventStore, StreamName } from "@millrace/event-sourcing"
import { Deferred, Effect, Fiber, Stream } from "effect"
import { atOnce, failsafe, nth } from "./Contract.ts"
import {
  type Batch,
  change,
  followed,
  freshEvents,
  freshStream,
  ids,
  lastOf,
  ofStreams,
  type Store,
  type StoreContract,
  slice
} from "./EventStoreFixtures.ts"

/** Collects ids of these streams until `count` were seen, and notes how many had been seen when the subscription was live. */
const watch = (store: Store, after: EventStore.Position, names: ReadonlyArray<StreamName.StreamName>, count: number) =>
  Effect.gen(function* () {
    const seen: Array<string> = []
    const isLive = yield* Deferred.make<number>()
    const fiber = yield* Effect.forkScoped(
      store.subscribe(after).pipe(
        Stream.mapEffect(({ events, live }) =>
          Effect.gen(function* () {
            const wasLive = yield* Deferred.isDone(isLive)
            assert(live || !wasLive, "it was live before")
            seen.push(...ids(events.filter(({ stream }) => names.includes(stream))))
            if (live) yield* Deferred.succeed(isLive, seen.length)
          })
        ),
        Stream.takeUntil(() => seen.length >= count),
        Stream.runDrain
      )
    )
    return {
      seen,
      caughtUp: failsafe("caught up", Deferred.await(isLive)),
      done: failsafe(`${count} events`, Effect.as(Fiber.join(fiber), seen)),
      interrupt: Fiber.interrupt(fiber)
    }
  })

export const subscribing: StoreContract = {
  *"catches up, announces that it is live, and continues"(store) {
    const [one, two] = [yield* freshStream, yield* freshStream]
    const before = yield* store.head
    const batches = yield* Effect.replicateEffect(freshEvents(2), 4)
    yield* store.append(one, "noStream", nth(batches, 0))
    // What the log shows a moment later would not be old when the subscription starts
    yield* followed(store, before, [one], 2)
    const watched = yield* watch(store, before, [one, two], 8)
    assert.equal(yield* watched.caughtUp, 2)
    yield* store.append(two, "noStream", nth(batches, 1))
    yield* store.append(one, 1, nth(batches, 2))
    yield* store.append(two, 1, nth(batches, 3))
    assert.deepEqual(yield* watched.done, ids(batches.flat()))
  },

  *"gives a subscription all events that it selects, and tells how far it has read"(store) {
    const stream = yield* freshStream
    const before = yield* store.head
    const [old, recent] = [yield* freshEvents(6), yield* freshEvents(3)]
    const typed = (batch: Batch, other: number) =>
      change(batch, (all) => all.map((event, i) => (i % other === 0 ? event : { ...event, type: "Other" })))
    const [first, second] = [typed(old, 2), typed(recent, 3)]
    yield* store.append(stream, "noStream", first)
    yield* followed(store, before, [stream], 6)
    const selected: Array<EventStore.RecordedEvent> = []
    let reached = before
    yield* Effect.forkScoped(
      store.subscribe(before, { types: [first[0].type], categories: [StreamName.category(stream)] }).pipe(
        Stream.runForEach((batch) =>
          Effect.sync(() => {
            for (const event of batch.events) {
              assert(event.position > reached)
              reached = event.position
              if (event.stream === stream && event.type === first[0].type) selected.push(event)
            }
            const end = EventStore.endOf(batch) ?? reached
            assert(end >= reached)
            reached = end
          })
        )
      )
    )
    const { position } = yield* store.append(stream, 5, second)
    const end: Effect.Effect<void> = Effect.suspend(() => (reached >= position ? Effect.void : Effect.andThen(Effect.sleep(5), end)))
    yield* failsafe("the end", end)
    assert.deepEqual(ids(selected), ids([...first, ...second].filter(({ type }) => type === first[0].type)))
  },

  *"leaves out a batch only if it holds no selected event, and the subscriber agrees"(store) {
    const stream = yield* freshStream
    const before = yield* store.head
    const events = yield* freshEvents(60)
    const typed = change(events, (all) => all.map((event, i) => ({ ...event, type: i % 7 < 5 ? "Other" : "Wanted" })))
    const selected: Array<string> = []
    let reached = before
    let live = false
    let asked = 0
    const skip = (after: EventStore.Position, position: EventStore.Position) => {
      assert(live, "the end of the log was not reached yet")
      assert.equal(after, reached)
      assert(position > after)
      if (++asked % 3 === 0) return false
      reached = position
      return true
    }
    yield* Effect.forkScoped(
      store.subscribe(before, { types: ["Wanted"], categories: [StreamName.category(stream)], skip }).pipe(
        Stream.runForEach((batch) =>
          Effect.sync(() => {
            for (const { id, position, type } of batch.events) {
              assert(position > reached)
              if (type === "Wanted") selected.push(id)
            }
            reached = EventStore.endOf(batch) ?? reached
            live = batch.live
          })
        )
      )
    )
    let end = before
    for (let i = 0; i < typed.length; i += 2) {
      end = (yield* store.append(stream, lastOf(i), slice(typed, i, i + 2))).position
      if (i % 3 === 0) yield* Effect.sleep(1)
    }
    const reaches: Effect.Effect<void> = Effect.suspend(() => (reached >= end ? Effect.void : Effect.andThen(Effect.sleep(5), reaches)))
    yield* failsafe("the end", reaches)
    assert.deepEqual(selected, ids(typed.filter(({ type }) => type === "Wanted")))
  },

  *"is live at once at the end of the log"(store) {
    const stream = yield* freshStream
    const watched = yield* watch(store, yield* store.head, [stream], 1)
    assert.equal(yield* watched.caughtUp, 0)
    const batch = yield* freshEvents(1)
    yield* store.append(stream, "noStream", batch)
    assert.deepEqual(yield* watched.done, ids(batch))
  },

  *"starts after any position"(store) {
    const stream = yield* freshStream
    const before = yield* store.head
    const batch = yield* freshEvents(1_600)
    yield* store.append(stream, "noStream", batch)
    const log = yield* followed(store, before, [stream], batch.length)
    for (const i of [0, 511, 512, 1_000, 1_598]) {
      const rest = yield* followed(store, nth(log, i).position, [stream], batch.length - i - 1)
      assert.deepEqual(rest, log.slice(i + 1))
    }
    const next = yield* freshEvents(1)
    const watched = yield* watch(store, nth(log, -1).position, [stream], 1)
    yield* watched.caughtUp
    yield* store.append(stream, 1_599, next)
    assert.deepEqual(yield* watched.done, ids(next))
  },

  *"delivers each event once and in order to many subscribers while others append"(store) {
    const streams = yield* Effect.replicateEffect(freshStream, 3)
    const before = yield* store.head
    const batches = yield* Effect.replicateEffect(freshEvents(3), 200)
    const half = yield* Deferred.make<EventStore.Position>()
    const early = yield* Effect.replicateEffect(watch(store, before, streams, 600), 4)
    const write = Effect.forEach(batches, (batch, i) =>
      Effect.gen(function* () {
        const { position } = yield* store.append(nth(streams, i % 3), lastOf(3 * Math.floor(i / 3)), batch)
        if (i === 99) yield* Deferred.succeed(half, position)
      })
    )
    const writer = yield* Effect.forkScoped(write)
    const late = yield* watch(store, yield* Deferred.await(half), streams, 300)
    yield* Fiber.join(writer)
    const all = ids(batches.flat())
    for (const { done } of early) assert.deepEqual(yield* done, all)
    assert.deepEqual(yield* late.done, all.slice(300))
  },

  *"misses nothing when the subscriber is slow"(store) {
    const stream = yield* freshStream
    const batch = yield* freshEvents(2_400)
    const isWritten = yield* Deferred.make<void>()
    const started = yield* Deferred.make<void>()
    const slow = ofStreams(store.subscribe(yield* store.head), [stream]).pipe(
      Stream.tap(() => Effect.andThen(Deferred.succeed(started, undefined), Deferred.await(isWritten))),
      Stream.take(batch.length),
      Stream.runCollect
    )
    const fiber = yield* Effect.forkScoped(slow)
    yield* store.append(stream, "noStream", slice(batch, 0, 1))
    yield* failsafe("the first event", Deferred.await(started))
    for (let i = 1; i < batch.length; i += 100) yield* store.append(stream, lastOf(i), slice(batch, i, i + 100))
    yield* Deferred.succeed(isWritten, undefined)
    assert.deepEqual(ids(yield* failsafe("all events", Fiber.join(fiber))), ids(batch))
  },

  *"stops when it is interrupted, without an effect on other subscriptions"(store) {
    const stream = yield* freshStream
    const before = yield* store.head
    const batches = yield* Effect.replicateEffect(freshEvents(1), 9)
    const steady = yield* watch(store, before, [stream], 9)
    for (let round = 0; round < 8; round++) {
      const after = round % 2 === 0 ? before : EventStore.start
      const many = yield* Effect.replicateEffect(watch(store, after, [stream], Number.MAX_SAFE_INTEGER), 32)
      // Some while they catch up, the others while they wait for the next event
      if (round % 2 === 0) for (const { caughtUp } of many) yield* caughtUp
      yield* Effect.forEach(many, ({ interrupt }) => interrupt, atOnce)
      const seen = many.map((one) => one.seen.length)
      yield* store.append(stream, lastOf(round), nth(batches, round))
      for (const [i, one] of many.entries()) assert.equal(one.seen.length, seen[i])
    }
    yield* store.append(stream, 7, nth(batches, 8))
    assert.deepEqual(yield* steady.done, ids(batches.flat()))
    assert.equal((yield* followed(store, before, [stream], 9)).length, 9)
  }
}
