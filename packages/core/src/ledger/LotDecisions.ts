/** Decisions on lots: credits are granted, a payment is clawed back, a clawback is reversed. */

import type { Decision } from "@millrace/event-sourcing"
import { HashMap, Result } from "effect"
import * as Credits from "../Credits.ts"
import { bare } from "../Ids.ts"
import type { Timestamp } from "../Timestamp.ts"
import { type Account, get } from "./Account.ts"
import type { AccountEvent } from "./AccountEvent.ts"
import * as Lots from "./Lots.ts"
import { type AccountClosed, type AccountNotFound, BalanceTooLarge, LotNotFound, LotNotPaid } from "./Refusals.ts"
import { NOTHING, unusable } from "./StatusDecisions.ts"
import { ADJUSTMENT_LIFETIME, Transaction } from "./Transaction.ts"

export interface Grant {
  readonly lotId: string
  readonly amount: Credits.Credits
  readonly source: Lots.LotSource
  readonly priority?: number
  readonly expiresAt?: Timestamp | null
  readonly paymentRef?: string | null
}

/** The largest balance, available and held: a hundred million dollars. Sums over many accounts stay exact, too. */
export const MAX_BALANCE = Credits.of(100_000_000_000_000)

/** Grants a lot. Repeating the grant decides nothing: a paid lot is remembered for ever, any other while it has credits left or held. */
export const grant =
  ({ lotId, amount, source, priority = Lots.DEFAULT_PRIORITY[source], expiresAt = null, paymentRef = null }: Grant) =>
  (account: Account, now: Timestamp): Decision<AccountEvent, AccountNotFound | AccountClosed | BalanceTooLarge> => {
    const refusal = unusable(account)
    if (refusal !== undefined) return Result.fail(refusal)
    const transaction = new Transaction(account, now)
    const { lots, paidLots } = transaction.account.purse
    if (amount === 0 || HashMap.has(paidLots, lotId) || Lots.find(lots, lotId) !== undefined) return NOTHING
    if (Lots.left(lots) + Lots.held(lots) + amount > MAX_BALANCE) return Result.fail(new BalanceTooLarge({ limit: MAX_BALANCE }))
    transaction.add({ _tag: "CreditsGranted", lotId, amount, source, priority, expiresAt, paymentRef })
    return transaction.commit()
  }

/** Takes a paid lot back, as after a chargeback: first its available credits, then its held ones once released. The rest is debt. */
export const clawBack =
  (lotId: string, amount?: Credits.Credits) =>
  (account: Account, now: Timestamp): Decision<AccountEvent, LotNotFound | LotNotPaid> => {
    const transaction = new Transaction(account, now)
    const { lots, paidLots } = transaction.account.purse
    const paid = get(paidLots, lotId)
    const lot = Lots.find(lots, lotId)
    if (paid === undefined) return Result.fail(lot === undefined ? new LotNotFound({ lotId }) : new LotNotPaid({ lotId }))
    const taken = Credits.of(Math.min(amount ?? paid.granted, paid.granted - paid.clawedBack))
    if (taken === 0) return NOTHING
    const fromAvailable = Credits.min(taken, lot?.left ?? Credits.zero)
    const unclaimed = lot === undefined ? 0 : lot.held - lot.claimed
    const fromHeld = Credits.of(Math.min(taken - fromAvailable, unclaimed))
    const owed = Credits.of(taken - fromAvailable - fromHeld)
    transaction.add({ _tag: "CreditsClawedBack", lotId, paymentRef: paid.paymentRef, amount: taken, fromAvailable, fromHeld, debt: owed })
    return transaction.commit()
  }

/**
 * Reverses clawbacks of a lot: first the claim on held credits, then the debt; the rest returns as credits. If the lot has expired, these
 * become a new lot with a lifetime of `adjustmentLifetime` milliseconds.
 */
export const reverseClawback =
  (lotId: string, amount?: Credits.Credits, adjustmentLifetime: number = ADJUSTMENT_LIFETIME) =>
  (account: Account, now: Timestamp): Decision<AccountEvent, LotNotFound> => {
    const transaction = new Transaction(account, now)
    const { debts, lots, paidLots } = transaction.account.purse
    const paid = get(paidLots, lotId)
    if (paid === undefined) return Result.fail(new LotNotFound({ lotId }))
    const back = Credits.of(Math.min(amount ?? paid.clawedBack, paid.clawedBack))
    if (back === 0) return NOTHING
    const toHeld = Credits.min(back, Lots.find(lots, lotId)?.claimed ?? Credits.zero)
    const toDebt = Credits.of(Math.min(back - toHeld, Lots.amountOf(debts, lotId)))
    const toAvailable = Credits.of(back - toHeld - toDebt)
    transaction.add({ _tag: "ClawbackReversed", lotId, paymentRef: paid.paymentRef, amount: back, toHeld, toDebt, toAvailable })
    if (toAvailable > 0) {
      const name = `${bare(lotId)}_r${now}_${paid.clawedBack}`
      transaction.expireReturned([{ lotId, amount: toAvailable }], name, adjustmentLifetime, now)
    }
    return transaction.commit()
  }
