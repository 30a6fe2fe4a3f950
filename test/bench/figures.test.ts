import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { ALLOWED, compared, intervalOf, judge, ROUNDS, read } from "./figures.ts"

/** The number of ways to choose `k` of `n`. */
const choose = (n: number, k: number): number => (k === 0 ? 1 : (choose(n, k - 1) * (n - k + 1)) / k)

/** The probability that the median lies outside of the interval that leaves out `out` measurements at each end, of `n`. */
const doubt = (n: number, out: number): number =>
  (2 * Array.from({ length: out + 1 }, (_, k) => choose(n, k)).reduce((sum, ways) => sum + ways, 0)) / 2 ** n

describe("the interval of a figure", () => {
  it("leaves out as many measurements as a doubt of 5 % allows, and none if that is too few", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 40 }), (n) => {
        const measured = Array.from({ length: n }, (_, i) => i + 1)
        const { high, low, median } = intervalOf(measured.toReversed())
        const out = low - 1
        expect(high).toBe(n - out)
        expect(median).toBe(measured[n >> 1])
        if (out > 0) expect(doubt(n, out)).toBeLessThanOrEqual(0.05)
        expect(doubt(n, out + 1)).toBeGreaterThan(0.05)
      })
    )
  })

  it("leaves out the least and the greatest of the rounds of a check", () => {
    expect(intervalOf([9, 1, 5, 4, 6, 3, 7, 2, 8])).toEqual({ low: 2, median: 5, high: 8 })
    expect(ROUNDS).toBe(9)
  })
})

describe("a figure", () => {
  const kept = { low: 0.45, median: 0.5, high: 0.55 }
  const least = kept.median * (1 - ALLOWED)

  it("is slower only if its whole interval is below what is allowed", () => {
    fc.assert(
      fc.property(fc.array(fc.double({ min: 0.2, max: 0.8, noNaN: true }), { minLength: 9, maxLength: 9 }), (measured) => {
        const now = intervalOf(measured)
        const verdict = judge(kept, now)
        expect(verdict === "slower").toBe(now.high < least)
        expect(verdict === "as fast").toBe(now.median >= least)
      })
    )
  })

  it("that is a fifth slower fails, and a twentieth slower does not", () => {
    const by = (part: number) => judge(kept, intervalOf(Array.from({ length: 9 }, (_, i) => (1 - part) * (0.49 + i * 0.0025))))
    expect(by(0.2)).toBe("slower")
    expect(by(0.05)).toBe("as fast")
    expect(by(0)).toBe("as fast")
  })

  it("that noise hides is unsure", () => {
    expect(judge(kept, intervalOf([0.2, 0.2, 0.2, 0.2, 0.4, 0.6, 0.6, 0.6, 0.6]))).toBe("unsure")
  })

  it("that was never kept cannot fail", () => {
    const now = { charges: { millrace: kept } }
    expect(compared({}, now)[0]?.verdict).toBe("not kept yet")
    expect(compared({ charges: { millrace: { ...kept, median: 0.9 } } }, now)[0]?.verdict).toBe("slower")
  })
})

it("the kept figures can be read", () => {
  for (const benchmark of Object.values(read())) for (const { high, low } of Object.values(benchmark)) expect(low).toBeLessThanOrEqual(high)
})
