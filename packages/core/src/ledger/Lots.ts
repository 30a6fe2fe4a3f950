/** Lots: credits granted together, with their source, the order of use, and the amounts left, held and claimed. */
import { Schema } from "effect"
import * as Credits from "../Credits.ts"
import { Timestamp } from "../Timestamp.ts"

/** Why credits were granted. Paid lots repay debt; when they expire, the rest is breakage. */
export const LotSource = Schema.Literals(["signup", "topup", "subscription", "promotion", "adjustment"])
export type LotSource = typeof LotSource.Type

export const isPaid = (source: LotSource): boolean => source === "topup" || source === "subscription"

/** Among lots that expire at the same time, the lower priority is used first: given credits before paid ones. */
export const DEFAULT_PRIORITY: Readonly<Record<LotSource, number>> = {
  promotion: 10,
  adjustment: 10,
  signup: 20,
  subscription: 30,
  topup: 40
}

/** The terms that a lot gets when it is granted. `expiresAt` is null for a lot that never expires. */
export const LotTerms = Schema.Struct({
  source: LotSource,
  priority: Schema.Int,
  expiresAt: Schema.NullOr(Timestamp)
})
export type LotTerms = typeof LotTerms.Type

/** An amount out of one lot. */
export const LotPart = Schema.Struct({ lotId: Schema.String, amount: Credits.Credits })
export type LotPart = typeof LotPart.Type
export type LotParts = ReadonlyArray<LotPart>

/** A lot with anything left or held. */
export const Lot = Schema.Struct({
  lotId: Schema.String,
  ...LotTerms.fields,
  /** Milliseconds since 1970. */
  grantedAt: Schema.Int,
  /** Free to be held. */
  left: Credits.Credits,
  /** Taken by open holds. */
  held: Credits.Credits,
  /** The part of `held` that a clawback takes as soon as it is released. */
  claimed: Credits.Credits,
  /** Whether it was told that the lot will expire. */
  announced: Schema.optionalKey(Schema.Literal(true))
})
export type Lot = typeof Lot.Type

export const isExpired = (lot: Pick<Lot, "expiresAt">, now: Timestamp): boolean => lot.expiresAt !== null && lot.expiresAt <= now

/**
 * By expiry, then priority, then age. Lots that are equal in all three stay in the order of their grants. One of them that was used up and gets
 * credits back comes after the others.
 */
const usedBefore = (a: Lot, b: Lot): number => {
  const expiry = (a.expiresAt ?? Number.POSITIVE_INFINITY) - (b.expiresAt ?? Number.POSITIVE_INFINITY)
  return (Number.isNaN(expiry) ? 0 : expiry) || a.priority - b.priority || a.grantedAt - b.grantedAt
}

/** The lots with one more, in the order in which they are used. */
export const insert = (lots: ReadonlyArray<Lot>, lot: Lot): ReadonlyArray<Lot> => {
  if (find(lots, lot.lotId) !== undefined) throw new Error(`Lot ${lot.lotId} exists already`)
  const after = lots.findIndex((other) => usedBefore(lot, other) < 0)
  return lots.toSpliced(after === -1 ? lots.length : after, 0, lot)
}

export const find = (lots: ReadonlyArray<Lot>, lotId: string): Lot | undefined => {
  for (const lot of lots) if (lot.lotId === lotId) return lot
  return undefined
}

/** The lots with one of them announced: it was told that it will expire. */
export const announce = (lots: ReadonlyArray<Lot>, lotId: string): ReadonlyArray<Lot> => {
  if (find(lots, lotId) === undefined) throw new Error(`Lot ${lotId} is not known`)
  return lots.map((lot) => (lot.lotId === lotId ? { ...lot, announced: true } : lot))
}

/** Free credits at an instant, without expired ones. */
export const available = (lots: ReadonlyArray<Lot>, now: Timestamp): Credits.Credits => {
  let total = 0
  for (const lot of lots) if (!isExpired(lot, now)) total += lot.left
  return Credits.of(total)
}

