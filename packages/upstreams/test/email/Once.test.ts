import { Effect, Fiber } from "effect"
import { expect, test } from "vitest"
import { once } from "../../src/email/Lists.ts"

test("what is loaded once is loaded when it is first asked for, and stays for the others when that one leaves", () =>
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
