/** Decisions on the status of an account: open, verify, suspend, reinstate, close. */

import { HashMap } from "effect"
import type * as Credits from "../Credits.ts"
import type { Account } from "./Account.ts"
import type { EventOf } from "./AccountEvent.ts"
import * as Lots from "./Lots.ts"
import { AccountClosed, AccountNotFound } from "./Refusals.ts"
import { deciding, NOTHING } from "./Transaction.ts"

/** Why an account accepts no grant or hold: it was never opened, or is closed. */
export const unusable = (account: Account): AccountNotFound | AccountClosed | undefined =>
  account.status === "absent" ? new AccountNotFound() : account.status === "closed" ? new AccountClosed() : undefined

/** Writes what is due, and nothing else. */
export const applyDue = deciding(() => undefined)

/** Opens the account. Opening again decides nothing. */
export const open = (event: Omit<EventOf<"AccountOpened">, "_tag">) =>
  deciding((transaction, { status }) => {
    if (status !== "absent") return NOTHING
    transaction.add({ _tag: "AccountOpened", ...event })
    return undefined
  })

/** Verifies the account, and grants it its sign-up credits the first time. */
export const verify = (signUp: Credits.Credits, lotId: string) =>
  deciding((transaction, account) => {
    const refusal = unusable(account)
    if (refusal !== undefined) return refusal
    if (account.verified) return NOTHING
    transaction.add({ _tag: "AccountVerified" })
    const terms = { source: "signup", priority: Lots.DEFAULT_PRIORITY.signup, expiresAt: null } as const
    if (signUp > 0) transaction.add({ _tag: "CreditsGranted", lotId, amount: signUp, ...terms, paymentRef: null })
    return undefined
  })

const changeStatus = (_tag: "AccountSuspended" | "AccountReinstated", already: ReadonlyArray<Account["status"]>) =>
  deciding((transaction, account) => {
    if (already.includes(account.status)) return NOTHING
    const refusal = unusable(account)
    if (refusal === undefined) transaction.add({ _tag })
    return refusal
  })

/** No priced call runs until the account is reinstated; its credits stay. */
export const suspend = changeStatus("AccountSuspended", ["suspended"])
export const reinstate = changeStatus("AccountReinstated", ["opened", "verified"])
/** Closes the account for ever, and stops its recurring grants. Open holds still end as usual, and its credits stay on the books. */
export const close = deciding((transaction, account) => {
  if (account.status === "closed") return NOTHING
  const refusal = unusable(account)
  if (refusal !== undefined) return refusal
  for (const { grantId } of transaction.account.recurring) transaction.add({ _tag: "RecurringGrantStopped", grantId })
  transaction.add({ _tag: "AccountClosed" })
  return undefined
})

/**
 * Closes an account that was never verified and has no credits, lots or debts: that of a sign-up that nobody confirmed. Decides nothing for
 * any other account.
 */
export const abandon = deciding((transaction, account) => {
  const { debts, lots, paidLots } = account.purse
  const isEmpty = lots.length === 0 && debts.length === 0 && HashMap.isEmpty(paidLots)
  if (account.status !== "opened" || account.verified || !isEmpty) return NOTHING
  transaction.add({ _tag: "AccountClosed" })
  return undefined
})
