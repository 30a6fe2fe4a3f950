/**
 * The periods of a recurring grant, in UTC. They are counted from an anchor, and not from each other: what begins on 31 January is due on 28
 * or 29 February, and on 31 March again. The time of day is that of the anchor.
 */
import { Schema } from "effect"
import type { Timestamp } from "../Timestamp.ts"

export const Every = Schema.Literals(["day", "week", "month", "year"])
export type Every = typeof Every.Type

const DAY = 24 * 3_600_000

/** When period `n` begins, counted from 0, which begins at `anchor`. Milliseconds since 1970. */
export const startOf = (anchor: Timestamp, every: Every, n: number): Timestamp => {
  if (every === "day") return anchor + n * DAY
  if (every === "week") return anchor + n * 7 * DAY
  const from = new Date(anchor)
  const month = from.getUTCMonth() + (every === "month" ? n : 12 * n)
  // Day 0 of the next month is the last day of this one
  const last = new Date(Date.UTC(from.getUTCFullYear(), month + 1, 0)).getUTCDate()
  return Date.UTC(from.getUTCFullYear(), month, Math.min(from.getUTCDate(), last)) + (((anchor % DAY) + DAY) % DAY)
}
