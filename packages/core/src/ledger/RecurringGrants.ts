/**
 * The recurring grants of an account: each grants a lot at the beginning of each of its periods.
 *
 * The lot of a period is due when the period begins. Like every due event, it is written by the account's next decision; `AccountUpkeep.ts`
 * makes sure that there is one. If that comes late, the rule for the periods that have begun meanwhile is:
 *
 * - `expires: "never"`: each of them is granted, in one append.
 * - `expires: "next"`: only the period that lasts is granted. The lots of periods that have ended would have expired already, so they are
 *   skipped. The number of the period in `CreditsGranted` shows which ones.
 *
 * A grant is over once its next period would begin at `until` or later; the decision that grants the last period also stops it. A lot that
 * would raise the balance above the largest one stays due.
 */
import { Schema } from "effect"
import type { Timestamp } from "../Timestamp.ts"
import type { AccountEvent } from "./AccountEvent.ts"
import type { Lot } from "./Lots.ts"
import * as RecurringTerms from "./RecurringTerms.ts"

export { lotIdOf } from "./RecurringTerms.ts"

/** Recurring grants of one account at a time: they stand in its state and in each of its snapshots. */
export const MAX_RECURRING_GRANTS = 16

/** A grant that has not been stopped. */
export const RecurringGrant = Schema.Struct({
  grantId: Schema.String,
  ...RecurringTerms.RecurringTerms.mapFields((fields) => ({ ...fields, anchor: Schema.Int, until: Schema.NullOr(Schema.Int) })).fields,
  /** The period that is granted next, from 0, and when it begins. */
  period: Schema.Int,
  dueAt: Schema.Int
})
export type RecurringGrant = typeof RecurringGrant.Type

export const find = (grants: ReadonlyArray<RecurringGrant>, grantId: string): RecurringGrant | undefined =>
  grants.find((grant) => grant.grantId === grantId)

/** Whether one of these is a lot of the grant. */
export const hasLot = (grantId: string, lots: ReadonlyArray<Lot>): boolean => {
  const prefix = RecurringTerms.lotIdOf(grantId, 0).slice(0, -1)
  return lots.some(({ lotId }) => lotId.startsWith(prefix))
}

/** The lot of a period that is due. */
export interface DueLot {
  readonly period: number
  /** When it begins. */
  readonly from: Timestamp
  /** When the next period begins. */
  readonly next: Timestamp
}

/** The periods of a grant that are due at `now` and not skipped, in order; then whether the grant is over. */
export const due = (grant: RecurringGrant, now: Timestamp): { readonly lots: ReadonlyArray<DueLot>; readonly isOver: boolean } => {
  const lots: Array<DueLot> = []
  let { dueAt: from, period } = grant
  while (from <= now && !RecurringTerms.isOver(grant, from)) {
    const next = RecurringTerms.startOf(grant, period + 1)
    if (grant.expires === "never" || next > now) lots.push({ period, from, next })
    from = next
    period++
  }
  return { lots, isOver: RecurringTerms.isOver(grant, from) }
}

/** The grants after an event. */
export const evolve = (grants: ReadonlyArray<RecurringGrant>, event: AccountEvent): ReadonlyArray<RecurringGrant> => {
  switch (event._tag) {
    case "RecurringGrantStarted": {
      const { _tag, ...grant } = event
      return [...grants, { ...grant, period: 0, dueAt: grant.anchor }]
    }
    case "RecurringGrantStopped":
      return grants.filter(({ grantId }) => grantId !== event.grantId)
    case "CreditsGranted": {
      const { recurring } = event
      if (recurring === undefined) return grants
      return grants.map((grant) =>
        grant.grantId === recurring.grantId ? { ...grant, period: recurring.period + 1, dueAt: recurring.next } : grant
      )
    }
    default:
      return grants
  }
}
