/** What a change of plan costs, against plain arithmetic. */
import { Credits } from "@millrace/core"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { linesOf, type Plan, prorate } from "../../src/payments/Plans.ts"

const plan: fc.Arbitrary<Plan> = fc.record({
  plan: fc.constantFrom("a", "b", "c"),
  amount: fc.integer({ min: 100, max: 10_000_000 }),
  currency: fc.constant("USD"),
  credits: fc.integer({ min: 1, max: 1_000_000_000 }).map(Credits.of),
  every: fc.constant("month" as const)
})

/** A period, and an instant in it. */
const moment = fc
  .tuple(
    fc.integer({ min: 0, max: 2_000_000_000_000 }),
    fc.integer({ min: 1, max: 31_622_400_000 }),
    fc.double({ min: 0, max: 1, noNaN: true })
  )
  .map(([from, whole, part]) => ({ span: { from, until: from + whole }, at: from + Math.floor(whole * part) }))

/** The largest whole number whose product with `whole` is not above `price × rest`. */
const isFloor = (quotient: number, price: number, { rest, whole }: { readonly rest: number; readonly whole: number }): boolean => {
  const below = BigInt(price) * BigInt(rest) - BigInt(quotient) * BigInt(whole)
  return below >= 0n && below < BigInt(whole)
}

describe("a change of plan", () => {
  test("costs the rest of the new price less the rest of the old one, and never less than nothing", () => {
    fc.assert(
      fc.property(plan, plan, moment, (before, after, { at, span }) => {
        const parts = { rest: span.until - at, whole: span.until - span.from }
        const { amount, charged, credited, credits } = prorate(before, after, span, at)
        expect(isFloor(charged, after.amount, parts)).toBe(true)
        expect(isFloor(credited, before.amount, parts)).toBe(true)
        expect(amount).toBe(charged > credited ? charged - credited : 0)
        expect(amount).toBeLessThanOrEqual(Math.max(0, after.amount - before.amount) + 1)
        expect(credits).toBeGreaterThanOrEqual(0)
        expect(credits).toBeLessThanOrEqual(after.credits)
      })
    )
  })

  test("costs the same in steps at one instant as at once, and the way back and forth nothing more", () => {
    fc.assert(
      fc.property(fc.tuple(plan, plan, plan), moment, (plans, { at, span }) => {
        const [a, b, c] = plans.toSorted((one, other) => one.amount - other.amount) as [Plan, Plan, Plan]
        const cost = (before: Plan, after: Plan) => prorate(before, after, span, at).amount
        expect(cost(a, b) + cost(b, c)).toBe(cost(a, c))
        expect(cost(c, a)).toBe(0)
        expect(cost(b, b)).toBe(0)
      })
    )
  })

  test("costs the whole difference at the beginning, and nothing at the end", () => {
    fc.assert(
      fc.property(plan, plan, moment, (before, after, { span }) => {
        expect(prorate(before, after, span, span.from).amount).toBe(Math.max(0, after.amount - before.amount))
        expect(prorate(before, after, span, span.until)).toEqual({ charged: 0, credited: 0, amount: 0, credits: 0 })
      })
    )
  })

  test("has lines whose sum is the amount", () => {
    fc.assert(
      fc.property(plan, plan, moment, (before, after, { at, span }) => {
        const proration = prorate(before, after, span, at)
        fc.pre(proration.amount > 0)
        const lines = linesOf(before, after, proration, { from: at, until: span.until })
        expect(lines.reduce((sum, { amount }) => sum + amount, 0)).toBe(proration.amount)
      })
    )
  })
})
