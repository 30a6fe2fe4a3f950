/** Appends, whatever a node does: each fact of a real one, and that nothing is lost, doubled or left hanging. */
import assert from "node:assert/strict"
import { randomUUID } from "node:crypto"
import { EventStoreDBClient, jsonEvent, NO_STREAM } from "@eventstore/db-client"
import { EventStore } from "@millrace/event-sourcing"
import type { AppendFault } from "@millrace/testing/kurrentdb"
import { Effect, Fiber } from "effect"
import { describe, expect, it } from "vitest"
import { errorOf, fact, failsafe, freshEvents, freshStream, IMPATIENT, ids, type Node, open, readIds, settle, tagOf } from "./Store.ts"

const UNAVAILABLE = 14

/** What the node holds, whoever can reach it. */
const ofStream = (node: Node, stream: string) => node.log.visible(stream).map(({ id }) => id)

describe("an append without an answer", () => {
  const faults: ReadonlyArray<readonly [string, AppendFault, string]> = [
    ["that was lost", "lost", "AppendInDoubt"],
    ["that was written", "unanswered", "AppendInDoubt"],
    ["whose connection broke before it was written", "dropBefore", "AppendInDoubt"],
    ["whose connection broke after it was written", "dropAfter", "AppendInDoubt"],
    ["that comes to a node which is not ready", "notReady", "StoreUnavailable"],
    ["that is unavailable", { code: UNAVAILABLE, details: "Connection dropped" }, "AppendInDoubt"],
    ["that failed at the server", { code: 2, details: "Exception was thrown by handler." }, "AppendInDoubt"],
    ["that is refused for want of permission", { code: 7, details: "Access Denied" }, "StoreUnavailable"],
    ["that the server aborted", { code: 10, details: "Timeout" }, "AppendInDoubt"]
  ]
  for (const [what, fault, tag] of faults)
    fact(
      `${what} is ${tag}; the identical batch settles it`,
      ({ node, store }) =>
        Effect.gen(function* () {
          const stream = freshStream()
          const [first, second] = [freshEvents(3), freshEvents(2)]
          yield* settle(store, stream, "noStream", first)
          node.faults.append = () => fault
          expect(tagOf(yield* failsafe(Effect.exit(store.append(stream, 2, second))))).toBe(tag)
          node.faults.calm()
          const settled = yield* failsafe(settle(store, stream, 2, second))
          expect(settled.revision).toBe(4)
          expect(yield* settle(store, stream, 2, second)).toEqual(settled)
          expect(ofStream(node, stream)).toEqual(ids([...first, ...second]))
        }),
      IMPATIENT
    )

  fact(
    "and that arrives after it was sent again is there once",
    ({ node, store }) =>
      Effect.gen(function* () {
        const stream = freshStream()
        const batch = freshEvents(3)
        node.faults.append = () => "late"
        expect(tagOf(yield* Effect.exit(store.append(stream, "noStream", batch)))).toBe("AppendInDoubt")
        node.faults.calm()
        const appended = yield* settle(store, stream, "noStream", batch)
        node.faults.release()
        expect(ofStream(node, stream)).toEqual(ids(batch))
        expect(yield* settle(store, stream, "noStream", batch)).toEqual(appended)
      }),
    IMPATIENT
  )

  fact(
    "is given up in time, even where nobody may interrupt the caller",
    ({ node, store }) =>
      Effect.gen(function* () {
        node.faults.append = () => "lost"
        const exit = yield* failsafe(Effect.uninterruptible(Effect.exit(store.append(freshStream(), "noStream", freshEvents(1)))))
        expect(tagOf(exit)).toBe("AppendInDoubt")
      }),
    IMPATIENT
  )

  fact(
    "lets a fresh client take over, and leaves the calls of the old one alone",
    ({ db, node, store }) =>
      Effect.gen(function* () {
        const [lost, kept] = [freshStream(), freshStream()]
        node.faults.append = ({ stream }) => (stream === lost ? "lost" : "late")
        const batch = freshEvents(1)
        const losing = yield* Effect.forkScoped(Effect.exit(store.append(lost, "noStream", freshEvents(1))), { startImmediately: true })
        // Later, so that it is under way when the other is given up
        yield* Effect.sleep(1_000)
        const keeping = yield* Effect.forkScoped(Effect.exit(store.append(kept, "noStream", batch)), { startImmediately: true })
        expect(tagOf(yield* failsafe(Fiber.join(losing)))).toBe("AppendInDoubt")
        expect((yield* db.status).renewals).toBe(1)
        node.faults.calm()
        node.faults.release()
        expect(tagOf(yield* failsafe(Fiber.join(keeping)))).toBe("ok")
        expect(yield* readIds(store, kept)).toEqual(ids(batch))
      }),
    { deadline: 2_000 }
  )
})

