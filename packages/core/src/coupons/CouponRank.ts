/** How much a coupon can be relied on: a lower confidence bound on what accounts reported, in which old reports count less. */
import type { Timestamp } from "../Timestamp.ts"

/** What an account last said of a coupon. */
export interface Report {
  readonly by: string
  readonly worked: boolean
  /** Percent that it saved; null if it was not told. */
  readonly discount: number | null
  readonly at: Timestamp
  /** Whether it is the submitter's. */
  readonly own: boolean
}

/** Reports of a coupon that are kept: of more accounts, the newest. */
export const MOST_REPORTS = 200

/** After so long a report counts half: 90 days, in milliseconds. */
export const HALF_LIFE = 90 * 86_400_000

/** What a submitter's report of their own coupon counts. */
export const OWN_WEIGHT = 0.25

/** The normal quantile of a confidence of 95%. */
const Z = 1.959963984540054

/** What the reports of a coupon weigh at a time. */
export interface Evidence {
  readonly successes: number
  readonly failures: number
}

/** A report weighs `(own ? 1/4 : 1) · 2^(−age / 90 days)`. */
export const evidenceOf = (reports: ReadonlyArray<Report>, now: Timestamp): Evidence => {
  let [successes, failures] = [0, 0]
  for (const { at, own, worked } of reports) {
    const weight = (own ? OWN_WEIGHT : 1) * 2 ** (-Math.max(0, now - at) / HALF_LIFE)
    if (worked) successes += weight
    else failures += weight
  }
  return { successes, failures }
}

/**
 * The lower bound of Wilson's score interval, from 0 to 1, on the share of successes `p = s / n` with `n = s + f`:
 *
 * ```
 * (p + z²/2n − z·√((p(1−p) + z²/4n) / n)) / (1 + z²/n),  z = 1.96
 * ```
 *
 * where `s` and `f` are the weights of successes and failures: see {@link evidenceOf}. Without reports the bound is 0, so a new coupon
 * outranks none. A further success never lowers it, and a further failure never raises it. It falls towards 0 as reports age, so what
 * nobody confirms any more sinks below what is confirmed now.
 *
 * E. B. Wilson, Probable inference, the law of succession, and statistical inference, JASA 22 (1927), 209–212.
 */
export const lowerBound = ({ failures, successes }: Evidence): number => {
  const n = successes + failures
  // Below this the terms of the formula exceed each other by more than a number's digits
  if (successes <= 1e-9) return 0
  const p = successes / n
  const z2 = Z * Z
  const bound = (p + z2 / (2 * n) - Z * Math.sqrt((p * (1 - p) + z2 / (4 * n)) / n)) / (1 + z2 / n)
  return Math.min(1, Math.max(0, bound))
}

/** The rank of a coupon at a time, from 0 to 1. */
export const rankOf = (reports: ReadonlyArray<Report>, now: Timestamp): number => lowerBound(evidenceOf(reports, now))
