import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { HALF_LIFE, lowerBound, OWN_WEIGHT, type Report, rankOf } from "../../src/coupons/CouponRank.ts"
import { check } from "../vault/Property.ts"

const NOW = Date.UTC(2026, 10, 23)
const YEARS = 4 * 365 * 86_400_000

const report = fc.record({
  worked: fc.boolean(),
  own: fc.boolean(),
  at: fc.integer({ min: NOW - YEARS, max: NOW })
})
const reports = fc
  .array(report, { maxLength: 40 })
  .map((all) => all.map((one, i): Report => ({ ...one, by: `author ${i}`, discount: null })))

const of = (worked: boolean, more: Partial<Report> = {}): Report => ({ by: "other", worked, discount: null, at: NOW, own: false, ...more })

/** The interval by its other definition: the bound is the smaller root of (p − x)² = z²·x(1 − x)/n. */
const byDefinition = (successes: number, failures: number): number => {
  const [n, z2] = [successes + failures, 1.959963984540054 ** 2]
  const p = successes / n
  const [a, b, c] = [1 + z2 / n, -(2 * p + z2 / n), p * p]
  return (-b - Math.sqrt(b * b - 4 * a * c)) / (2 * a)
}

describe("the rank", () => {
  test("is the lower bound of Wilson's interval", () => {
    const weight = fc.integer({ min: 1, max: 100_000 }).map((n) => n / 16)
    check(
      fc.property(weight, weight, (successes, failures) => {
        expect(lowerBound({ successes, failures })).toBeCloseTo(byDefinition(successes, failures), 9)
      })
    )
    // Published figures: 9 of 10, and 10 of 10
    expect(lowerBound({ successes: 9, failures: 1 })).toBeCloseTo(0.5958, 4)
    expect(lowerBound({ successes: 10, failures: 0 })).toBeCloseTo(0.7225, 4)
  })

  test("is from 0 to 1, and 0 without a success", () => {
    check(
      fc.property(reports, (all) => {
        const rank = rankOf(all, NOW)
        expect(rank).toBeGreaterThanOrEqual(0)
        expect(rank).toBeLessThan(1)
        if (all.every(({ worked }) => !worked)) expect(rank).toBe(0)
      })
    )
  })

  test("is never lower after a further success, and never higher after a further failure", () => {
    check(
      fc.property(reports, report, (all, { at, own }) => {
        const before = rankOf(all, NOW)
        expect(rankOf([...all, of(true, { at, own })], NOW)).toBeGreaterThanOrEqual(before - 1e-12)
        expect(rankOf([...all, of(false, { at, own })], NOW)).toBeLessThanOrEqual(before + 1e-12)
      }),
      500
    )
  })

  test("is never lower when an account that it failed for reports a success", () => {
    check(
      fc.property(reports, fc.nat(), (all, which) => {
        if (all.length === 0) return
        const i = which % all.length
        const changed = all.map((one, n) => (n === i ? { ...one, worked: true, at: NOW } : one))
        if (all[i]?.worked === false) expect(rankOf(changed, NOW)).toBeGreaterThanOrEqual(rankOf(all, NOW) - 1e-12)
      }),
      500
    )
  })

  test("never grows with time alone, and sinks below what is confirmed now", () => {
    check(
      fc.property(reports, fc.integer({ min: 0, max: YEARS }), (all, later) => {
        expect(rankOf(all, NOW + later)).toBeLessThanOrEqual(rankOf(all, NOW) + 1e-12)
        const then = NOW + 12 * HALF_LIFE
        expect(rankOf(all, then)).toBeLessThan(rankOf([of(true, { at: then })], then))
      })
    )
  })

  test("of a new coupon is above none", () => {
    check(
      fc.property(reports, (all) => {
        expect(rankOf([], NOW)).toBeLessThanOrEqual(rankOf(all, NOW))
      })
    )
  })

  test("counts a submitter's own reports less", () => {
    check(
      fc.property(reports, (all) => {
        const own = rankOf([...all, of(true, { own: true })], NOW)
        expect(own).toBeLessThanOrEqual(rankOf([...all, of(true)], NOW) + 1e-12)
      })
    )
    expect(rankOf([of(true, { own: true })], NOW)).toBe(lowerBound({ successes: OWN_WEIGHT, failures: 0 }))
  })

  test("halves the weight of a report in ninety days", () => {
    const old = [of(true, { at: NOW - HALF_LIFE, by: "a" }), of(false, { at: NOW - 2 * HALF_LIFE, by: "b" })]
    expect(rankOf(old, NOW)).toBeCloseTo(lowerBound({ successes: 0.5, failures: 0.25 }), 12)
  })
})