describe("an append that is answered", () => {
  fact("again compares ids only: what was written first stays", ({ store }) =>
    Effect.gen(function* () {
      const stream = freshStream()
      const [event] = freshEvents(1)
      const appended = yield* store.append(stream, "noStream", [event])
      expect(yield* store.append(stream, "noStream", [{ ...event, data: `{"other":1}` }])).toEqual(appended)
      const again = yield* store.append(stream, 0, [event])
      expect(again.revision).toBe(1)
    })
  )

  fact("without a position, because what it wrote was truncated, has one", ({ node, store }) =>
    Effect.gen(function* () {
      const stream = freshStream()
      const [first, second] = [freshEvents(2), freshEvents(1)]
      yield* store.append(stream, "noStream", first)
      const later = yield* store.append(stream, 1, second)
      const client = EventStoreDBClient.connectionString(node.url)
      yield* Effect.promise(() => client.setStreamMetadata(stream, { truncateBefore: 2 }))
      yield* Effect.promise(() => client.dispose())
      expect(yield* store.append(stream, "noStream", first)).toEqual({ revision: 1, position: later.position })
    })
  )

  fact("by a node that is behind its client's clock, or ahead of it, is as good as any", ({ node, store }) =>
    Effect.gen(function* () {
      const stream = freshStream()
      node.faults.clockAhead = 60_000
      expect((yield* store.append(stream, "noStream", freshEvents(1))).revision).toBe(0)
      node.faults.clockAhead = -60_000
      expect((yield* store.append(stream, 0, freshEvents(1))).revision).toBe(1)
      // The other way to append sends the instant at which it has to be done
      node.faults.clockAhead = 60_000
      const client = EventStoreDBClient.connectionString(node.url)
      const late = client.appendToStream(freshStream(), jsonEvent({ type: "t", data: {} }), { expectedRevision: NO_STREAM })
      yield* Effect.promise(() => expect(late).rejects.toMatchObject({ type: "deadline-exceeded" }))
      yield* Effect.promise(() => client.dispose())
    })
  )
})

describe("appends", () => {
  fact("to consecutive revisions keep their order, though nobody waits for one before the next", ({ store }) =>
    Effect.gen(function* () {
      const stream = freshStream()
      const batches = Array.from({ length: 100 }, () => freshEvents(1))
      const appended = yield* Effect.forEach(batches, (batch, i) => store.append(stream, i === 0 ? "noStream" : i - 1, batch), {
        concurrency: "unbounded"
      })
      expect(appended.map(({ revision }) => revision)).toEqual(batches.map((_, i) => i))
    })
  )

  fact("are JSON to any other client, with the ids of what caused them where it looks for them", ({ node, store }) =>
    Effect.gen(function* () {
      const stream = freshStream()
      const metadata = `{"$correlationId":"request-1","$causationId":"cause-1"}`
      yield* store.append(stream, "noStream", [{ ...freshEvents(1)[0], data: `{"a":[1.0]}`, metadata }])
      const client = EventStoreDBClient.connectionString(node.url)
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
})

describe("what no node takes", () => {
  fact("is refused before it is sent: more than a megabyte, no UUID, no name, no type, no text", ({ node, store }) =>
    Effect.gen(function* () {
      const stream = freshStream()
      const [event] = freshEvents(1)
      for (const size of [EventStore.MAX_APPEND_BYTES, 1_048_577, 17_000_000]) {
        const exit = yield* Effect.exit(store.append(stream, "noStream", [{ ...event, data: `"${"x".repeat(size)}"` }]))
        assert(errorOf(exit) instanceof EventStore.AppendTooLarge)
      }
      const unstorable: ReadonlyArray<readonly [typeof stream, Partial<EventStore.EventData>]> = [
        [stream, { id: "01jq8x2w" }],
        [stream, { id: event.id.toUpperCase() }],
        [stream, { type: "" }],
        [stream, { type: "$snapshot" }],
        [stream, { data: `"\ud800"` }],
        ["-", {}]
      ]
      for (const [name, change] of unstorable) {
        const exit = yield* Effect.exit(store.append(name, "noStream", [{ ...event, ...change }]))
        assert(exit._tag === "Failure" && exit.cause.reasons.every(({ _tag }) => _tag === "Die"))
      }
      expect(node.calls("Append")).toBe(0)
      expect((yield* store.append(stream, "noStream", [event])).revision).toBe(0)
    })
  )

  it("is told by its name where a node has a lower limit than ours", () =>
    Effect.gen(function* () {
      const { node, store } = yield* open()
      const stream = freshStream()
      const [event] = freshEvents(1)
      node.faults.append = () => ({ code: 3, details: "Maximum Append Size Exceeded" })
      expect(tagOf(yield* Effect.exit(store.append(stream, "noStream", [event])))).toBe("StoreUnavailable")
      expect(yield* store.lastRevision(stream)).toBe("noStream")
    }).pipe(Effect.scoped, Effect.runPromise))

  fact("by the word of the node, too: it says that it is too large", ({ db }) =>
    Effect.gen(function* () {
      const event = { id: randomUUID(), type: "Happened", data: `"${"x".repeat(1_048_577)}"`, metadata: "{}" }
      const fault = yield* Effect.flip(db.clients.call((driver) => driver.append(freshStream(), "noStream", [event])))
      expect(fault.kind).toBe("tooLarge")
    })
  )
})
