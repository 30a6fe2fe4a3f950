import { Deferred, Effect, Fiber, Latch } from "effect"
import { describe, expect, test } from "vitest"
import * as InFlight from "../../src/shared/InFlight.ts"

/** Work that waits until a test lets it go on, and counts how often it began and was left. */
const work = Effect.gen(function* () {
  const goOn = yield* Deferred.make<string, string>()
  const counts = { begun: 0, left: 0 }
  const begun = yield* Latch.make()
  return {
    counts,
    begun: begun.await,
    goOn,
    run: Effect.gen(function* () {
      counts.begun++
      yield* begun.open
      return yield* Deferred.await(goOn)
    }).pipe(Effect.onInterrupt(() => Effect.sync(() => void counts.left++)))
  }
})

const run = <A, E>(body: Effect.Effect<A, E, never>) => Effect.runPromise(body)

describe("work in flight", () => {
  test("is done once for all who ask meanwhile, and anew after", () =>
    run(
      Effect.scoped(
        Effect.gen(function* () {
          const shared = yield* InFlight.make
          const { counts, goOn, run } = yield* work
          const all = yield* Effect.forEach([1, 2, 3], () => Effect.forkChild(shared("a", run), { startImmediately: true }))
          const other = yield* Effect.forkChild(shared("b", Effect.succeed("other")))
          expect(yield* Fiber.join(other)).toEqual({ value: "other", joined: false })
          yield* Deferred.succeed(goOn, "done")
          const found = yield* Effect.forEach(all, (fiber) => Fiber.join(fiber))
          expect(found.map(({ joined, value }) => [value, joined])).toEqual([
            ["done", false],
            ["done", true],
            ["done", true]
          ])
          expect(counts).toEqual({ begun: 1, left: 0 })
          expect(yield* shared("a", run)).toEqual({ value: "done", joined: false })
          expect(counts.begun).toBe(2)
        })
      )
    ))

  test("fails for all, and the next caller tries again", () =>
    run(
      Effect.scoped(
        Effect.gen(function* () {
          const shared = yield* InFlight.make
          const { goOn, run } = yield* work
          const both = yield* Effect.forEach([1, 2], () => Effect.forkChild(Effect.flip(shared("a", run)), { startImmediately: true }))
          yield* Deferred.fail(goOn, "broken")
          expect(yield* Effect.forEach(both, (fiber) => Fiber.join(fiber))).toEqual(["broken", "broken"])
          expect((yield* shared("a", Effect.succeed("well"))).value).toBe("well")
        })
      )
    ))

  test("goes on while somebody waits, and is interrupted when the last has left", () =>
    run(
      Effect.scoped(
        Effect.gen(function* () {
          const shared = yield* InFlight.make
          const { begun, counts, run } = yield* work
          const first = yield* Effect.forkChild(shared("a", run), { startImmediately: true })
          const second = yield* Effect.forkChild(shared("a", run), { startImmediately: true })
          yield* begun
          yield* Fiber.interrupt(first)
          expect(counts).toEqual({ begun: 1, left: 0 })
          yield* Fiber.interrupt(second)
          expect(counts).toEqual({ begun: 1, left: 1 })
          expect((yield* shared("a", Effect.succeed("again"))).joined).toBe(false)
        })
      )
    ))
})
