/** Decisions on lots: credits are granted, a payment is clawed back, a clawback is reversed, a lot follows its payment. */

import { HashMap } from "effect"
import * as Credits from "../Credits.ts"
import { bare } from "../Ids.ts"
import { get } from "./Account.ts"
import type { EventOf } from "./AccountEvent.ts"
import * as Lots from "./Lots.ts"
import type { PaidLot } from "./Purse.ts"
import { BalanceTooLarge, LotNotFound, LotNotPaid } from "./Refusals.ts"
import { unusable } from "./StatusDecisions.ts"
import { ADJUSTMENT_LIFETIME, deciding, MAX_BALANCE, NOTHING, type Transaction } from "./Transaction.ts"

/** The lot to grant. By default it has the priority of its source, never expires, and belongs to no payment. */
export type Grant = Pick<Granted, "lotId" | "amount" | "source"> & Partial<Omit<Granted, "_tag">>
type Granted = EventOf<"CreditsGranted">

/** Grants a lot. Repeating the grant decides nothing: a paid lot is remembered for ever, any other while it has credits left or held. */
export const grant = ({ lotId, amount, source, priority = Lots.DEFAULT_PRIORITY[source], expiresAt = null, paymentRef = null }: Grant) =>
  deciding((transaction, account) => {
    const refusal = unusable(account)
    if (refusal !== undefined) return refusal
    const { lots, paidLots } = transaction.account.purse
    if (amount === 0 || HashMap.has(paidLots, lotId) || Lots.find(lots, lotId) !== undefined) return NOTHING
    if (Lots.left(lots) + Lots.held(lots) + amount > MAX_BALANCE) return new BalanceTooLarge({ limit: MAX_BALANCE })
    transaction.add({ _tag: "CreditsGranted", lotId, amount, source, priority, expiresAt, paymentRef })
    return undefined
  })

/**
 * Grants what a payment bought, and its bonus as a lot of its own, together. Repeating it decides nothing, whatever became of the lots and of
 * the account.
 */
export const grantPaid = (paid: Grant, bonus?: Grant) =>
  deciding((transaction, account) => {
    const { lots, paidLots } = transaction.account.purse
    if (HashMap.has(paidLots, paid.lotId)) return NOTHING
    const refusal = unusable(account)
    if (refusal !== undefined) return refusal
    const all = bonus === undefined || bonus.amount === 0 ? [paid] : [paid, bonus]
    const sum = all.reduce((sum, { amount }) => sum + amount, 0)
    if (Lots.left(lots) + Lots.held(lots) + sum > MAX_BALANCE) return new BalanceTooLarge({ limit: MAX_BALANCE })
    for (const { lotId, amount, source, priority = Lots.DEFAULT_PRIORITY[source], expiresAt = null, paymentRef = null } of all)
      transaction.add({ _tag: "CreditsGranted", lotId, amount, source, priority, expiresAt, paymentRef })
    return undefined
  })

/** Takes a paid lot back, as after a chargeback: first its available credits, then its held ones once released. The rest is debt. */
export const clawBack = (lotId: string, amount?: Credits.Credits) =>
  deciding((transaction) => {
    const { lots, paidLots } = transaction.account.purse
    const paid = get(paidLots, lotId)
    if (paid === undefined) return Lots.find(lots, lotId) === undefined ? new LotNotFound({ lotId }) : new LotNotPaid({ lotId })
    return takeBack(transaction, lotId, paid, amount ?? paid.granted) ? undefined : NOTHING
  })

/**
 * Reverses clawbacks of a lot: first the claim on held credits, then the debt; the rest returns as credits. If the lot has expired, these
 * become a new lot with a lifetime of `adjustmentLifetime` milliseconds.
 */
export const reverseClawback = (lotId: string, amount?: Credits.Credits, adjustmentLifetime: number = ADJUSTMENT_LIFETIME) =>
  deciding((transaction) => {
    const paid = get(transaction.account.purse.paidLots, lotId)
    if (paid === undefined) return new LotNotFound({ lotId })
    return giveBack(transaction, lotId, paid, amount ?? paid.clawedBack, adjustmentLifetime) ? undefined : NOTHING
  })

/**
 * Brings a lot up to date with its payment: makes those of the payment's changes that were not made yet, each once and in order. A positive
 * change is clawed back, a negative one reversed. A lot that was not granted has none.
 */
export const followPayment = (lotId: string, changes: ReadonlyArray<number>, adjustmentLifetime: number = ADJUSTMENT_LIFETIME) =>
  deciding((transaction) => {
    const made = get(transaction.account.purse.paidLots, lotId)?.changes ?? changes.length
    let isNew = false
    for (let i = made; i < changes.length; i++) {
      const paid = get(transaction.account.purse.paidLots, lotId)
      const by = changes[i] ?? 0
      if (paid === undefined) break
      const done =
        by > 0
          ? takeBack(transaction, lotId, paid, by, { change: i + 1 })
          : giveBack(transaction, lotId, paid, -by, adjustmentLifetime, { change: i + 1 })
      isNew ||= done
    }
    return isNew ? undefined : NOTHING
  })

/** Claws back at most `amount`; false if nothing is left to take. */
const takeBack = (
  transaction: Transaction,
  lotId: string,
  { clawedBack, granted, paymentRef }: PaidLot,
  amount: number,
  change: { readonly change?: number } = {}
): boolean => {
  const lot = Lots.find(transaction.account.purse.lots, lotId)
  const taken = Credits.of(Math.min(amount, granted - clawedBack))
  if (taken === 0) return false
  const fromAvailable = Credits.min(taken, lot?.left ?? Credits.zero)
  const unclaimed = lot === undefined ? 0 : lot.held - lot.claimed
  const fromHeld = Credits.of(Math.min(taken - fromAvailable, unclaimed))
  const owed = Credits.of(taken - fromAvailable - fromHeld)
  transaction.add({ _tag: "CreditsClawedBack", lotId, paymentRef, amount: taken, fromAvailable, fromHeld, debt: owed, ...change })
  return true
}

/** Reverses at most `amount` of the clawbacks; false if nothing is clawed back. */
const giveBack = (
  transaction: Transaction,
  lotId: string,
  { clawedBack, paymentRef }: PaidLot,
  amount: number,
  lifetime: number,
  change: { readonly change?: number } = {}
): boolean => {
  const { debts, lots } = transaction.account.purse
  const back = Credits.of(Math.min(amount, clawedBack))
  if (back === 0) return false
  const toHeld = Credits.min(back, Lots.find(lots, lotId)?.claimed ?? Credits.zero)
  const toDebt = Credits.of(Math.min(back - toHeld, Lots.amountOf(debts, lotId)))
  const toAvailable = Credits.of(back - toHeld - toDebt)
  transaction.add({ _tag: "ClawbackReversed", lotId, paymentRef, amount: back, toHeld, toDebt, toAvailable, ...change })
  if (toAvailable > 0) {
    const name = `${bare(lotId)}_r${transaction.now}_${clawedBack}`
    transaction.expireReturned([{ lotId, amount: toAvailable }], name, lifetime, transaction.now)
  }
  return true
}
