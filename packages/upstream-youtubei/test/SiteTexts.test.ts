import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { ageOf, countOf, countryOf, dayOf, secondsOf, timeOf } from "../src/SiteTexts.ts"

describe("counts", () => {
  test("with commas are exact", () =>
    fc.assert(
      fc.property(fc.nat(), (count) => {
        expect(countOf(`${count.toLocaleString("en-US")} views`)).toBe(count)
      })
    ))

  test.each([
    ["1.2M views", 1_200_000],
    ["50K", 50_000],
    ["1.1B views", 1_100_000_000],
    ["No views", 0],
    ["1 video", 1],
    ["3 videos", 3],
    ["views", null],
    ["", null],
    [undefined, null]
  ])("%s", (text, count) => expect(countOf(text)).toBe(count))
})

describe("ages", () => {
  test("are the least that they can be", () =>
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 59 }), fc.constantFrom("minute", "hour", "day", "week"), (count, unit) => {
        const units = { minute: 60_000, hour: 3_600_000, day: 86_400_000, week: 604_800_000 }
        for (const before of ["", "Streamed ", "Premiered "])
          expect(ageOf(`${before}${count} ${unit}${count === 1 ? "" : "s"} ago`)).toBe(count * units[unit])
      })
    ))

  test.each(["Premieres Jan 1", "3 parsecs ago", "", undefined])("%s is none", (text) => expect(ageOf(text)).toBeNull())
})

test("lengths are read back as they are written", () =>
  fc.assert(
    fc.property(fc.nat(359_999), (seconds) => {
      const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60), String(seconds % 60).padStart(2, "0")]
      const text = hours === 0 ? `${minutes}:${rest}` : `${hours}:${String(minutes).padStart(2, "0")}:${rest}`
      expect(secondsOf(text)).toBe(seconds)
    })
  ))

test.each(["LIVE", "1", "1:2", "1:02:03:04", "", undefined])("%s is no length", (text) => expect(secondsOf(text)).toBeNull())

test.each([
  ["Joined Aug 23, 2007", "2007-08-23"],
  ["Joined Dec 6, 2006", "2006-12-06"],
  ["Joined lately", null],
  ["Joined Foo 6, 2006", null],
  [undefined, null]
])("the day of %s", (text, day) => expect(dayOf(text)).toBe(day))

test.each([
  ["2026-01-01T00:00:00-08:00", "2026-01-01T08:00:00.000Z"],
  ["2026-01-01", "2026-01-01"],
  ["soon", null],
  [undefined, null]
])("the time of %s", (text, time) => expect(timeOf(text)).toBe(time))

test.each([
  ["United States", "US"],
  ["Germany", "DE"],
  ["United Kingdom", "GB"],
  ["Japan", "JP"],
  ["Atlantis", null],
  [undefined, null]
])("the code of %s", (name, code) => expect(countryOf(name)).toBe(code))
