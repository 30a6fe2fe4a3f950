/** Following the log through any failure of the subscription: each event arrives once, in order, without gaps. */
import { binaryEvent, EventStoreDBClient, jsonEvent } from "@eventstore/db-client"
import { EventStore } from "@millrace/event-sourcing"
import { Effect, Fiber, Stream } from "effect"
import { describe, expect } from "vitest"
import { fact, failsafe, followed, freshEvents, freshStream, IMPATIENT, ids, type Node, type Opened, settle } from "./Store.ts"

/** Waits until `is` holds. */
const until = (is: () => boolean): Effect.Effect<void> =>
  failsafe(Effect.repeat(Effect.andThen(Effect.sleep(5), Effect.sync(is)), { until: (held) => held }).pipe(Effect.asVoid))

const connected = ({ db, node }: Opened) =>
  failsafe(
    Effect.repeat(Effect.andThen(Effect.sleep(5), db.status), { until: (status) => status.connected && node.open("Subscribe") === 1 })
  )

/** Follows while three batches are appended: before `happens`, while the subscription is down, and after it was resumed. */
const through = (opened: Opened, happens: (node: Node) => Effect.Effect<unknown>) =>
  Effect.gen(function* () {
    const { node, store } = opened
    const stream = freshStream()
    const batches = [freshEvents(5), freshEvents(70), freshEvents(5)] as const
    const seen: Array<string> = []
    const fiber = yield* Effect.forkScoped(
      store.subscribe(EventStore.start).pipe(
        Stream.tap(({ events }) => Effect.sync(() => seen.push(...ids(events)))),
        Stream.takeUntil(() => seen.length >= 80),
        Stream.runDrain
      )
    )
    yield* connected(opened)
    yield* store.append(stream, "noStream", batches[0])
    yield* until(() => seen.length === 5)
    const before = node.calls("Subscribe")
    yield* happens(node)
    yield* until(() => node.open("Subscribe") === 0 || node.calls("Subscribe") > before)
    yield* settle(store, stream, 4, batches[1])
    yield* connected(opened)
    yield* settle(store, stream, 74, batches[2])
    yield* failsafe(Fiber.join(fiber))
    expect(seen).toEqual(ids(batches.flat()))
    expect(node.calls("Subscribe")).toBeGreaterThan(before)
  })

describe("a subscription resumes", () => {
  for (const [what, code] of [
    ["the node shuts down", 13],
    ["the node is unavailable", 14],
    ["the node fails", 2],
    ["the node cancels it", 1],
    ["the deadline passes", 4],
    ["a limit of the node is exceeded", 8],
    ["the leader changes", 9]
  ] as const)
    fact(`when ${what} (${code})`, (opened) => through(opened, (node) => node.endSubscriptions(code, what)))

  fact("when the connection breaks", (opened) => through(opened, (node) => node.disconnect))

  fact("after the node refused it for a while; meanwhile the status gives the reason", (opened) =>
    through(opened, (node) =>
      Effect.gen(function* () {
        let refused = 0
        node.faults.subscribe = () => (++refused < 3 ? { code: 14, details: "Connection dropped" } : undefined)
        yield* node.endSubscriptions()
        yield* failsafe(Effect.repeat(Effect.andThen(Effect.sleep(5), opened.db.status), { until: ({ connected }) => !connected }))
        const { trouble, behindSince } = yield* opened.db.status
        expect([typeof trouble?.reason, typeof behindSince]).toEqual(["string", "number"])
      })
    )
  )

  fact(
    "when the node does not confirm it",
    (opened) =>
      through(opened, (node) =>
        Effect.suspend(() => {
          let silent = 1
          node.faults.subscribe = () => (silent-- > 0 ? "silent" : undefined)
          return node.endSubscriptions()
        })
      ),
    IMPATIENT
  )
})

