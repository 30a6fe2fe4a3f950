/** Tests that pass at any node: at the one that `KURRENTDB_URL` names, else at a stand-in. They know only its address. */
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
  fact("sent again with the same ids and other data leaves the first data in place; at a new revision it is written again", ({ store }) =>
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

  fact("sent again after 4,000 later events returns its first result", ({ store }) =>
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

  fact("of part of a batch at its own revision succeeds; with more events or in another order it is a conflict", ({ store }) =>
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

  fact("keeps its order among a hundred concurrent appends to consecutive revisions", ({ store }) =>
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

  fact("over the size limit is AppendTooLarge, one byte less is accepted, and concurrent appends succeed", ({ store }) =>
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

  fact("of more than a megabyte is refused by the node if it is sent, and concurrent and later appends succeed", ({ db, store }) =>
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

describe("following and reading", () => {
  fact("110 followers of one store see every event once and in order, beside 100 appends and 120 reads that are left early", ({ store }) =>
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

  fact("a follower that is slower than the writers gets every event, although memory does not hold them all", ({ store }) =>
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

  fact("an append is visible to the next read on another connection, 100 of 100 times", ({ store }, connection) =>
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
  fact("are JSON to other clients, with $correlationId and $causationId in their metadata", ({ store }, connection) =>
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

  fact("are read back unchanged, even numbers that no double holds and text that is not JSON", ({ store }) =>
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
