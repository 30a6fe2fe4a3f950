import { AsyncLocalStorage } from "node:async_hooks"
import fc from "fast-check"
import { expect, test } from "vitest"
import { together } from "../src/Together.ts"

test("what arrives in one turn begins in one step, in its order and in its asynchronous context", async () => {
  const storage = new AsyncLocalStorage<string>()
  const begun: Array<string> = []
  let steps = 0
  const begin = together((what: string) => {
    // A microtask runs before the next step, and not between those of one
    if (begun.push(`${what} of ${storage.getStore()}`) === 1) queueMicrotask(() => steps++)
    expect(steps).toBe(0)
  })
  storage.run("a", () => begin("first"))
  storage.run("b", () => begin("second"))
  begin("third")
  expect(begun).toEqual([])
  await new Promise((resolve) => setImmediate(resolve))
  expect(begun).toEqual(["first of a", "second of b", "third of undefined"])
})

test("each begins exactly once and in order, whoever throws and whatever arrives meanwhile", () => {
  const arrivals = fc.array(fc.record({ throws: fc.boolean(), more: fc.nat(3) }), { minLength: 1, maxLength: 20 })
  fc.assert(
    fc.property(arrivals, (all) => {
      const tasks: Array<() => void> = []
      const begun: Array<number> = []
      let count = all.length
      const begin = together(
        (number: number) => {
          begun.push(number)
          const { more = 0, throws = false } = all[number] ?? {}
          for (let i = 0; i < more; i++) begin(count++)
          if (throws) throw new Error("a bug")
        },
        (task) => tasks.push(task)
      )
      for (let number = 0; number < all.length; number++) begin(number)
      for (let task = tasks.shift(); task !== undefined; task = tasks.shift()) {
        try {
          task()
        } catch (error) {
          expect(error).toEqual(new Error("a bug"))
        }
      }
      expect(begun).toEqual(Array.from({ length: count }, (_, number) => number))
    })
  )
})
