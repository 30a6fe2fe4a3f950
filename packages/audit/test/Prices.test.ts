import { Credits } from "@millrace/core"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { Prices } from "../src/Prices.ts"

const operation = fc.constantFrom("a", "b", "constructor")
const amount = fc.integer({ min: 0, max: 12 }).map(Credits.of)
const time = fc.integer({ min: 0, max: 5 })

/** Several price lists may have one number, because each price plan counts its own. */
const published = fc.record({
  version: fc.constantFrom(1, 2),
  effectiveAt: time,
  prices: fc.dictionary(operation, fc.integer({ min: 0, max: 4 }).map(Credits.of), { noNullPrototype: true }),
  at: time
})

const hold = fc.record({ operation, version: fc.constantFrom(1, 2, 3), quantity: fc.integer({ min: 0, max: 3 }), amount, at: time })

describe("an amount is right", () => {
  test("if a list of its version that was in force has that price for the quantity, and in no other case", () => {
    const outcomes = new Set<string>()
    fc.assert(
      fc.property(fc.array(published, { minLength: 1, maxLength: 5 }), hold, (lists, { amount, at, operation, quantity, version }) => {
        const prices = new Prices()
        for (const { at: publishedAt, ...list } of lists) prices.learn(list, publishedAt)
        const inForce = lists.filter((list) => list.version === version && (list.effectiveAt <= list.at || list.effectiveAt <= at))
        const right = inForce.flatMap(({ prices }) => (Object.hasOwn(prices, operation) ? [(prices[operation] ?? 0) * quantity] : []))
        const wrong = prices.mismatch(operation, version, quantity, amount, at)
        if (right.includes(amount)) expect(wrong).toBeUndefined()
        else if (inForce.length === 0) expect(wrong).toBe(`price version ${version} was not in force`)
        else if (right.length === 0) expect(wrong).toBe(`price version ${version} has no price for ${operation}`)
        else expect(wrong).toMatch(`of price version ${version} is not ${amount / 1000}`)
        outcomes.add(wrong?.replace(/[0-9.]+/gu, "N") ?? "right")
      }),
      { numRuns: 3_000 }
    )
    expect(outcomes.size).toBeGreaterThan(4)
  })
})
