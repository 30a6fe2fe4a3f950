/** Decisions on lots: credits are granted, a payment is clawed back, a clawback is reversed. */

import { HashMap } from "effect"
import * as Credits from "../Credits.ts"
import { bare } from "../Ids.ts"
import { get } from "./Account.ts"
import type { EventOf } from "./AccountEvent.ts"
import * as Lots from "./Lots.ts"
import { BalanceTooLarge, LotNotFound, LotNotPaid } from "./Refusals.ts"
import { unusable } from "./StatusDecisions.ts"
import { ADJUSTMENT_LIFETIME, deciding, MAX_BALANCE, NOTHING } from "./Transaction.ts"

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

/** Takes a paid lot back, as after a chargeback: first its available credits, then its held ones once released. The rest is debt. */
export const clawBack = (lotId: string, amount?: Credits.Credits) =>
  deciding((transaction) => {
    const { lots, paidLots } = transaction.account.purse
    const paid = get(paidLots, lotId)
    const lot = Lots.find(lots, lotId)
    if (paid === undefined) return lot === undefined ? new LotNotFound({ lotId }) : new LotNotPaid({ lotId })
    const taken = Credits.of(Math.min(amount ?? paid.granted, paid.granted - paid.clawedBack))
    if (taken === 0) return NOTHING
    const fromAvailable = Credits.min(taken, lot?.left ?? Credits.zero)
    const unclaimed = lot === undefined ? 0 : lot.held - lot.claimed
    const fromHeld = Credits.of(Math.min(taken - fromAvailable, unclaimed))
    const owed = Credits.of(taken - fromAvailable - fromHeld)
    transaction.add({ _tag: "CreditsClawedBack", lotId, paymentRef: paid.paymentRef, amount: taken, fromAvailable, fromHeld, debt: owed })
    return undefined
  })

/**
 * Reverses clawbacks of a lot: first the claim on held credits, then the debt; the rest returns as credits. If the lot has expired, these
 * become a new lot with a lifetime of `adjustmentLifetime` milliseconds.
 */
export const reverseClawback = (lotId: string, amount?: Credits.Credits, adjustmentLifetime: number = ADJUSTMENT_LIFETIME) =>
  deciding((transaction) => {
    const { debts, lots, paidLots } = transaction.account.purse
    const paid = get(paidLots, lotId)
    if (paid === undefined) return new LotNotFound({ lotId })
    const back = Credits.of(Math.min(amount ?? paid.clawedBack, paid.clawedBack))
    if (back === 0) return NOTHING
    const toHeld = Credits.min(back, Lots.find(lots, lotId)?.claimed ?? Credits.zero)
    const toDebt = Credits.of(Math.min(back - toHeld, Lots.amountOf(debts, lotId)))
    const toAvailable = Credits.of(back - toHeld - toDebt)
    transaction.add({ _tag: "ClawbackReversed", lotId, paymentRef: paid.paymentRef, amount: back, toHeld, toDebt, toAvailable })
    if (toAvailable > 0) {
      const name = `${bare(lotId)}_r${transaction.now}_${paid.clawedBack}`
      transaction.expireReturned([{ lotId, amount: toAvailable }], name, adjustmentLifetime, transaction.now)
    }
    return undefined
  })
