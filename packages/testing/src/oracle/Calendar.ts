/** The calendar of recurring grants, found day by day: the checkers and the oracle share no arithmetic with the ledger. */

const DAY = 24 * 3_600_000

export type Every = "day" | "week" | "month" | "year"

const dayOf = (time: number): number => new Date(time).getUTCDate()

/** The n-th time after an anchor, in UTC. Where a month has no such day, it is the last day of the month. */
export const later = (anchor: number, every: Every, n: number): number => {
  if (every === "day" || every === "week") return anchor + n * (every === "day" ? 1 : 7) * DAY
  const wanted = dayOf(anchor)
  let time = anchor
  while (dayOf(time) > 1) time -= DAY
  for (let months = every === "year" ? 12 * n : n; months > 0; months--) {
    time += DAY
    while (dayOf(time) > 1) time += DAY
  }
  while (dayOf(time) < wanted && dayOf(time + DAY) > 1) time += DAY
  return time
}
