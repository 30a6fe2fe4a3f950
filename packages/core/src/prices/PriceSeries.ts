/**
 * The prices of one product by day (UTC), as they were observed. Prices are exact decimals, compared as such. A series has one currency:
 * another one begins it anew. What is older than the longest timeframe is dropped, so a series is small however often it was observed.
 */
import { BigDecimal, Schema } from "effect"
import type { Timestamp } from "../Timestamp.ts"

/** An exact decimal such as `19.9`: at most 15 digits before the point and six after it. */
export const Price = Schema.String.check(Schema.isPattern(/^\d{1,15}(?:\.\d{1,6})?$/u, { expected: "a decimal price such as 19.90" }))

/** Days of a history that can be asked for. */
export const TIMEFRAMES = [30, 60, 90, 120] as const

const LONGEST = 120

const DAY = 24 * 60 * 60_000

/** Its highest and lowest price of a day. */
export const Day = Schema.Struct({
  /** Days since 1970. */
  day: Schema.Int,
  low: Price,
  high: Price
})
export type Day = typeof Day.Type

export const Series = Schema.Struct({
  /** ISO 4217; null where the source did not tell. */
  currency: Schema.NullOr(Schema.String),
  /** In their order, each once. */
  days: Schema.Array(Day),
  /** The newest observation; null before the first. */
  last: Schema.NullOr(Schema.Struct({ price: Price, at: Schema.Int }))
})
export type Series = typeof Series.Type

export const EMPTY: Series = { currency: null, days: [], last: null }

export const dayOf = (at: Timestamp): number => Math.floor(at / DAY)

const decimal = BigDecimal.fromStringUnsafe

/** Whether a price of some time is part of the longest history that can be asked for. */
export const isKept = (at: Timestamp, now: Timestamp): boolean => dayOf(at) > dayOf(now) - LONGEST

/** -1, 0 or 1. */
export const compare = (a: string, b: string): number => BigDecimal.Order(decimal(a), decimal(b))

const lower = (a: string, b: string): string => (compare(b, a) < 0 ? b : a)
const higher = (a: string, b: string): string => (compare(b, a) > 0 ? b : a)

/** A number as an exact decimal without zeros at its end. Undefined if it is negative, or has too many digits. */
export const priceOf = (value: number): string | undefined => {
  const text = Number.isFinite(value) ? BigDecimal.format(BigDecimal.fromNumberUnsafe(value)) : ""
  return Schema.is(Price)(text) ? text : undefined
}

/** Adds an observation, which is not older than the last one. */
export const add = ({ currency, days, last }: Series, price: string, of: string | null, at: Timestamp): Series => {
  const known = last === null || currency === of ? days : []
  const day = dayOf(at)
  const today = known.at(-1)
  const earlier = (today?.day === day ? known.slice(0, -1) : known).filter((each) => each.day > day - LONGEST)
  const merged =
    today?.day === day ? { day, low: lower(today.low, price), high: higher(today.high, price) } : { day, low: price, high: price }
  return { currency: of, days: [...earlier, merged], last: { price, at } }
}

/** Whether an observation tells nothing new: the same price again on the same day. */
export const isKnown = ({ currency, last }: Series, price: string, of: string | null, now: Timestamp): boolean =>
  last !== null && currency === of && dayOf(last.at) === dayOf(now) && compare(last.price, price) === 0

/** Both together, in the currency of the first one where it has one. */
export const merge = (a: Series, b: Series): Series => {
  if (b.last === null) return a
  if (a.last === null) return b
  const byDay = new Map(a.days.map((day) => [day.day, day]))
  for (const { day, high, low } of b.days) {
    const other = byDay.get(day)
    byDay.set(day, other === undefined ? { day, low, high } : { day, low: lower(other.low, low), high: higher(other.high, high) })
  }
  const days = [...byDay.values()].sort((one, other) => one.day - other.day)
  return { currency: a.currency, days, last: b.last.at > a.last.at ? b.last : a.last }
}

/** What a series says of some days. */
export interface Summary {
  readonly days: ReadonlyArray<Day>
  /** The newest observation of these days; null without one, as are the following. */
  readonly current: string | null
  readonly lowest: string | null
  readonly highest: string | null
  /** By how much the current price is below the highest one. */
  readonly drop: string | null
  /** The same in percent of the highest price, rounded half to even to two decimals. */
  readonly dropPercent: string | null
  /** Days whose range differs from that of the day before them in the list. */
  readonly changes: number
}

const percentOf = (part: BigDecimal.BigDecimal, whole: BigDecimal.BigDecimal): BigDecimal.BigDecimal =>
  BigDecimal.isZero(whole)
    ? BigDecimal.fromBigInt(0n)
    : BigDecimal.round(BigDecimal.divideUnsafe(BigDecimal.multiply(part, BigDecimal.fromBigInt(100n)), whole), {
        scale: 2,
        mode: "half-even"
      })

/** The last `timeframe` days, today included. */
export const summaryOf = ({ days: all, last }: Series, timeframe: number, now: Timestamp): Summary => {
  const days = all.filter(({ day }) => day > dayOf(now) - timeframe)
  const [first] = days
  if (first === undefined || last === null)
    return { days: [], current: null, lowest: null, highest: null, drop: null, dropPercent: null, changes: 0 }
  const lowest = days.reduce((price, { low }) => lower(price, low), first.low)
  const highest = days.reduce((price, { high }) => higher(price, high), first.high)
  const drop = BigDecimal.subtract(decimal(highest), decimal(last.price))
  return {
    days,
    current: last.price,
    lowest,
    highest,
    drop: BigDecimal.format(drop),
    dropPercent: BigDecimal.format(percentOf(drop, decimal(highest))),
    changes: days.filter(({ high, low }, i) => {
      const before = days[i - 1]
      return before !== undefined && (compare(before.low, low) !== 0 || compare(before.high, high) !== 0)
    }).length
  }
}

/** `2026-01-22`. */
export const dateOf = (day: number): string => new Date(day * DAY).toISOString().slice(0, 10)
