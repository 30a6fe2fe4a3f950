/**
 * The figures of a release, kept in `figures.json`, and the judgement whether this one is slower.
 *
 * All figures are ratios to a contender of the same run, in rounds that take turns: a slow or busy machine slows both. What noise is left is
 * measured by the rounds themselves. An interval has the true median with a probability of 95 %, whatever the distribution (see
 * {@link intervalOf}); so on a noisy machine it is wide, and a figure is called slower only if even its upper end is too low.
 */
import { readFileSync, writeFileSync } from "node:fs"
import { Schema } from "effect"

const FILE = new URL("figures.json", import.meta.url)

/** A release may be slower than the one before by this part. */
export const ALLOWED = 0.1

const Interval = Schema.Struct({ low: Schema.Number, median: Schema.Number, high: Schema.Number })
export type Interval = typeof Interval.Type

/** The figures by benchmark and contender. */
const Figures = Schema.Record(Schema.String, Schema.Record(Schema.String, Interval))
export type Figures = typeof Figures.Type

/** The probability that the interval does not have the median. */
const DOUBT = 0.05

/** The rounds from which on an interval can be that sure: with fewer it is from the least to the greatest. */
export const ROUNDS = 9

/**
 * The median of independent measurements, and its confidence interval by order statistics: so many of the least and of the greatest are left
 * out as the binomial distribution allows.
 */
export const intervalOf = (measured: ReadonlyArray<number>): Interval => {
  const sorted = measured.toSorted((a, b) => a - b)
  const n = sorted.length
  // The median lies below the k-th least measurement with the probability that fewer than k of n lie below the median
  let k = 0
  let outside = 0
  let exactly = 0.5 ** n
  while (2 * (outside + exactly) <= DOUBT) {
    outside += exactly
    exactly *= (n - k) / (k + 1)
    k++
  }
  const at = Math.max(0, k - 1)
  const rounded = (i: number) => Number((sorted[i] ?? Number.NaN).toPrecision(3))
  return { low: rounded(at), median: rounded(n >> 1), high: rounded(n - 1 - at) }
}

/** `unsure`: slower by the median, but not beyond the noise of this run. */
export type Verdict = "slower" | "unsure" | "as fast"

export const judge = (kept: Interval, now: Interval): Verdict => {
  const least = kept.median * (1 - ALLOWED)
  return now.high < least ? "slower" : now.median < least ? "unsure" : "as fast"
}

export const read = (): Figures => Schema.decodeUnknownSync(Schema.fromJsonString(Figures))(readFileSync(FILE, "utf8"))

/** Replaces the figures of the benchmarks that were measured. */
export const keep = (measured: Figures): void => writeFileSync(FILE, `${JSON.stringify({ ...read(), ...measured }, null, 2)}\n`)

export interface Judged {
  readonly benchmark: string
  readonly figure: string
  readonly kept: number
  readonly now: number
  readonly "95 %": string
  readonly verdict: Verdict | "not kept yet"
}

/** Compares what was measured with what is kept. */
export const compared = (kept: Figures, measured: Figures): ReadonlyArray<Judged> =>
  Object.entries(measured).flatMap(([benchmark, figures]) =>
    Object.entries(figures).map(([figure, now]) => {
      const before = kept[benchmark]?.[figure]
      return {
        benchmark,
        figure,
        kept: before?.median ?? Number.NaN,
        now: now.median,
        "95 %": `${now.low} to ${now.high}`,
        verdict: before === undefined ? "not kept yet" : judge(before, now)
      } as const
    })
  )
