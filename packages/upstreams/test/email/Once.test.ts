import { Effect, Fiber } from "effect"
import { expect, test } from "vitest"
import { once } from "../../src/email/Lists.ts"

test("lazily loaded data is loaded on first use, also if that use is interrupted", () =>
  Effect.runPromise(
    Effect.gen(function* () {
      const { promise, resolve } = Promise.withResolvers<string>()
      let loads = 0
      const list = once(() => {
        loads++
        return promise
      })
      expect(loads).toBe(0)
      const first = yield* Effect.forkChild(list, { startImmediately: true })
      const second = yield* Effect.forkChild(list, { startImmediately: true })
      yield* Fiber.interrupt(first)
      resolve("loaded")
      expect([yield* Fiber.join(second), yield* list, loads]).toEqual(["loaded", "loaded", 1])
    })
  ))
