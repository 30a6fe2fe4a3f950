import { Credits } from "@millrace/core"
import { Result, Schema } from "effect"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { amount, arbitraryOf } from "../../testing/src/Arbitraries.ts"

fc.configureGlobal({ seed: 1 })

const decode = Schema.decodeUnknownResult(Credits.CreditsFromDecimal)

describe("credits", () => {
  test("are whole thousandths inside and decimals outside, without a loss either way", () => {
    fc.assert(
      fc.property(amount, (credits) => {
        expect(Credits.parse(String(Credits.toDecimal(credits)))).toBe(credits)
        expect(decode(Schema.encodeSync(Credits.CreditsFromDecimal)(credits))).toStrictEqual(Result.succeed(credits))
      })
    )
    expect(Credits.toDecimal(Credits.of(199_500))).toBe(199.5)
    expect(Credits.parse("199.5")).toBe(199_500)
    expect(Credits.parse("0.6")).toBe(600)
    expect(Credits.parse("0.001000")).toBe(1)
  })

  test("have at most three decimals, and are never negative", () => {
    for (const text of ["0.0005", "-1", "", ".5", "1.", "1e3", "1,5", "NaN", "Infinity", " 1", "1234567890123"]) {
      expect(Credits.parse(text)).toBeUndefined()
    }
    for (const decimal of [0.1 + 0.2, -0.5, 1e-7, 1e21, Number.NaN, Number.POSITIVE_INFINITY, "1", null]) {
      expect(Result.isFailure(decode(decimal))).toBe(true)
    }
  })

  test("that are none are a bug, not a value", () => {
    for (const broken of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 10 ** 15 + 1]) {
      expect(() => Credits.of(broken)).toThrow("Not an amount")
      expect(Result.isFailure(Schema.decodeUnknownResult(Credits.Credits)(broken))).toBe(true)
    }
  })

  test("sum up exactly", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(10 ** 9)), (amounts) => {
        expect(BigInt(Credits.sum(amounts.map(Credits.of)))).toBe(amounts.reduce((sum, amount) => sum + BigInt(amount), 0n))
      })
    )
    expect(Credits.sum([])).toBe(Credits.zero)
    expect(Credits.min(Credits.of(2), Credits.of(1))).toBe(1)
  })

  test("of any schema's making are credits", () => {
    fc.assert(fc.property(arbitraryOf(Credits.Credits), (credits) => credits === Credits.of(credits)))
  })
})
