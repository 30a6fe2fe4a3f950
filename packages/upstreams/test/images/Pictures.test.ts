import * as fc from "fast-check"
import { describe, expect, test } from "vitest"
import { byEight, fromBase64, seedOf } from "../../src/images/Pictures.ts"

const check = <T>(property: fc.IProperty<T>) => fc.assert(property, { seed: 1, numRuns: 300 })

const some = fc.uint8Array({ minLength: 1, maxLength: 200 }).map((bytes) => Buffer.from(bytes))

describe("base64", () => {
  test("decodes to the encoded bytes, with or without a prefix", () =>
    check(
      fc.property(some, fc.constantFrom("", "data:image/png;base64,", "data:;base64,"), (bytes, head) => {
        expect(Buffer.from(fromBase64(head + bytes.toString("base64")) ?? []).equals(bytes)).toBe(true)
      })
    ))

  test("with any other character is refused", () =>
    check(
      fc.property(some, fc.nat(), fc.constantFrom(" ", "\n", "!", ".", "\u00e9", "\0", "\ud83d\ude00"), (bytes, at, sign) => {
        const text = bytes.toString("base64")
        const place = at % text.length
        expect(fromBase64(text.slice(0, place) + sign + text.slice(place))).toBeUndefined()
        expect(fromBase64(text.slice(0, place) + sign + text.slice(place + 1))).toBeUndefined()
      })
    ))

  test("cut off within four digits is refused", () =>
    check(
      fc.property(some, fc.nat(), (bytes, at) => {
        const text = bytes.toString("base64")
        const length = at % text.length
        expect(fromBase64(text.slice(0, length)) !== undefined).toBe(length > 0 && length % 4 === 0)
      })
    ))

  test("of many megabytes is decoded quickly", () => {
    const bytes = Buffer.alloc(20_000_000, 7)
    expect(fromBase64(bytes.toString("base64"))?.length).toBe(bytes.length)
  })
})

test("sides become the next multiples of eight", () =>
  check(
    fc.property(fc.integer({ min: 256, max: 2048 }), (pixels) => {
      expect(byEight(pixels) % 8).toBe(0)
      expect([byEight(pixels) >= pixels, byEight(pixels) - pixels < 8]).toEqual([true, true])
    })
  ))

test("equal keys have equal seeds, of 32 bits", () =>
  check(
    fc.property(fc.string(), (key) => {
      const seed = seedOf(key)
      expect([seedOf(key), Number.isInteger(seed), seed >= 0 && seed < 2 ** 32]).toEqual([seed, true, true])
    })
  ))