/** Free credits, including expired ones that are not written off yet. */
export const left = (lots: ReadonlyArray<Lot>): Credits.Credits => Credits.sum(lots.map((lot) => lot.left))

export const held = (lots: ReadonlyArray<Lot>): Credits.Credits => Credits.sum(lots.map((lot) => lot.held))

/** Free and held credits, without those that a clawback takes when their holds end. */
export const owned = (lots: ReadonlyArray<Lot>): Credits.Credits => {
  let total = 0
  for (const lot of lots) total += lot.left + lot.held - lot.claimed
  return Credits.of(total)
}

/** Allocates `amount` from lots in the order of use; undefined if they have too little. */
export const allocate = (lots: ReadonlyArray<Lot>, amount: Credits.Credits, now: Timestamp): LotParts | undefined => {
  let parts: Array<LotPart> | undefined
  let missing: number = amount
  for (const lot of lots) {
    if (missing === 0) break
    if (lot.left === 0 || isExpired(lot, now)) continue
    const part = { lotId: lot.lotId, amount: Credits.min(lot.left, Credits.of(missing)) }
    // The hold keeps the list. A list that is made with its part has no spare capacity, and most holds have one part
    if (parts === undefined) parts = [part]
    else parts.push(part)
    missing -= part.amount
  }
  return missing === 0 ? (parts ?? []) : undefined
}

/** Splits parts, in their order, into the first `amount` and the rest. No part is zero. */
export const split = (parts: LotParts, amount: Credits.Credits): readonly [first: LotParts, rest: LotParts] => {
  if (amount === total(parts)) return [parts, []]
  const first: Array<LotPart> = []
  const rest: Array<LotPart> = []
  let missing: number = amount
  for (const part of parts) {
    const taken = Math.min(part.amount, missing)
    missing -= taken
    if (taken > 0) first.push(taken === part.amount ? part : { lotId: part.lotId, amount: Credits.of(taken) })
    if (taken < part.amount) rest.push(taken === 0 ? part : { lotId: part.lotId, amount: Credits.of(part.amount - taken) })
  }
  return [first, rest]
}

export const total = (parts: LotParts): Credits.Credits => {
  let total = 0
  for (const part of parts) total += part.amount
  return Credits.of(total)
}

export const amountOf = (parts: LotParts, lotId: string): Credits.Credits => {
  for (const part of parts) if (part.lotId === lotId) return part.amount
  return Credits.zero
}

/** Subtracts `b` from `a`, lot by lot. `b` has no more of any lot than `a`. */
export const without = (a: LotParts, b: LotParts): LotParts =>
  b.length === 0
    ? a
    : a.map(({ lotId, amount }) => ({ lotId, amount: Credits.of(amount - amountOf(b, lotId)) })).filter((part) => part.amount > 0)

/** Adds to the left, held and claimed credits of one lot. A lot with nothing left or held is dropped. */
export const adjust = (
  lots: ReadonlyArray<Lot>,
  lotId: string,
  change: { readonly left?: number; readonly held?: number; readonly claimed?: number }
): ReadonlyArray<Lot> => {
  const index = lots.findIndex((lot) => lot.lotId === lotId)
  const lot = lots[index]
  if (lot === undefined) {
    if (change.left || change.held || change.claimed) throw new Error(`Lot ${lotId} is not known`)
    return lots
  }
  const after = {
    ...lot,
    left: Credits.of(lot.left + (change.left ?? 0)),
    held: Credits.of(lot.held + (change.held ?? 0)),
    claimed: Credits.of(lot.claimed + (change.claimed ?? 0))
  }
  if (after.claimed > after.held) throw new Error(`Lot ${lotId}: more claimed than held`)
  return after.left + after.held > 0 ? lots.with(index, after) : lots.toSpliced(index, 1)
}
