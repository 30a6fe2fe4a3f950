import * as fc from "fast-check"
import { describe, expect, test } from "vitest"
import * as PriceSeries from "../../src/prices/PriceSeries.ts"

const HOUR = 3_600_000
const START = Date.parse("2026-01-01T00:00:00Z")

/** Prices in hundredths, close to each other, so that equal ones are common. */
const observations = fc
  .array(fc.record({ hours: fc.integer({ min: 0, max: 300 }), cents: fc.integer({ min: 0, max: 400 }) }), { maxLength: 60 })
  .map((list) => {
    let at = START
    return list.map(({ cents, hours }) => {
      at += hours * HOUR
      return { at, cents }
    })
  })
type Observed = { readonly at: number; readonly cents: number }

const priceOf = (cents: number): string => PriceSeries.priceOf(cents / 100) ?? ""
const seriesOf = (list: ReadonlyArray<Observed>): PriceSeries.Series =>
  list.reduce((series, { at, cents }) => PriceSeries.add(series, priceOf(cents), "EUR", at), PriceSeries.EMPTY)

const centsOf = (price: string | null): number | null => (price === null ? null : Math.round(Number(price) * 100))

/** The plain way: all observations are kept, in whole cents. */
const oracle = (list: ReadonlyArray<Observed>, timeframe: number, now: number) => {
  const today = new Date(now).toISOString().slice(0, 10)
  const from = new Date(Date.parse(today) - (timeframe - 1) * 24 * HOUR).toISOString().slice(0, 10)
  const within = list.filter(({ at }) => new Date(at).toISOString().slice(0, 10) >= from)
  const days = Map.groupBy(within, ({ at }) => new Date(at).toISOString().slice(0, 10))
  const history = [...days]
    .map(([date, all]) => ({ date, low: Math.min(...all.map(({ cents }) => cents)), high: Math.max(...all.map(({ cents }) => cents)) }))
    .sort((a, b) => (a.date < b.date ? -1 : 1))
  const current = within.toSorted((a, b) => a.at - b.at).at(-1)?.cents ?? null
  const highest = within.length === 0 ? null : Math.max(...within.map(({ cents }) => cents))
  return {
    history,
    current,
    highest,
    lowest: within.length === 0 ? null : Math.min(...within.map(({ cents }) => cents)),
    drop: current === null || highest === null ? null : highest - current,
    changes: history.filter(({ high, low }, i) => i > 0 && (history[i - 1]?.low !== low || history[i - 1]?.high !== high)).length
  }
}

const told = ({ changes, current, days, drop, highest, lowest }: PriceSeries.Summary) => ({
  history: days.map(({ day, high, low }) => ({ date: PriceSeries.dateOf(day), low: centsOf(low), high: centsOf(high) })),
  current: centsOf(current),
  highest: centsOf(highest),
  lowest: centsOf(lowest),
  drop: centsOf(drop),
  changes
})

const timeframe = fc.constantFrom(...PriceSeries.TIMEFRAMES)
const endOf = (list: ReadonlyArray<Observed>): number => list.at(-1)?.at ?? START

describe("the history of a product", () => {
  test("is that of all its observations", () =>
    fc.assert(
      fc.property(observations, timeframe, fc.nat(3_000), (list, timeframe, hours) => {
        const now = endOf(list) + hours * HOUR
        expect(told(PriceSeries.summaryOf(seriesOf(list), timeframe, now))).toEqual(oracle(list, timeframe, now))
      }),
      { seed: 1, numRuns: 500 }
    ))

  test("of two sources is that of the observations of both", () =>
    fc.assert(
      fc.property(observations, fc.array(fc.boolean(), { minLength: 60, maxLength: 60 }), timeframe, (list, sides, timeframe) => {
        // No two at one time: then either could be the newest
        const all = list.map(({ cents, at }, i) => ({ cents, at: at + i }))
        const [one, other] = [all.filter((_, i) => sides[i] === true), all.filter((_, i) => sides[i] !== true)]
        const now = endOf(all)
        const merged = PriceSeries.merge(seriesOf(one), seriesOf(other))
        expect(told(PriceSeries.summaryOf(merged, timeframe, now))).toEqual(oracle(all, timeframe, now))
      }),
      { seed: 2, numRuns: 500 }
    ))

  test("does not change by what is known already", () =>
    fc.assert(
      fc.property(observations, timeframe, (list, timeframe) => {
        const news = list.reduce((series, { at, cents }) => {
          const price = priceOf(cents)
          return PriceSeries.isKnown(series, price, "EUR", at) ? series : PriceSeries.add(series, price, "EUR", at)
        }, PriceSeries.EMPTY)
        const now = endOf(list)
        expect(told(PriceSeries.summaryOf(news, timeframe, now))).toEqual(oracle(list, timeframe, now))
      }),
      { seed: 3, numRuns: 300 }
    ))

  test("has at most 120 days in memory, however many there were", () => {
    const list = Array.from({ length: 5_000 }, (_, i) => ({ at: START + i * 6 * HOUR, cents: i % 97 }))
    expect(seriesOf(list).days).toHaveLength(120)
  })

  test("begins anew in another currency", () => {
    const euros = PriceSeries.add(PriceSeries.EMPTY, "10", "EUR", START)
    const dollars = PriceSeries.add(euros, "12", "USD", START)
    expect(dollars.days.map(({ high, low }) => [low, high])).toEqual([["12", "12"]])
  })

  test("compares and subtracts exactly, and rounds percents half to even", () => {
    const of = (...prices: ReadonlyArray<string>) =>
      PriceSeries.summaryOf(
        prices.reduce((series, price, i) => PriceSeries.add(series, price, null, START + i), PriceSeries.EMPTY),
        30,
        START
      )
    expect(of("0.3", "0.1")).toMatchObject({ drop: "0.2", dropPercent: "66.67" })
    expect(of("9007199254740993.1".slice(1), "7199254740993")).toMatchObject({ drop: "0.1" })
    expect(of("800", "799.96")).toMatchObject({ drop: "0.04", dropPercent: "0" })
    expect(of("800", "799.88")).toMatchObject({ drop: "0.12", dropPercent: "0.02" })
    expect(of("0")).toMatchObject({ drop: "0", dropPercent: "0" })
    expect(of("9.9", "10")).toMatchObject({ lowest: "9.9", highest: "10", current: "10", drop: "0" })
  })
})

test.each([
  [9.99, "9.99"],
  [0, "0"],
  [1e12, "1000000000000"],
  [0.000001, "0.000001"],
  [0.0000001, undefined],
  [0.1 + 0.2, undefined],
  [-1, undefined],
  [1e15, undefined],
  [Number.NaN, undefined],
  [Number.POSITIVE_INFINITY, undefined]
])("%d is the price %s", (value, price) => expect(PriceSeries.priceOf(value)).toBe(price))
