/** Appends under each fault of a node: no event is lost or doubled, and no call hangs. */
import assert from "node:assert/strict"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { EventStoreDBClient, jsonEvent, NO_STREAM } from "@eventstore/db-client"
import { EventStore } from "@millrace/event-sourcing"
import { Effect, Fiber } from "effect"
import { describe, expect, it } from "vitest"
import {
  errorOf,
  fact,
  failsafe,
  freshEvents,
  freshStream,
  IMPATIENT,
  ids,
  type Node,
  open,
  openOn,
  readIds,
  sentTo,
  settle,
  tagOf
} from "./Store.ts"
import { type AppendFault, KurrentDbStandIn } from "./standin/index.ts"

const UNAVAILABLE = 14

/** The ids in the node's own log, read without a call. */
const ofStream = (node: Node, stream: string) => node.log.visible(stream).map(({ id }) => id)

describe("an append that fails", () => {
  const faults: ReadonlyArray<readonly [string, AppendFault, string]> = [
    ["whose request was lost", "lost", "AppendInDoubt"],
    ["that was written and not answered", "unanswered", "AppendInDoubt"],
    ["whose connection broke before it was written", "dropBefore", "AppendInDoubt"],
    ["whose connection broke after it was written", "dropAfter", "AppendInDoubt"],
    ["because the node is not ready", "notReady", "StoreUnavailable"],
    ["because the node is unavailable", { code: UNAVAILABLE, details: "Connection dropped" }, "AppendInDoubt"],
    ["because the server failed", { code: 2, details: "Exception was thrown by handler." }, "AppendInDoubt"],
    ["for lack of permission", { code: 7, details: "Access Denied" }, "StoreUnavailable"],
    ["because the server aborted it", { code: 10, details: "Timeout" }, "AppendInDoubt"]
  ]
  for (const [what, fault, tag] of faults)
    fact(
      `${what} is ${tag}; sending the identical batch again settles it`,
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
    "and arrives after it was sent again is written once",
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
    "for lack of an answer fails at its deadline, even if its caller is uninterruptible",
    ({ node, store }) =>
      Effect.gen(function* () {
        node.faults.append = () => "lost"
        const exit = yield* failsafe(Effect.uninterruptible(Effect.exit(store.append(freshStream(), "noStream", freshEvents(1)))))
        expect(tagOf(exit)).toBe("AppendInDoubt")
      }),
    IMPATIENT
  )

  fact(
    "for lack of an answer makes a fresh client take over, and does not end the calls of the old client",
    ({ db, node, store }) =>
      Effect.gen(function* () {
        const [lost, kept] = [freshStream(), freshStream()]
        node.faults.append = ({ stream }) => (stream === lost ? "lost" : stream === kept ? "late" : undefined)
        const batch = freshEvents(1)
        const losing = yield* Effect.forkScoped(Effect.exit(store.append(lost, "noStream", freshEvents(1))), { startImmediately: true })
        // Later, so that this call is still open when the first one fails
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

describe("an append that succeeds", () => {
  for (const [what, remove] of [
    ["truncated", (client: EventStoreDBClient, stream: string) => client.setStreamMetadata(stream, { truncateBefore: 2 })],
    ["deleted", (client: EventStoreDBClient, stream: string) => client.deleteStream(stream)]
  ] as const)
    fact(`has a position when it was sent again after its events were ${what}`, ({ node, store }) =>
      Effect.gen(function* () {
        const stream = freshStream()
        const [first, second] = [freshEvents(2), freshEvents(1)]
        yield* store.append(stream, "noStream", first)
        const later = yield* store.append(stream, 1, second)
        const client = EventStoreDBClient.connectionString(node.url)
        yield* Effect.promise(() => remove(client, stream))
        yield* Effect.promise(() => client.dispose())
        expect(yield* store.append(stream, "noStream", first)).toEqual({ revision: 1, position: later.position })
      })
    )

  fact("may come from a client whose clock is a minute behind or ahead of the node's", ({ node, store }) =>
    Effect.gen(function* () {
      const stream = freshStream()
      node.faults.clockAhead = 60_000
      expect((yield* store.append(stream, "noStream", freshEvents(1))).revision).toBe(0)
      node.faults.clockAhead = -60_000
      expect((yield* store.append(stream, 0, freshEvents(1))).revision).toBe(1)
      // The batch call sends its deadline as a time of day
      node.faults.clockAhead = 60_000
      const client = EventStoreDBClient.connectionString(node.url)
      const late = client.appendToStream(freshStream(), jsonEvent({ type: "t", data: {} }), { expectedRevision: NO_STREAM })
      yield* Effect.promise(() => expect(late).rejects.toMatchObject({ type: "deadline-exceeded" }))
      yield* Effect.promise(() => client.dispose())
    })
  )
})

describe("appends", () => {
  fact("to one stream are sent one after another, because a node does not keep the order of calls", ({ node, store }) =>
    Effect.gen(function* () {
      const stream = freshStream()
      const arrived: Array<unknown> = []
      node.faults.append = (call) => {
        if (call.stream !== stream) return undefined
        arrived.push(call.expected)
        return "late"
      }
      const batches = Array.from({ length: 5 }, () => freshEvents(1))
      const appending = yield* Effect.forkScoped(
        Effect.forEach(batches, (batch, i) => store.append(stream, i === 0 ? "noStream" : i - 1, batch), { concurrency: "unbounded" })
      )
      for (const expected of [
        ["noStream"],
        ["noStream", 0n],
        ["noStream", 0n, 1n],
        ["noStream", 0n, 1n, 2n],
        ["noStream", 0n, 1n, 2n, 3n]
      ]) {
        yield* failsafe(Effect.repeat(Effect.sleep(2), { until: () => Effect.sync(() => arrived.length >= expected.length) }))
        // On the same connection: every earlier call has arrived when this one is answered
        yield* store.lastRevision(freshStream())
        expect(arrived).toEqual(expected)
        node.faults.release()
      }
      yield* failsafe(Fiber.join(appending))
      expect(ofStream(node, stream)).toEqual(ids(batches.flat()))
    })
  )

  it("always expect an exact revision, because a restarted node writes a repeated append without one again", () =>
    Effect.gen(function* () {
      const folder = yield* Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(join(tmpdir(), "millrace-kurrentdb-"))),
        (made) => Effect.sync(() => rmSync(made, { recursive: true }))
      )
      const file = join(folder, "log.jsonl")
      const node = yield* KurrentDbStandIn.serve({ file })
      const { store } = yield* openOn(node.url)
      const expectations: Array<readonly [string, unknown]> = []
      node.faults.append = ({ stream, expected }) => void expectations.push([stream, expected])
      const [stream, snapshot] = [freshStream(), "factsSnapshot.v1-1"] as const
      const [first, second] = [freshEvents(2), freshEvents(1)]
      const appended = yield* store.append(stream, "noStream", first)
      yield* store.append(stream, 1, second)
      yield* store.saveSnapshot(snapshot, { revision: 1, data: "{}" })
      yield* store.saveSnapshot(snapshot, { revision: 2, data: "{}" })
      expect(expectations.filter(([, expected]) => expected !== "noStream" && typeof expected !== "bigint")).toEqual([])
      expect(expectations.filter(([name]) => name === stream || name.endsWith(snapshot))).toEqual([
        [stream, "noStream"],
        [stream, 1n],
        [`$$${snapshot}`, "noStream"],
        [snapshot, "noStream"],
        [snapshot, 0n]
      ])

      yield* node.kill
      const again = yield* KurrentDbStandIn.serve({ file, port: node.port })
      expect(yield* failsafe(settle(store, stream, "noStream", first))).toEqual(appended)
      const client = EventStoreDBClient.connectionString(again.url)
      const [{ id }] = second
      yield* Effect.promise(() => client.appendToStream(stream, jsonEvent({ id, type: "Happened", data: {} })))
      yield* Effect.promise(() => client.dispose())
      // This append expected no revision, so it was written twice
      expect(ofStream(again, stream)).toEqual([...ids(first), id, id])
    }).pipe(Effect.scoped, Effect.runPromise))
})

fact(
  "a snapshot that failed after its stream's metadata was written is saved by the next attempt, which reads no metadata",
  ({ node, store }) =>
    Effect.gen(function* () {
      const name = "factsSnapshot.v1-1"
      node.faults.append = ({ stream }) => (stream === name ? { code: UNAVAILABLE, details: "going down" } : undefined)
      expect((yield* Effect.flip(store.saveSnapshot(name, { revision: 1, data: "[1]" })))._tag).toBe("StoreUnavailable")
      expect([ofStream(node, name).length, ofStream(node, `$$${name}`).length]).toEqual([0, 1])
      node.faults.calm()
      for (const revision of [2, 3]) yield* store.saveSnapshot(name, { revision, data: `[${revision}]` })
      expect(yield* store.loadSnapshot(name)).toEqual({ revision: 3, data: "[3]" })
      expect([ofStream(node, name).length, ofStream(node, `$$${name}`).length]).toEqual([1, 1])
    })
)

describe("an append that no node accepts", () => {
  fact("is refused before it is sent: too large, or with an invalid id, stream name, type or text", ({ node, store }) =>
    Effect.gen(function* () {
      const stream = freshStream()
      const sent = sentTo(node)
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
      expect(sent).toEqual([])
      expect((yield* store.append(stream, "noStream", [event])).revision).toBe(0)
    })
  )

  it("fails as StoreUnavailable when the node has a lower size limit than the store", () =>
    Effect.gen(function* () {
      const { node, store } = yield* open()
      const stream = freshStream()
      const [event] = freshEvents(1)
      node.faults.append = () => ({ code: 3, details: "Maximum Append Size Exceeded" })
      expect(tagOf(yield* Effect.exit(store.append(stream, "noStream", [event])))).toBe("StoreUnavailable")
      expect(yield* store.lastRevision(stream)).toBe("noStream")
    }).pipe(Effect.scoped, Effect.runPromise))
})
