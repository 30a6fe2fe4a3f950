import { Credits, Money } from "@millrace/core"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { amount } from "../../testing/src/Arbitraries.ts"

describe("what credits are worth", () => {
  test("is exact: value times amount, in whole units of the last decimal", () => {
    const value = fc.tuple(fc.nat(10_000), fc.integer({ min: 1, max: 12 })).map(([whole, places]) => ({ whole, places }))
    fc.assert(
      fc.property(amount, value, (credits, { places, whole }) => {
        const money = { ...Money.STANDARD, value: `${whole}.${"0".repeat(places - 1)}7` }
        const [left = "", right = ""] = Money.worthOf(credits, money).split(".")
        const scaled = BigInt(left + right.padEnd(places + 3, "0"))
        expect(scaled).toBe(BigInt(credits) * (BigInt(whole) * 10n ** BigInt(places) + 7n))
      })
    )
    expect(Money.worthOf(Credits.of(1_500))).toBe("0.0015")
    expect(Money.worthOf(Credits.of(200_000_000))).toBe("200")
    expect(Money.worthOf(Credits.zero)).toBe("0")
    expect(Money.worthOf(Credits.of(1_000), { ...Money.STANDARD, value: "25" })).toBe("25")
  })

  test("is parsed from a decimal and a currency", () => {
    expect(Money.parse("0.001 USD")).toStrictEqual({ value: "0.001", currency: "USD" })
    expect(Money.parse("2 EUR")).toStrictEqual({ value: "2", currency: "EUR" })
    for (const text of ["", "0.001", "USD", "0 USD", "0.000 USD", "-1 USD", "1e3 USD", "1 usd", "1  USD", ".5 USD", "1. USD", "1 EURO"]) {
      expect(Money.parse(text), text).toBeUndefined()
    }
  })

  test("has a name for one and one for several", () => {
    expect(Money.parseName("token/tokens")).toStrictEqual({ credit: "token", credits: "tokens" })
    expect(Money.parseName("Münze/Münzen")).toStrictEqual({ credit: "Münze", credits: "Münzen" })
    for (const text of ["", "token", "token/", "/tokens", "a/b/c", "2/3", "to\nken/tokens", `${"x".repeat(31)}/tokens`]) {
      expect(Money.parseName(text), text).toBeUndefined()
    }
  })

  test("and is told in the host's words", () => {
    expect(Money.text(Credits.of(1_000))).toBe("1 credit")
    expect(Money.text(Credits.of(1_500), { ...Money.STANDARD, credit: "token", credits: "tokens" })).toBe("1.5 tokens")
  })
})
