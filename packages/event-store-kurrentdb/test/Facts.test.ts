/** What is so at any node, a real one where one is named: asked of the store by its address alone. */
import { randomUUID } from "node:crypto"
import { EventStoreDBClient } from "@eventstore/db-client"
import { EventStore } from "@millrace/event-sourcing"
import { Effect, Fiber, type Scope, Stream } from "effect"
import { describe, expect, it } from "vitest"
import { address } from "./Node.ts"
import { errorOf, failsafe, freshEvents, freshStream, ids, type Opened, openOn, readIds, tagOf } from "./Store.ts"

const fact = (title: string, body: (opened: Omit<Opened, "node">, connection: string) => Effect.Effect<unknown, unknown, Scope.Scope>) =>
  it(title, () =>
    Effect.runPromise(
      Effect.asVoid(Effect.scoped(Effect.flatMap(address, (connection) => Effect.flatMap(openOn(connection), (o) => body(o, connection)))))
    )
  )

const ofSize = (bytes: number): EventStore.EventData => {
  const empty = { id: randomUUID(), type: "Happened", data: `""`, metadata: "{}" }
  return { ...empty, data: `"${"x".repeat(bytes - EventStore.appendBytes([empty]))}"` }
}

describe("an append", () => {
  fact("sent again compares ids only: what was written first stays; at a new revision it is written again", ({ store }) =>
    Effect.gen(function* () {
      const stream = freshStream()
      const [event] = freshEvents(1)
      const appended = yield* store.append(stream, "noStream", [event])
      expect(yield* store.append(stream, "noStream", [{ ...event, data: `{"other":1}` }])).toEqual(appended)
      expect((yield* store.append(stream, 0, [event])).revision).toBe(1)
      const there = yield* Stream.runCollect(store.readStream(stream))
      expect(there.map(({ id, data }) => [id, data])).toEqual([
        [event.id, "{}"],
        [event.id, "{}"]
      ])
    })
  )

  fact("sent again is answered as the success it was after 4,000 later events", ({ store }) =>
    Effect.gen(function* () {
      const stream = freshStream()
      const batch = freshEvents(3)
      const appended = yield* store.append(stream, "noStream", batch)
      for (let i = 0; i < 4; i++) {
        yield* store.append(freshStream(), "noStream", freshEvents(500))
        yield* store.append(stream, i * 500 + 2, freshEvents(500))
      }
      expect(yield* store.append(stream, "noStream", batch)).toEqual(appended)
      expect(yield* store.lastRevision(stream)).toBe(2_002)
    })
  )

  fact("of a part at its own revision is that success, of more or in another order a conflict", ({ store }) =>
    Effect.gen(function* () {
      const stream = freshStream()
      const [a, b, c] = [freshEvents(1)[0], freshEvents(1)[0], freshEvents(1)[0]]
      yield* store.append(stream, "noStream", [a, b])
      expect((yield* store.append(stream, "noStream", [a])).revision).toBe(0)
      expect((yield* store.append(stream, 0, [b])).revision).toBe(1)
      for (const batch of [[a, b, c], [b, a], [b]] as const)
        expect(errorOf(yield* Effect.exit(store.append(stream, "noStream", batch)))).toMatchObject({ _tag: "WrongRevision", actual: 1 })
      expect(yield* readIds(store, stream)).toEqual([a.id, b.id])
    })
  )

  fact("to consecutive revisions, a hundred at once, keeps its place", ({ store }) =>
    Effect.gen(function* () {
      const stream = freshStream()
      const batches = Array.from({ length: 100 }, () => freshEvents(1))
      const appended = yield* failsafe(
        Effect.forEach(batches, (batch, i) => store.append(stream, i === 0 ? "noStream" : i - 1, batch), { concurrency: "unbounded" })
      )
      expect(appended.map(({ revision }) => revision)).toEqual(batches.map((_, i) => i))
      expect(yield* readIds(store, stream)).toEqual(ids(batches.flat()))
    })
  )

  fact("over a megabyte is refused by its type before it is sent; one byte less is taken; those beside it do not notice", ({ store }) =>
    Effect.gen(function* () {
      const streams = Array.from({ length: 20 }, freshStream)
      const large = freshStream()
      const [appended, refused, taken] = yield* failsafe(
        Effect.all(
          [
            Effect.forEach(streams, (stream) => store.append(stream, "noStream", freshEvents(1)), { concurrency: "unbounded" }),
            Effect.forEach([EventStore.MAX_APPEND_BYTES + 1, 1_048_577, 17_000_000], (bytes) =>
              Effect.exit(store.append(large, "noStream", [ofSize(bytes)]))
            ),
            store.append(freshStream(), "noStream", [ofSize(EventStore.MAX_APPEND_BYTES)])
          ],
          { concurrency: "unbounded" }
        )
      )
      expect(refused.map(tagOf)).toEqual(["AppendTooLarge", "AppendTooLarge", "AppendTooLarge"])
      expect([...appended, taken].map(({ revision }) => revision)).toEqual(Array(21).fill(0))
      expect(yield* store.lastRevision(large)).toBe("noStream")
    })
  )

  fact("over a megabyte that gets as far as the node is refused by it, and what is appended beside it goes on", ({ db, store }) =>
    Effect.gen(function* () {
      const send = (bytes: number) => Effect.flip(db.clients.call((driver) => driver.append(freshStream(), "noStream", [ofSize(bytes)])))
      const streams = Array.from({ length: 20 }, freshStream)
      const beside = Effect.forEach(streams, (stream) => store.append(stream, "noStream", freshEvents(1)), { concurrency: "unbounded" })
      const [over, far, appended] = yield* failsafe(
        Effect.all([send(1_048_577 + 200), send(18_000_000), beside], { concurrency: "unbounded" })
      )
      expect(over.kind).toBe("tooLarge")
      expect(["tooLarge", "refused", "noAnswer"]).toContain(far.kind)
      expect(appended.map(({ revision }) => revision)).toEqual(streams.map(() => 0))
      for (const stream of streams) expect((yield* failsafe(store.append(stream, 0, freshEvents(1)))).revision).toBe(1)
    })
  )
})

