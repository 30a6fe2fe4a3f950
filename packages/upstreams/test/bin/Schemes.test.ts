import creditCardType from "credit-card-type"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { schemeNamed, schemeOf } from "../../src/bin/Schemes.ts"

/** The networks' own ranges as they publish them, without those that another network was given a part of. */
const RANGES: ReadonlyArray<readonly [scheme: string, first: number, last: number]> = [
  ["visa", 410000, 410999],
  ["mastercard", 510000, 526999],
  ["mastercard", 530000, 559999],
  ["mastercard", 222100, 272099],
  ["american-express", 340000, 349999],
  ["american-express", 370000, 379999],
  ["diners-club", 300000, 305999],
  ["diners-club", 360000, 369999],
  ["diners-club", 380000, 399999],
  ["discover", 601100, 601199],
  ["discover", 644000, 649999],
  ["jcb", 352800, 358999],
  ["unionpay", 624000, 626999],
  ["mir", 220000, 220499],
  ["troy", 979200, 979299],
  ["elo", 509000, 509999],
  ["maestro", 675900, 676999],
  ["verve", 506099, 506127],
  ["hipercard", 606282, 606282],
  ["naranja", 589562, 589562]
]

const prefixes = (first: number, last: number) =>
  fc.tuple(fc.integer({ min: first, max: last }), fc.constantFrom("", "0", "9", "00", "37", "99")).map(([six, rest]) => `${six}${rest}`)

describe("the network of a prefix", () => {
  test.each(RANGES)("is %s from %i to %i", (scheme, first, last) => {
    fc.assert(
      fc.property(prefixes(first, last), (bin) => {
        expect(schemeOf(bin)?.scheme).toBe(scheme)
      }),
      { seed: 1, examples: [[String(first)], [`${last}99`]] }
    )
  })

  test.each([
    ["below Mastercard's", "222099"],
    ["above Mastercard's", "272100"],
    ["between Amex's and Diners'", "350000"],
    ["of RuPay, which the library does not know", "608001"],
    ["of no bank card", "100000"],
    ["of nobody", "999999"],
    ["of airlines", "180100"]
  ])("is unknown %s: %s", (_, bin) => expect(schemeOf(bin)).toBeUndefined())

  test("is unknown while a longer prefix may belong to another network", () => {
    expect(schemeOf("650837")).toBeUndefined()
    expect(schemeOf("65083702")?.scheme).toBe("troy")
    expect(schemeOf("65083705")?.scheme).toBe("discover")
    expect(schemeOf("637433")).toBeUndefined()
    expect(schemeOf("63743358")?.scheme).toBe("hiper")
  })

  test("is that of every longer prefix, unless another network has that one", () => {
    fc.assert(
      fc.property(fc.integer({ min: 100_000, max: 999_999 }), fc.integer({ min: 0, max: 99 }), (six, two) => {
        const known = schemeOf(String(six))
        if (known !== undefined) expect(schemeOf(`${six}${String(two).padStart(2, "0")}`)).toEqual(known)
      }),
      { seed: 1, numRuns: 2000 }
    )
  })

  test("is the narrower of two ranges of equal length", () => {
    const ranges = Object.values(creditCardType.types).flatMap((type) =>
      (creditCardType.getTypeInfo(type)?.patterns ?? [])
        .map((pattern) => (typeof pattern === "number" ? [pattern, pattern] : pattern))
        .flatMap(([low, high]) =>
          low !== undefined && high !== undefined && low >= 100_000 && high <= 999_999 ? [{ type, low, high }] : []
        )
    )
    const shared = ranges.flatMap((a) =>
      ranges.filter((b) => a.type !== b.type && b.low <= a.low && a.high <= b.high).map((b) => [a, b] as const)
    )
    expect(shared.length).toBeGreaterThan(0)
    for (const [inner] of shared) {
      for (const bin of [inner.low, inner.high]) expect([inner.type, undefined]).toContain(schemeOf(String(bin))?.scheme)
    }
  })

  test("is the one that the library finds by its search", () => {
    const searched = (bin: string) => {
      const [match, ...others] = creditCardType(bin)
      const isKnown = match !== undefined && others.length === 0 && (match.type === "visa" || (match.matchStrength ?? 0) > 1)
      return isKnown ? { scheme: match.type, brand: match.niceType } : undefined
    }
    const patterns = Object.values(creditCardType.types).flatMap((type) => creditCardType.getTypeInfo(type).patterns.flat())
    const any = fc.stringMatching(/^[0-9]{6,8}$/u)
    // Right before, at and right after the ends of the ranges
    const edge = fc
      .tuple(fc.constantFrom(...patterns), fc.constantFrom(-1, 0, 1), fc.constantFrom("0", "9"), fc.integer({ min: 6, max: 8 }))
      .map(([pattern, step, digit, length]) =>
        String(pattern + step)
          .padEnd(length, digit)
          .slice(0, length)
      )
    fc.assert(
      fc.property(fc.oneof(any, edge), (bin) => {
        expect([bin, schemeOf(bin)]).toEqual([bin, searched(bin)])
      }),
      { seed: 1, numRuns: 5000 }
    )
  })

  test("is undefined for fewer than six digits", () => {
    for (const bin of ["", "x", "visa", "٤١١١١١"]) expect(schemeOf(bin)).toBeUndefined()
  })

  test("has one name for all spellings", () => {
    for (const name of ["American Express", "AMEX", " american  express "]) expect(schemeNamed(name)).toBe("american-express")
    expect(schemeNamed("RuPay")).toBe("rupay")
  })
})
