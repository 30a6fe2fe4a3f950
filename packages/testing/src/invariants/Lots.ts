/** Lots as the invariants count them, and amounts by lot. Thousandths of a credit. */
import type { Lots } from "@millrace/core"

export type Parts = ReadonlyArray<Lots.LotPart>

export interface Lot extends Lots.LotTerms {
  readonly grantedAt: number
  readonly granted: number
  clawedBack: number
  left: number
  held: number
  claimed: number
}

/** A lot that was never granted. */
export const EMPTY: Lot = {
  ...{ source: "adjustment", priority: 0, expiresAt: null, grantedAt: 0 },
  ...{ granted: 0, clawedBack: 0, left: 0, held: 0, claimed: 0 }
}

export const total = (parts: Parts): number => parts.reduce((sum, { amount }) => sum + amount, 0)
export const of = (parts: Parts, lotId: string): number => total(parts.filter((part) => part.lotId === lotId))
export const within = (parts: Parts, all: Parts): boolean => parts.every(({ lotId }) => of(parts, lotId) <= of(all, lotId))
export const isPaid = (lot: Lot): boolean => lot.source === "topup" || lot.source === "subscription"
export const expiry = (lot: Lot): number => lot.expiresAt ?? Number.POSITIVE_INFINITY

/** Whether `a` is spent before `b`. */
export const comesBefore = (a: Lot, b: Lot): boolean => {
  const [first, second] = [expiry(a), expiry(b)]
  if (first !== second) return first < second
  return a.priority !== b.priority ? a.priority < b.priority : a.grantedAt < b.grantedAt
}
