/** ULIDs grow, whatever the clock does, and both kinds of ids have their formats. */
import fc from "fast-check"
import { expect, test } from "vitest"
import { ulids, uuids } from "../src/RandomIds.ts"

const DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
const instant = fc.integer({ min: 0, max: 2 ** 48 - 1 })
/** Fills with these bytes again and again. */
const filler = fc.uint8Array({ minLength: 1, maxLength: 64 }).map((seed) => (bytes: Uint8Array) => {
  for (let i = 0; i < bytes.length; i++) bytes[i] = seed[i % seed.length] ?? 0
})

const timeOf = (ulid: string): number => [...ulid.slice(0, 10)].reduce((time, digit) => time * 32 + DIGITS.indexOf(digit), 0)

test("a ULID has 26 digits and begins with its time", () => {
  fc.assert(
    fc.property(filler, instant, (fill, now) => {
      const ulid = ulids(fill)(now)
      expect(ulid).toMatch(/^[0-9A-HJKMNP-TV-Z]{26}$/)
      expect(timeOf(ulid)).toBe(now)
    })
  )
})

test("each ULID is greater than the one before, even if time stands still or goes back", () => {
  fc.assert(
    fc.property(filler, fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 300 }), (fill, instants) => {
      const next = ulids(fill)
      let last = ""
      for (const now of instants) {
        const ulid = next(now)
        expect(ulid > last).toBe(true)
        last = ulid
      }
    })
  )
})

test("a ULID that has no greater one in its millisecond is followed by the first of the next", () => {
  const next = ulids((bytes) => bytes.fill(31))
  expect(next(7)).toBe(`0000000007${"Z".repeat(16)}`)
  expect(next(7)).toBe(`0000000008${"0".repeat(16)}`)
})

test("a UUID is of version 4 and has the random bits of the system", () => {
  fc.assert(
    fc.property(filler, fc.integer({ min: 1, max: 300 }), (fill, count) => {
      const next = uuids(fill)
      for (let i = 0; i < count; i++) expect(next()).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    })
  )
  const next = uuids()
  const seen = new Set(Array.from({ length: 10_000 }, next))
  expect(seen.size).toBe(10_000)
  // Each random digit takes all its values
  for (let place = 0; place < 36; place++) {
    const digits = new Set([...seen].map((id) => id[place]))
    expect(digits.size).toBe(place === 14 || [8, 13, 18, 23].includes(place) ? 1 : place === 19 ? 4 : 16)
  }
})