fact(
  "a subscription that delivers nothing while the log grows is detected and replaced",
  (opened) =>
    Effect.gen(function* () {
      const { node, db, store } = opened
      const batch = freshEvents(3)
      const fiber = yield* Effect.forkScoped(followed(store, EventStore.start, 3))
      yield* connected(opened)
      yield* node.muteSubscriptions
      yield* store.append(freshStream(), "noStream", batch)
      yield* failsafe(Effect.repeat(Effect.andThen(Effect.sleep(5), db.status), { until: ({ behind }) => behind > 0 }))
      expect(yield* failsafe(Fiber.join(fiber))).toEqual(ids(batch))
      expect(node.calls("Subscribe")).toBe(2)
    }),
  { look: 50 }
)

fact("a subscription resumes from the last checkpoint after thousands of events that the filter leaves out", (opened) =>
  Effect.gen(function* () {
    const { node, store } = opened
    const stream = freshStream()
    const [first, second] = [freshEvents(1), freshEvents(1)]
    const fiber = yield* Effect.forkScoped(followed(store, EventStore.start, 2))
    yield* connected(opened)
    yield* store.append(stream, "noStream", first)
    const client = EventStoreDBClient.connectionString(node.url)
    const noise = Array.from({ length: 3_000 }, () => jsonEvent({ type: "$noise", data: {} }))
    yield* Effect.promise(() => client.appendToStream("noise", noise))
    yield* until(() => node.checkpointed() > 0n)
    yield* node.endSubscriptions()
    yield* until(() => node.calls("Subscribe") === 2)
    yield* store.append(stream, 0, second)
    expect(yield* failsafe(Fiber.join(fiber))).toEqual(ids([...first, ...second]))
    expect(node.subscribedFrom).toEqual([0n, node.checkpointed()])
    yield* Effect.promise(() => client.dispose())
  })
)

fact("the log excludes the server's own events, snapshots, and events of other programs", ({ node, store }) =>
  Effect.gen(function* () {
    const stream = freshStream()
    const batch = freshEvents(2)
    const client = EventStoreDBClient.connectionString(node.url)
    yield* Effect.promise(() => client.appendToStream("nohyphen", jsonEvent({ type: "t", data: {} })))
    yield* Effect.promise(() => client.setStreamMetadata("others-1", { maxCount: 3 }))
    yield* store.append(stream, "noStream", batch)
    const { position } = yield* store.append(stream, 1, freshEvents(1))
    yield* store.saveSnapshot("accountSnapshot.v1-1", { revision: 0, data: "{}" })
    for (let i = 0; i < 20; i++) yield* Effect.promise(() => client.appendToStream("others", jsonEvent({ type: "t", data: { i } })))
    const log = yield* Stream.runCollect(store.readAll(EventStore.start))
    expect(log.map((event) => event.stream)).toEqual([stream, stream, stream])
    expect(yield* store.head).toBe(position)
    expect(node.log.visible("accountSnapshot.v1-1")).toHaveLength(1)
    yield* store.saveSnapshot("accountSnapshot.v1-1", { revision: 9, data: "[9]" })
    expect(node.log.visible("accountSnapshot.v1-1")).toHaveLength(1)
    expect(yield* store.loadSnapshot("accountSnapshot.v1-1")).toEqual({ revision: 9, data: "[9]" })
    yield* Effect.promise(() => client.dispose())
  })
)

fact(
  "the log contains only the given categories when other programs share the nodes",
  ({ node, store }) =>
    Effect.gen(function* () {
      const client = EventStoreDBClient.connectionString(node.url)
      const [first, second, third] = [freshEvents(1), freshEvents(1), freshEvents(1)]
      yield* store.append("facts-1", "noStream", first)
      const fiber = yield* Effect.forkScoped(followed(store, EventStore.start, 3))
      // A category ends at the first hyphen
      for (const stream of ["orders-1", "factsheets-1", "facts"])
        yield* Effect.promise(() => client.appendToStream(stream, jsonEvent({ type: "Ordered", data: {} })))
      yield* store.append("facts-1-2", "noStream", second)
      yield* store.append("facts-1", 0, third)
      const all = ids([...first, ...second, ...third])
      expect(yield* failsafe(Fiber.join(fiber))).toEqual(all)
      expect(yield* Effect.map(Stream.runCollect(store.readAll(EventStore.start)), ids)).toEqual(all)
      yield* Effect.promise(() => client.dispose())
    }),
  { categories: ["facts"] }
)

