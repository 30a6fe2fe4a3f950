/** The plans of subscriptions: what a period costs, and the credits that it brings. */
import { Schema } from "effect"
import { Credits } from "../Credits.ts"
import { Every } from "../ledger/Periods.ts"
import { share } from "./Amount.ts"
import { Currency, type Line, Minor } from "./PaymentEvent.ts"

/** A plan as it stood when it was taken: a later change of the host's plans does not change what was agreed. */
export const Plan = Schema.Struct({
  plan: Schema.String,
  /** Of a period, in the smallest unit. */
  amount: Minor,
  currency: Currency,
  /** Of a period, in thousandths. */
  credits: Credits,
  every: Every
})
export type Plan = typeof Plan.Type

/** What is in force in a period that a change is computed for: milliseconds since 1970. */
export interface Span {
  readonly from: number
  readonly until: number
}

/** What the rest of a period costs with another plan. Money in the smallest unit, credits in thousandths. */
export interface Proration {
  /** The rest of the new plan's price. */
  readonly charged: number
  /** The rest of the old plan's price, which is paid already. */
  readonly credited: number
  /** What is to be paid: never negative. */
  readonly amount: number
  /** The credits that come on top of those of the old plan. */
  readonly credits: Credits
}

/**
 * With `rest = until − at` and `whole = until − from` in milliseconds, and each quotient rounded down:
 *
 *     charged = new price × rest / whole        credited = old price × rest / whole        amount = max(0, charged − credited)
 *     credits = max(0, new credits × rest / whole − old credits × rest / whole)
 *
 * So a change in steps at one instant costs as much as the change at once.
 */
export const prorate = (before: Plan, after: Plan, { from, until }: Span, at: number): Proration => {
  const rest = Math.min(Math.max(until - at, 0), until - from)
  const ofRest = (whole: number): number => share(whole, rest, until - from)
  const [charged, credited] = [ofRest(after.amount), ofRest(before.amount)]
  return {
    charged,
    credited,
    amount: Math.max(0, charged - credited),
    credits: Credits.make(Math.max(0, ofRest(after.credits) - ofRest(before.credits)))
  }
}

/** The lines of a change of plan, for the rest of a period. Their sum is the amount, which is positive. */
export const linesOf = (before: Plan, after: Plan, { charged, credited }: Proration, rest: Span): ReadonlyArray<Line> => [
  { description: `Plan ${after.plan}, rest of the period`, amount: charged, ...rest },
  { description: `Plan ${before.plan}, already paid for the rest of the period`, amount: -credited, ...rest }
]
