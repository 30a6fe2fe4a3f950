import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { FairQueue } from "../../src/shared/FairQueue.ts"

interface Item {
  readonly accountId: string
  readonly number: number
  readonly cost: number
}

const account = fc.constantFrom("a", "b", "c", "d")
const items = fc
  .array(fc.record({ accountId: account, cost: fc.integer({ min: 0, max: 100 }) }), { maxLength: 200 })
  .map((items) => items.map((item, number): Item => ({ ...item, number })))

const filled = (items: ReadonlyArray<Item>): FairQueue<Item> => {
  const queue = new FairQueue<Item>()
  for (const item of items) queue.add(item.accountId, item)
  return queue
}

/** Takes all items one after another. */
const drained = function* (queue: FairQueue<Item>): Generator<Item> {
  for (let item = queue.take(); item !== undefined; item = queue.take()) {
    yield item
    queue.release(item.accountId, item.cost)
  }
}

describe("a fair queue", () => {
  test("gives each item once, and those of one account in order", () => {
    fc.assert(
      fc.property(items, (items) => {
        const taken = [...drained(filled(items))]
        expect(Map.groupBy(taken, ({ accountId }) => accountId)).toEqual(Map.groupBy(items, ({ accountId }) => accountId))
      })
    )
  })

  test("lets no account use more than a waiting one, beyond one item", () => {
    fc.assert(
      fc.property(items, (items) => {
        const used = new Map<string, number>()
        const left = Map.groupBy(items, ({ accountId }) => accountId)
        for (const { accountId, cost } of drained(filled(items))) {
          const before = used.get(accountId) ?? 0
          for (const [other, waiting] of left) if (waiting.length > 0) expect(before).toBeLessThanOrEqual(used.get(other) ?? 0)
          used.set(accountId, before + cost)
          left.get(accountId)?.shift()
        }
      })
    )
  })

  test("lets an account wait for at most one item of each other account", () => {
    fc.assert(
      fc.property(items, fc.nat(199), (items, after) => {
        const queue = filled(items)
        const rest = drained(queue)
        for (let i = 0; i < after; i++) if (rest.next().done === true) return
        queue.add("new", { accountId: "new", number: -1, cost: 0 })
        const before: Array<string> = []
        for (const { accountId } of rest) {
          if (accountId === "new") break
          before.push(accountId)
        }
        expect(new Set(before).size).toBe(before.length)
      })
    )
  })

  test("gives no advantage to an account that comes and goes", () => {
    const queue = filled([{ accountId: "a", number: 0, cost: 50 }])
    const order: Array<string> = []
    queue.add("b", { accountId: "b", number: 0, cost: 50 })
    queue.add("b", { accountId: "b", number: 1, cost: 50 })
    for (const { accountId } of drained(queue)) {
      order.push(accountId)
      if (accountId === "a" && order.length < 6) queue.add("a", { accountId, number: order.length, cost: 50 })
    }
    expect(order.slice(0, 4)).toEqual(["a", "b", "a", "b"])
  })

  test("forgets removed items and idle accounts", () => {
    const item = { accountId: "a", number: 0, cost: 1 }
    const queue = filled([item, { accountId: "b", number: 1, cost: 1 }])
    queue.remove("a", item)
    expect([...drained(queue)].map(({ accountId }) => accountId)).toEqual(["b"])
    expect(queue.take()).toBeUndefined()
  })
})
