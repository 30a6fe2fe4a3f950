import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { Rate } from "../../src/mail/Rate.ts"

describe("a rate", () => {
  test("a minute never has more than twice its number, a burst no more than its number, and waiting restores it evenly", () => {
    const steps = fc.array(fc.nat({ max: 30_000 }), { maxLength: 200 })
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 20 }), steps, (perMinute, pauses) => {
        const rate = new Rate(perMinute)
        const taken: Array<number> = []
        let now = 0
        for (const pause of pauses) {
          now += pause
          const recent = taken.filter((at) => at > now - 60_000).length
          if (rate.take("a", now)) taken.push(now)
          else expect(recent).toBeGreaterThan(0)
          expect(taken.filter((at) => at > now - 60_000).length).toBeLessThanOrEqual(2 * perMinute)
          expect(taken.filter((at) => at === now).length).toBeLessThanOrEqual(perMinute)
        }
      }),
      { numRuns: 100, seed: 1 }
    )
    const rate = new Rate(3)
    expect([0, 0, 0, 0, 20_000, 20_000, 40_000].map((now) => rate.take("a", now))).toEqual([true, true, true, false, true, false, true])
  })

  test("clients are apart, and the oldest is forgotten beyond the number that is remembered", () => {
    const rate = new Rate(1, 2)
    expect(["a", "b", "a", "b"].map((client) => rate.take(client, 0))).toEqual([true, true, false, false])
    expect(rate.take("c", 0)).toBe(true)
    expect(["b", "c", "a"].map((client) => rate.take(client, 0))).toEqual([false, false, true])
  })
})