describe("following", () => {
  fact("110 at once on one store, with 100 appends and 120 reads that are left early: each sees all, once, in order", ({ store }) =>
    Effect.gen(function* () {
      const from = yield* store.head
      const [stream, ...others] = [freshStream(), ...Array.from({ length: 5 }, freshStream)] as const
      const mine = new Set<string>([stream, ...others])
      const isMine = (event: EventStore.RecordedEvent) => mine.has(event.stream)
      const follow = Effect.suspend(() => {
        const seen: Array<EventStore.RecordedEvent> = []
        const batches = store.subscribe(from).pipe(
          Stream.map(({ events }) => seen.push(...events.filter(isMine))),
          Stream.takeUntil((count) => count >= 150)
        )
        return Effect.as(Stream.runDrain(batches), seen)
      })
      const followers = yield* Effect.replicateEffect(Effect.forkScoped(follow), 110)
      yield* store.append(stream, "noStream", freshEvents(50))
      const writing = Effect.forEach(
        others,
        (other) =>
          Effect.forEach(
            Array.from({ length: 20 }, (_, i) => i),
            (i) => store.append(other, i === 0 ? "noStream" : i - 1, freshEvents(1))
          ),
        { concurrency: "unbounded" }
      )
      const leaving = Effect.replicateEffect(Stream.runDrain(Stream.take(store.readStream(stream), 1)), 120)
      yield* failsafe(Effect.all([writing, leaving], { concurrency: "unbounded" }))
      const log = yield* store.readAll(from).pipe(Stream.filter(isMine), Stream.runCollect)
      expect(log).toHaveLength(150)
      for (const follower of followers) expect(yield* failsafe(Fiber.join(follower))).toEqual(log)
    })
  )

  fact("slower than others write, more than is kept in memory: everything comes, without a gap", ({ store }) =>
    Effect.gen(function* () {
      const from = yield* store.head
      const stream = freshStream()
      const batches = Array.from({ length: 13 }, () => freshEvents(500))
      let allowed = 0
      const seen: Array<string> = []
      const follower = yield* Effect.forkScoped(
        store.subscribe(from).pipe(
          Stream.tap(() => Effect.repeat(Effect.sleep(2), { until: () => Effect.succeed(allowed > 0) })),
          Stream.flatMap(({ events }) => Stream.fromIterable(events)),
          Stream.filter((event) => event.stream === stream),
          Stream.tap(({ id }) => Effect.sync(() => seen.push(id))),
          Stream.take(6_500),
          Stream.runDrain
        )
      )
      for (const [i, batch] of batches.entries()) yield* store.append(stream, i === 0 ? "noStream" : i * 500 - 1, batch)
      allowed = 1
      yield* failsafe(Fiber.join(follower))
      expect(seen).toEqual(ids(batches.flat()))
    })
  )

  fact("what was appended is in the next read of another connection, 100 of 100 times", ({ store }, connection) =>
    Effect.gen(function* () {
      const { store: other } = yield* openOn(connection)
      const stream = freshStream()
      for (let i = 0; i < 100; i++) {
        yield* store.append(stream, i === 0 ? "noStream" : i - 1, freshEvents(1))
        expect(yield* other.lastRevision(stream)).toBe(i)
      }
    })
  )
})

describe("events", () => {
  fact("are JSON to any other client, with the ids of what caused them where it looks for them", ({ store }, connection) =>
    Effect.gen(function* () {
      const stream = freshStream()
      const metadata = `{"$correlationId":"request-1","$causationId":"cause-1"}`
      yield* store.append(stream, "noStream", [{ ...freshEvents(1)[0], data: `{"a":[1.0]}`, metadata }])
      const client = EventStoreDBClient.connectionString(connection.replace(/^kurrentdb/, "esdb"))
      const read = Effect.promise(async () => {
        for await (const { event } of client.readStream(stream)) return event
        return undefined
      })
      expect(yield* read).toMatchObject({
        isJson: true,
        data: { a: [1] },
        metadata: { $correlationId: "request-1", $causationId: "cause-1" }
      })
      yield* Effect.promise(() => client.dispose())
    })
  )

  fact("come back as they were written, be it numbers that no double holds or what is no JSON at all", ({ store }) =>
    Effect.gen(function* () {
      const stream = freshStream()
      const texts = [`{"n":9007199254740993}`, `{"n":1.0,"a":1,"a":2}`, "{", "", `"\\u0000"`, " {} "]
      const events = texts.map((data) => ({ ...freshEvents(1)[0], data, metadata: data }))
      const [first, ...rest] = events
      if (first === undefined) return
      yield* store.append(stream, "noStream", [first, ...rest])
      const there = yield* Stream.runCollect(store.readStream(stream))
      expect(there.map(({ data, metadata }) => [data, metadata])).toEqual(texts.map((text) => [text, text]))
    })
  )
})
