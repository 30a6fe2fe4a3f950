import { Effect, Exit } from "effect"
import * as fc from "fast-check"
import { describe, expect, test } from "vitest"
import * as StoreCatalog from "../../src/operations/StoreCatalog.ts"

/** Prices as shops write them: all with the same number of decimals, or not. */
const prices = fc.array(
  fc
    .record({ units: fc.nat(10 ** 9), scale: fc.constantFrom(0, 1, 2, 2, 2, 3, 6), fraction: fc.nat(999_999) })
    .map(({ fraction, scale, units }) => (scale === 0 ? String(units) : `${units}.${String(fraction).padStart(6, "0").slice(0, scale)}`)),
  { minLength: 1, maxLength: 40 }
)

/** In millionths. */
const millionths = (price: string): bigint => {
  const [whole = "", fraction = ""] = price.split(".")
  return BigInt(whole + fraction.padEnd(6, "0"))
}

const abs = (value: bigint): bigint => (value < 0n ? -value : value)

const product = (id: number, prices: ReadonlyArray<string>, published_at: string | null = null): StoreCatalog.Product => ({
  ...{
    id,
    title: `Product ${id}`,
    handle: `p-${id}`,
    vendor: "",
    product_type: "",
    created_at: "2026-01-01T00:00:00Z",
    published_at,
    images: []
  },
  variants: prices.map((price, i) => ({ id: i, title: "", price, sku: null, available: true }))
})

describe("the mean of prices", () => {
  test("is the nearest that has as many decimals as any of them, and the even one of two", () =>
    fc.assert(
      fc.property(prices, (prices) => {
        const mean = StoreCatalog.mean(prices)
        const scale = Math.max(...prices.map((price) => price.split(".")[1]?.length ?? 0))
        expect(mean.split(".")[1]?.length ?? 0).toBe(scale)
        // In exact fractions: n * mean is off the sum by at most half a unit of the last place for each price
        const [n, unit] = [BigInt(prices.length), 10n ** BigInt(6 - scale)]
        const off = abs(n * millionths(mean) - prices.map(millionths).reduce((a, b) => a + b, 0n)) * 2n
        expect(off <= n * unit).toBe(true)
        if (off === n * unit) expect((millionths(mean) / unit) % 2n).toBe(0n)
      }),
      { seed: 1, numRuns: 500 }
    ))

  test.each([
    [["0.01", "0.02"], "0.02"],
    [["0.02", "0.03"], "0.02"],
    [["0.1", "0.2"], "0.2"],
    [["1", "2"], "2"],
    [["2", "3"], "2"],
    [["0.00"], "0.00"],
    [["10.00", "10.00", "10.01"], "10.00"],
    [["999999999999999.99", "999999999999999.99"], "999999999999999.99"]
  ])("of %j is %s", (prices, mean) => expect(StoreCatalog.mean(prices)).toBe(mean))
})

describe("the summary of a catalog", () => {
  test("has the range of all prices, as they were written", () =>
    fc.assert(
      fc.property(fc.array(prices, { minLength: 1, maxLength: 4 }), (lists) => {
        const { price_range } = StoreCatalog.catalogOf(
          "a.example",
          lists.map((prices, i) => product(i, prices))
        )
        const all = lists.flat()
        const values = all.map(millionths)
        expect(all).toContain(price_range?.min)
        expect(all).toContain(price_range?.max)
        expect(values.every((value) => value >= millionths(price_range?.min ?? "") && value <= millionths(price_range?.max ?? ""))).toBe(
          true
        )
      }),
      { seed: 1 }
    ))

  test("names what was published last, by time and not by text, at its lowest price", () => {
    const { newest_product } = StoreCatalog.catalogOf("a.example", [
      product(1, ["9.00", "10.00"], "2026-01-22T12:00:00+01:00"),
      product(2, ["10.00", "9.50", "9.70"], "2026-01-22T11:30:00Z"),
      product(3, ["1.00"], null)
    ])
    expect(newest_product).toEqual({ id: 2, title: "Product 2", handle: "p-2", published_at: "2026-01-22T11:30:00Z", price: "9.50" })
  })

  test("of nothing is empty", () => {
    expect(StoreCatalog.catalogOf("a.example", [])).toEqual({
      ...{ domain: "a.example", total_products: 0, price_range: null, newest_product: null, products: [] }
    })
    expect(StoreCatalog.catalogOf("a.example", [product(1, [])])).toMatchObject({ total_products: 1, price_range: null })
  })
})

test.each([
  "192.0.2.1",
  "[::1]",
  "http://shop.example",
  "shop.example/a",
  "shop.example:8080",
  "user@shop.example",
  "a..b",
  "two words",
  "127.1"
])("%j is no domain, which is told before anything is held", (domain) => {
  const check = StoreCatalog.read.check({ domain }, { accountId: "acc_1", requestId: "req_1" })
  expect(Exit.isFailure(Effect.runSyncExit(check as Effect.Effect<void, unknown>))).toBe(true)
})