fact("the log excludes the events of the server's projections, including links to our events", ({ node, store }) =>
  Effect.gen(function* () {
    const batch = freshEvents(2)
    const client = EventStoreDBClient.connectionString(node.url)
    const fiber = yield* Effect.forkScoped(followed(store, EventStore.start, 2))
    yield* store.append("facts-1", "noStream", [batch[0]])
    for (const stream of ["$ce-facts", "$et-Happened", "$category-facts", "$streams"])
      yield* Effect.promise(() => client.appendToStream(stream, binaryEvent({ type: "$>", data: Buffer.from("0@facts-1") })))
    yield* store.append("facts-1", 0, [batch[1] ?? batch[0]])
    expect(yield* failsafe(Fiber.join(fiber))).toEqual(ids(batch))
    expect(yield* Effect.map(Stream.runCollect(store.readAll(EventStore.start)), ids)).toEqual(ids(batch))
    yield* Effect.promise(() => client.dispose())
  })
)

fact("an event in our streams that is not UTF-8 fails the read and is not skipped", ({ node, store }) =>
  Effect.gen(function* () {
    const bytes = new Uint8Array([0xff, 0xfe])
    const event = { id: freshEvents(1)[0].id, type: "Happened", contentType: "application/json", data: bytes, metadata: bytes }
    node.log.append("facts-1", "noStream", [event], 0)
    expect((yield* Effect.flip(Stream.runCollect(store.readStream("facts-1"))))._tag).toBe("StoreUnavailable")
    expect((yield* Effect.flip(Stream.runCollect(store.readAll(EventStore.start))))._tag).toBe("StoreUnavailable")
  })
)

fact("followers at one position share the pages of the log", ({ node, store }) =>
  Effect.gen(function* () {
    const FOLLOWERS = 20
    const batch = freshEvents(600)
    yield* store.append("facts-1", "noStream", batch)
    const following = Array.from({ length: FOLLOWERS }, () => followed(store, EventStore.start, batch.length))
    const before = node.calls("Read")
    for (const seen of yield* failsafe(Effect.all(following, { concurrency: "unbounded" }))) expect(seen).toEqual(ids(batch))
    // Each of them needs two pages
    expect(node.calls("Read") - before).toBeLessThan(FOLLOWERS)
  })
)

fact("a batch that holds nothing for a subscriber is not sent", ({ store }) =>
  Effect.gen(function* () {
    const [first, other, second] = [freshEvents(1), freshEvents(2), freshEvents(1)]
    yield* store.append("facts-1", "noStream", first)
    const got: Array<ReadonlyArray<string>> = []
    let isLive = false
    let skipped = EventStore.start
    const skip = (_: EventStore.Position, position: EventStore.Position) => {
      skipped = position
      return true
    }
    yield* Effect.forkScoped(
      Stream.runForEach(store.subscribe(EventStore.start, { categories: ["facts"], skip }), ({ events, live }) =>
        Effect.sync(() => {
          isLive = live
          if (events.length > 0) got.push(ids(events))
        })
      )
    )
    yield* until(() => isLive)
    const { position } = yield* store.append("others-1", "noStream", other)
    yield* until(() => skipped === position)
    yield* store.append("facts-1", 0, second)
    yield* until(() => got.length > 1)
    expect(got).toEqual([ids(first), ids(second)])
    expect(skipped).toBe(position)
  })
)

fact(
  "a read without an answer fails, and the next read succeeds",
  ({ node, store }) =>
    Effect.gen(function* () {
      const stream = freshStream()
      const batch = freshEvents(2)
      yield* store.append(stream, "noStream", batch)
      for (const fault of ["silent", "drop", "notReady"] as const) {
        let faults = 1
        node.faults.read = () => (faults-- > 0 ? fault : undefined)
        const failed = yield* failsafe(Effect.flip(store.lastRevision(stream)))
        expect(failed._tag).toBe("StoreUnavailable")
        expect(yield* failsafe(store.lastRevision(stream))).toBe(1)
      }
      node.faults.calm()
      expect(yield* Effect.map(Stream.runCollect(store.readStream(stream)), ids)).toEqual(ids(batch))
    }),
  IMPATIENT
)
