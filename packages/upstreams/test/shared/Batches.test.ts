import { Deferred, Effect, Exit, Fiber, Scope } from "effect"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import * as Batches from "../../src/shared/Batches.ts"

interface Request {
  readonly id: number
  readonly kind: "good" | "bad" | "large"
}

/** Answers each request by its id, or fails for a batch with a bad one. Each batch waits for its turn of the event loop. */
const resource = (batches: Array<ReadonlyArray<Request>>) => (requests: ReadonlyArray<Request>) =>
  Effect.gen(function* () {
    batches.push(requests)
    yield* Effect.yieldNow
    const bad = requests.find(({ kind }) => kind === "bad")
    return yield* bad === undefined ? Effect.succeed(requests.map(({ id }) => id)) : Effect.fail(bad.id)
  })

const isLarge = ({ kind }: Request) => kind === "large"

describe("batches", () => {
  test("every caller gets its own answer, or its own failure, whoever else was in its batch", async () => {
    const kinds = fc.array(fc.constantFrom("good", "good", "good", "bad", "large"), { maxLength: 40 })
    await fc.assert(
      fc.asyncProperty(kinds, fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 8 }), (kinds, lanes, count) =>
        Effect.gen(function* () {
          const batches: Array<ReadonlyArray<Request>> = []
          const send = yield* Batches.make({ send: resource(batches), lanes, count, isLarge })
          const requests = kinds.map((kind, id): Request => ({ id, kind }))
          const answers = yield* Effect.forEach(requests, (request) => Effect.exit(send(request)), { concurrency: "unbounded" })
          expect(answers).toEqual(requests.map(({ id, kind }) => (kind === "bad" ? Exit.fail(id) : Exit.succeed(id))))
          for (const batch of batches) {
            expect(batch.length).toBeLessThanOrEqual(count)
            if (batch.some(isLarge)) expect(batch).toHaveLength(1)
          }
        }).pipe(Effect.scoped, Effect.runPromise)
      )
    )
  })

  test("requests that come while a batch is under way are the next batch, without those whose callers left", () =>
    Effect.gen(function* () {
      const batches: Array<ReadonlyArray<number>> = []
      const [begun, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const send = yield* Batches.make({
        send: (ids: ReadonlyArray<number>) => {
          batches.push(ids)
          return Effect.as(Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(go)), ids)
        },
        lanes: 1,
        count: 10,
        isLarge: () => false
      })
      const first = yield* Effect.forkChild(send(0))
      yield* Deferred.await(begun)
      const others = yield* Effect.forEach([1, 2, 3], (id) => Effect.forkChild(send(id), { startImmediately: true }))
      if (others[1] !== undefined) yield* Fiber.interrupt(others[1])
      yield* Deferred.succeed(go, undefined)
      expect([yield* Fiber.join(first), yield* Fiber.join(others[0] ?? first), yield* Fiber.join(others[2] ?? first)]).toEqual([0, 1, 3])
      expect(batches).toEqual([[0], [1, 3]])
    }).pipe(Effect.scoped, Effect.runPromise))

  test("the end of the scope interrupts those under way and those that wait", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const begun = yield* Deferred.make<void>()
      const endless = () => Effect.andThen(Deferred.succeed(begun, undefined), Effect.never)
      const made = Batches.make({ send: endless, lanes: 1, count: 10, isLarge: () => false })
      const send = yield* Effect.provideService(made, Scope.Scope, scope)
      const first = yield* Effect.forkChild(send(1))
      yield* Deferred.await(begun)
      const second = yield* Effect.forkChild(send(2), { startImmediately: true })
      yield* Scope.close(scope, Exit.void)
      for (const caller of [first, second]) expect(Exit.hasInterrupts(yield* Fiber.await(caller))).toBe(true)
    }).pipe(Effect.runPromise))
})
