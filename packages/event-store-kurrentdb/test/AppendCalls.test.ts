/** By which calls appends are sent: small ones share a call, large ones and those to an old node have a call each. */
import { Effect } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { type Events, fact, failsafe, freshEvents, freshStream, IMPATIENT, ids, open, readIds, type Store, settle } from "./Store.ts"
import type { AppendFault } from "./standin/index.ts"

const appendAll = (store: Store, count: number) =>
  Effect.forEach(
    Array.from({ length: count }),
    () => {
      const stream = freshStream()
      const events = freshEvents(2)
      return Effect.map(settle(store, stream, "noStream", events), () => ({ stream, events }))
    },
    { concurrency: "unbounded" }
  )

const large = (): Events => {
  const [event] = freshEvents(1)
  return [{ ...event, data: JSON.stringify("x".repeat(100_000)) }]
}

describe("appends", () => {
  fact("to many streams share a call", ({ node, store }) =>
    Effect.gen(function* () {
      const written = yield* appendAll(store, 200)
      for (const { events, stream } of written) expect(yield* readIds(store, stream)).toEqual(ids(events))
      expect([node.calls("BatchAppend"), node.calls("Append")]).toEqual([1, 0])
    })
  )

  fact("that are large have a call of their own, and fail alike", ({ node, store }) =>
    Effect.gen(function* () {
      const stream = freshStream()
      const [first, second] = [large(), large()]
      yield* store.append(stream, "noStream", first)
      expect(yield* Effect.flip(store.append(stream, 7, second))).toMatchObject({ _tag: "WrongRevision", actual: 0 })
      yield* store.append(stream, 0, second)
      expect(yield* readIds(store, stream)).toEqual(ids([...first, ...second]))
      expect([node.calls("BatchAppend"), node.calls("Append")]).toEqual([0, 3])
    })
  )

  fact(
    "to a node without the batch call have a call each, and none is in doubt",
    ({ node, store }) =>
      Effect.gen(function* () {
        const stream = freshStream()
        const written = yield* Effect.forEach(
          [freshStream(), freshStream(), freshStream()],
          (other) => store.append(other, "noStream", freshEvents(1)),
          {
            concurrency: "unbounded"
          }
        )
        expect(written.map(({ revision }) => revision)).toEqual([0, 0, 0])
        expect([node.calls("BatchAppend"), node.calls("Append")]).toEqual([0, 3])
        yield* store.append(stream, "noStream", freshEvents(1))
        expect(yield* Effect.flip(store.append(stream, 7, freshEvents(1)))).toMatchObject({ _tag: "WrongRevision", actual: 0 })
        expect(node.calls("Append")).toBe(5)
      }),
    { batchAppend: false }
  )

  it("are written once and answered with their own results, whatever happens to each of them", async () => {
    const faults = fc.constantFrom<AppendFault | undefined>(
      undefined,
      undefined,
      undefined,
      "lost",
      "unanswered",
      "dropBefore",
      "dropAfter",
      "notReady"
    )
    await fc.assert(
      fc.asyncProperty(fc.array(faults, { minLength: 10, maxLength: 30 }), (planned) =>
        Effect.gen(function* () {
          const { node, store } = yield* open(IMPATIENT)
          node.faults.append = () => planned.pop()
          const streams = Array.from({ length: 6 }, freshStream)
          const writing = Effect.forEach(
            streams,
            (stream) =>
              Effect.gen(function* () {
                const batches = [freshEvents(1), freshEvents(3), freshEvents(2)]
                let last = -1
                for (const batch of batches) {
                  const { revision } = yield* settle(store, stream, last === -1 ? "noStream" : last, batch)
                  last += batch.length
                  expect(revision).toBe(last)
                }
                return ids(batches.flat())
              }),
            { concurrency: "unbounded" }
          )
          const written = yield* failsafe(writing)
          node.faults.calm()
          for (const [i, stream] of streams.entries()) expect(node.log.visible(stream).map(({ id }) => id)).toEqual(written[i])
        }).pipe(Effect.scoped, Effect.runPromise)
      ),
      { numRuns: 3 }
    )
  }, 90_000)
})
