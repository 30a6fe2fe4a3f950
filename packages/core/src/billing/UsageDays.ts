/** The days of UTC in an account's usage: how its credits changed, and what was spent and granted. Folds single events, without the account. */
import { Schema } from "effect"
import * as Credits from "../Credits.ts"
import type { AccountEvent } from "../ledger/AccountEvent.ts"
import * as Lots from "../ledger/Lots.ts"

export const DayUsage = Schema.Struct({
  /** Such as `2026-11-21`. */
  day: Schema.String,
  /** By how much the account's credits changed, those that are held included: thousandths. */
  change: Schema.Int,
  charged: Credits.Credits,
  granted: Credits.Credits
})
export type DayUsage = typeof DayUsage.Type

export type Days = Map<string, DayUsage>

/** The days on which anything changed, in their order. */
export const listedDays = (days: Days): ReadonlyArray<DayUsage> => [...days.values()].sort((a, b) => (a.day < b.day ? -1 : 1))

/** The types of the events that {@link changeOf} counts. */
export const MOVING = [
  "CreditsGranted",
  "OperationSucceeded",
  "Refunded",
  "LotExpired",
  "CreditsClawedBack",
  "DebtRepaid",
  "ClawbackReversed"
] as const

const claimedOf = ({ claimed }: { readonly claimed?: Lots.LotParts }): number => (claimed === undefined ? 0 : Lots.total(claimed))

/**
 * By how much an event changes the credits of an account, available and held together: the sum that `Postings.ts` posts to both. A hold, and
 * its release, move credits between the two.
 */
export const changeOf = (event: AccountEvent): number => {
  switch (event._tag) {
    case "CreditsGranted":
      return event.amount
    case "OperationSucceeded":
      return -event.charged - claimedOf(event)
    case "Refunded":
      return (event.stage === "reserved" ? 0 : event.amount) - claimedOf(event)
    case "LotExpired":
      return -event.amount
    case "CreditsClawedBack":
      return -event.fromAvailable
    case "DebtRepaid":
      return -event.amount
    case "ClawbackReversed":
      return event.toAvailable
    default:
      return 0
  }
}

/** Folds an event of a day. */
export const countDay = (days: Days, day: string, event: AccountEvent): void => {
  const { change, charged, granted } = days.get(day) ?? { change: 0, charged: Credits.zero, granted: Credits.zero }
  days.set(day, {
    day,
    change: change + changeOf(event),
    charged: event._tag === "OperationSucceeded" ? Credits.of(charged + event.charged) : charged,
    granted: event._tag === "CreditsGranted" ? Credits.of(granted + event.amount) : granted
  })
}
