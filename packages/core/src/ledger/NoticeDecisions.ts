/** Decisions on what is told of an account. */

import type * as Credits from "../Credits.ts"
import * as Lots from "./Lots.ts"
import { unusable } from "./StatusDecisions.ts"
import { deciding, NOTHING } from "./Transaction.ts"

/**
 * Tells that a lot will expire, if it has available credits and this was not told before, and writes what is due. So for a lot that has
 * expired it writes the expiry.
 */
export const announceExpiry = (lotId: string) =>
  deciding((transaction) => {
    const lot = Lots.find(transaction.account.purse.lots, lotId)
    if (lot === undefined || lot.left === 0 || lot.expiresAt === null || lot.expiresAt <= transaction.now || lot.announced) return undefined
    transaction.add({ _tag: "LotExpiryAnnounced", lotId, amount: lot.left, expiresAt: lot.expiresAt })
    return undefined
  })

/**
 * Sets the threshold of the balance, in thousandths; null for none. If the balance is below it now, that is told at once. Setting the same
 * threshold again decides nothing.
 */
export const setBalanceThreshold = (threshold: Credits.Credits | null) =>
  deciding((transaction, account) => {
    const refusal = unusable(account)
    if (refusal !== undefined) return refusal
    if (account.lowBalance.threshold === threshold) return NOTHING
    transaction.setThreshold(threshold)
    return undefined
  })
