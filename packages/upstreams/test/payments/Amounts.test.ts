import fc from "fast-check"
import { describe, expect, test } from "vitest"
import * as Amounts from "../../src/payments/Amounts.ts"

const currency = fc.constantFrom("USD", "EUR", "JPY", "KRW", "KWD", "TND", "HUF", "TWD", "ISK", "UGX", "MGA", "CLF", "XAF")
const minor = fc.integer({ min: 0, max: 10 ** 12 })

describe("amounts", () => {
  test("stay the same there and back, at each gateway that takes them", () => {
    fc.assert(
      fc.property(minor, currency, (minor, currency) => {
        const stripe = Amounts.toStripe({ minor, currency })
        if (stripe !== undefined) expect(Amounts.fromStripe(stripe, currency)).toBe(minor)
        const value = Amounts.toPayPal({ minor, currency })
        if (value !== undefined) expect(Amounts.fromPayPal(value, currency)).toBe(minor)
      })
    )
  })

  test("of two decimals are the same number at Stripe, and its hundredth at PayPal", () => {
    fc.assert(
      fc.property(minor, fc.constantFrom("USD", "EUR", "GBP"), (minor, currency) => {
        expect(Amounts.toStripe({ minor, currency })).toBe(minor)
        const value = Amounts.toPayPal({ minor, currency }) ?? ""
        expect(value).toMatch(/^(?:0|[1-9]\d*)\.\d{2}$/u)
        expect(BigInt(value.replace(".", ""))).toBe(BigInt(minor))
      })
    )
  })

  test("in the currencies that gateways count in their own way", () => {
    expect(Amounts.toPayPal({ minor: 1_000, currency: "JPY" })).toBe("1000")
    expect(Amounts.toPayPal({ minor: 1_000, currency: "HUF" })).toBe("10")
    expect(Amounts.toPayPal({ minor: 1_050, currency: "HUF" })).toBeUndefined()
    expect(Amounts.toPayPal({ minor: 1_234, currency: "KWD" })).toBe("1.234")
    expect(Amounts.toPayPal({ minor: 5, currency: "USD" })).toBe("0.05")
    expect(Amounts.toStripe({ minor: 500, currency: "JPY" })).toBe(500)
    expect(Amounts.toStripe({ minor: 500, currency: "ISK" })).toBe(50_000)
    expect(Amounts.toStripe({ minor: 500, currency: "MGA" })).toBe(5)
    expect(Amounts.toStripe({ minor: 501, currency: "MGA" })).toBeUndefined()
    expect(Amounts.toStripe({ minor: 5_124, currency: "KWD" })).toBeUndefined()
    expect(Amounts.toStripe({ minor: 5_120, currency: "KWD" })).toBe(5_120)
  })

  test("that are no whole number of the smallest unit, negative, or malformed are none", () => {
    const ends = ["", "1.", ".5", "-1.00", "1,00", "1e3", "NaN", "0x10", " 1.00", "1.00 ", "10.001", "9".repeat(16)]
    for (const value of ends) expect(Amounts.fromPayPal(value, "USD"), value).toBeUndefined()
    expect(Amounts.fromPayPal("10.5", "JPY")).toBeUndefined()
    expect(Amounts.fromPayPal("10.00", "JPY")).toBe(10)
    expect(Amounts.fromPayPal("10", "USD")).toBe(1_000)
    for (const minor of [-1, 0.5, Number.NaN, 2 ** 53]) expect(Amounts.toPayPal({ minor, currency: "USD" })).toBeUndefined()
    expect(Amounts.fromStripe(50_050, "ISK")).toBeUndefined()
  })
})
