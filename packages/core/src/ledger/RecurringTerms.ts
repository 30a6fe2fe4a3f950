/** The terms of a recurring grant. */
import { Schema } from "effect"
import * as Credits from "../Credits.ts"
import { bare } from "../Ids.ts"
import { Timestamp } from "../Timestamp.ts"
import { LotSource } from "./Lots.ts"
import * as Periods from "./Periods.ts"

export const RecurringTerms = Schema.Struct({
  /** Of each lot, in thousandths. */
  amount: Credits.Credits,
  /** Not a paid source: each of its lots would need a payment of its own. */
  source: LotSource,
  priority: Schema.Int,
  every: Periods.Every,
  /** When the first period begins. */
  anchor: Timestamp,
  /** No period begins at this time or later. Null: the grant goes on until it is stopped. */
  until: Schema.NullOr(Timestamp),
  /** `next`: each lot expires when the next period begins. `never`: no lot expires. */
  expires: Schema.Literals(["next", "never"])
})
export type RecurringTerms = typeof RecurringTerms.Type

/** When period `n` of a grant begins, from 0. */
export const startOf = ({ anchor, every }: Pick<RecurringTerms, "anchor" | "every">, n: number): Timestamp =>
  Periods.startOf(anchor, every, n)

/** Whether the grant has no period that begins then. */
export const isOver = ({ until }: Pick<RecurringTerms, "until">, at: Timestamp): boolean => until !== null && at >= until

/** The id of the lot of a period: the same at every host, so a period is granted once. */
export const lotIdOf = (grantId: string, period: number): string => `lot_${bare(grantId)}_p${period}`
