import { Timestamp, toIso } from "@millrace/core"
import { Schema } from "effect"
import fc from "fast-check"
import { describe, expect, test } from "vitest"

const FIRST = Date.parse("0000-01-01T00:00:00.000Z")
const LAST = Date.parse("9999-12-31T23:59:59.999Z")

const decode = Schema.decodeUnknownSync(Timestamp)

/** What the text is by another way: a time that is written as this very text, or undefined. */
const known = (text: string): number | undefined => {
  const millis = Date.parse(text)
  return Number.isNaN(millis) || new Date(millis).toISOString() !== text ? undefined : millis
}

const read = (text: string): number | undefined => {
  try {
    return decode(text)
  } catch {
    return undefined
  }
}

const digits = (count: number) => fc.stringMatching(new RegExp(`^[0-9]{${count}}$`, "u"))

/** Looks like a time: many are none. */
const likeATime = fc
  .tuple(digits(4), fc.integer({ min: 0, max: 14 }), fc.integer({ min: 0, max: 33 }), fc.integer({ min: 0, max: 26 }), digits(2), digits(2))
  .map(([year, month, day, hour, minute, second]) => {
    const two = (number: number) => String(number).padStart(2, "0")
    return `${year}-${two(month)}-${two(day)}T${two(hour)}:${minute}:${second}.000Z`
  })

describe("a timestamp", () => {
  test("survives encoding and decoding in every year of four digits", () => {
    fc.assert(fc.property(fc.integer({ min: FIRST, max: LAST }), (millis) => decode(toIso(millis)) === millis))
    for (const millis of [FIRST, LAST, 0, -1]) expect(decode(toIso(millis))).toBe(millis)
  })

  test("is a valid day of the calendar, for all 400 years of its cycle", () => {
    for (let year = 1900; year < 2300; year++) {
      for (let month = 1; month <= 12; month++) {
        for (const day of [1, 28, 29, 30, 31]) {
          const text = `${year}-${String(month).padStart(2, "0")}-${day.toString().padStart(2, "0")}T12:00:00.000Z`
          if (read(text) !== known(text)) expect.fail(text)
        }
      }
    }
  })

  test("is decoded only from the format that is written", () => {
    fc.assert(
      fc.property(likeATime, (text) => read(text) === known(text)),
      { numRuns: 2_000 }
    )
  })

  test("is refused if a character is changed, added or removed", () => {
    const change = fc.tuple(
      fc.integer({ min: FIRST, max: LAST }).map(toIso),
      fc.nat({ max: 24 }),
      fc.nat({ max: 2 }),
      fc.constantFrom("", "0", "9", "-", "+", " ", "/", ":", "t", "z", "Z", "٣", "\0")
    )
    fc.assert(
      fc.property(change, ([text, start, length, other]) => {
        const changed = text.slice(0, start) + other + text.slice(start + length)
        return read(changed) === known(changed)
      }),
      { numRuns: 2_000 }
    )
  })

  test("is refused with a message", () => {
    for (const text of ["", "now", "2026-01-31", "2026-02-29T00:00:00.000Z", "2026-01-31T24:00:00.000Z", "+010000-01-01T00:00:00.000Z"])
      expect(() => decode(text)).toThrow("expected a time such as 2026-01-31T00:00:00.000Z")
    for (const other of [0, null, new Date(0)]) expect(() => decode(other)).toThrow("Expected string")
  })

  test("is not encoded if it could not be decoded again", () => {
    const encode = Schema.encodeSync(Timestamp)
    for (const millis of [FIRST, LAST]) expect(decode(encode(millis))).toBe(millis)
    for (const millis of [FIRST - 1, LAST + 1, 8.64e15, Number.NaN, 0.5]) expect(() => encode(millis)).toThrow(/expected a time/u)
  })
})
