import * as fc from "fast-check"
import { describe, expect, test } from "vitest"
import { nextMidnight } from "../../src/work/DailyQuota.ts"

const HOUR = 3_600_000
const clock = new Intl.DateTimeFormat("en-CA", {
  timeZone: "America/Los_Angeles",
  dateStyle: "short",
  timeStyle: "medium",
  hourCycle: "h23"
})
const dateOf = (time: number): string => clock.format(time).slice(0, 10)

describe("the next midnight", () => {
  test("is the first moment of another date, also where the clocks are changed", () => {
    fc.assert(
      fc.property(fc.integer({ min: Date.UTC(2020, 0, 1), max: Date.UTC(2040, 0, 1) }), (now) => {
        const midnight = nextMidnight(dateOf, now)
        expect(midnight).toBeGreaterThan(now)
        expect(dateOf(midnight - 1)).toBe(dateOf(now))
        expect(dateOf(midnight)).not.toBe(dateOf(now))
        expect(clock.format(midnight)).toMatch(/ 00:00:00$/u)
      })
    )
  })

  test.each([
    ["2026-03-08", 23],
    ["2026-06-01", 24],
    ["2026-11-01", 25]
  ])("%s has %s hours", (date, hours) => {
    const begin = nextMidnight(dateOf, Date.parse(`${date}T06:00:00Z`))
    expect((nextMidnight(dateOf, begin) - begin) / HOUR).toBe(hours)
  })
})
