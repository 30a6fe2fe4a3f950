/** Decisions on the free trial of an account that is not verified. */

import { HashMap } from "effect"
import { isOnTrial } from "./Account.ts"
import type { EventOf, RefundReason } from "./AccountEvent.ts"
import { get } from "./Get.ts"
import type { Key } from "./Memory.ts"
import { AccountSuspended, AlreadyEnded, ReservationNotFound, TrialExcludesJobs, TrialUsedUp } from "./Refusals.ts"
import { unusable } from "./StatusDecisions.ts"
import { deciding, NOTHING, type Transaction } from "./Transaction.ts"
import * as Trial from "./Trial.ts"

type Asked = Pick<EventOf<"TrialReserved">, "reservationId" | "requestId" | "operation">

/** Reserves one of ten slots. Refused once the account was verified or granted credits, from when its calls cost credits. Repeating the reservation decides nothing. */
export const reserveTrial = ({ lifetime, ...call }: Asked & { readonly lifetime: number }) =>
  deciding((transaction, account) => {
    const { reservationId } = call
    // Credits may have come by now, from a recurring grant
    const { trial } = transaction.account
    if (HashMap.has(trial.open, reservationId)) return NOTHING
    const past = Trial.outcome(trial, reservationId)
    if (past !== undefined) return past === "succeeded" ? NOTHING : new AlreadyEnded({ reservationId, outcome: past })
    const refusal = unusable(account) ?? (account.status === "suspended" ? new AccountSuspended() : undefined)
    if (refusal !== undefined) return refusal
    if (!isOnTrial(transaction.account) || Trial.isUsedUp(trial)) return new TrialUsedUp({ slots: Trial.TRIAL_SLOTS })
    transaction.add({ _tag: "TrialReserved", ...call, expiresAt: transaction.now + lifetime })
    return undefined
  })

const endTrial = (_tag: "TrialUsed" | "TrialReleased", wanted: "succeeded" | "refunded") => (reservationId: string) =>
  deciding((transaction) => {
    const { trial } = transaction.account
    if (!HashMap.has(trial.open, reservationId)) {
      const past = Trial.outcome(trial, reservationId)
      if (past === undefined) return new ReservationNotFound({ reservationId })
      return past === wanted ? NOTHING : new AlreadyEnded({ reservationId, outcome: past })
    }
    transaction.add({ _tag, reservationId })
    return undefined
  })

/** Uses a slot up. Using it again decides nothing. */
export const useTrial = endTrial("TrialUsed", "succeeded")
/** Releases a slot. Releasing it again decides nothing. */
export const releaseTrial = endTrial("TrialReleased", "refunded")

// slots in place of holds: parts of the decisions on calls

/** A call of an account on trial. `lifetime`: milliseconds until the slot expires; undefined for a job. */
interface Tried extends Asked {
  readonly lifetime?: number | undefined
  readonly key?: Key
}

/** Adds the slot of a call, or returns why it is refused. A job takes no slot: it may do thousands of units, and runs longer. */
export const slotFor = (transaction: Transaction, { key, lifetime, operation, requestId, reservationId }: Tried) => {
  if (lifetime === undefined) return new TrialExcludesJobs()
  if (Trial.isUsedUp(transaction.account.trial)) return new TrialUsedUp({ slots: Trial.TRIAL_SLOTS })
  const keyed = key === undefined ? {} : { keyHash: key.hash, fingerprint: key.fingerprint }
  transaction.add({ _tag: "TrialReserved", reservationId, requestId, operation, expiresAt: transaction.now + lifetime, ...keyed })
  return undefined
}

/** Whether a reservation was an open slot before this decision. */
export const isSlot = ({ trial }: { readonly trial: Trial.Trial }, reservationId: string): boolean =>
  get(trial.open, reservationId) !== undefined

/** Uses the slot of a call, unless it has expired. */
export const useSlot = (transaction: Transaction, reservationId: string, replyHash: string) => {
  if (!isSlot(transaction.account, reservationId)) return new AlreadyEnded({ reservationId, outcome: "refunded" })
  transaction.add({ _tag: "TrialUsed", reservationId, replyHash })
  return undefined
}

/** Releases the slot of a call, unless its expiry has. */
export const releaseSlot = (transaction: Transaction, reservationId: string, reason: RefundReason) => {
  if (isSlot(transaction.account, reservationId)) transaction.add({ _tag: "TrialReleased", reservationId, reason })
  return undefined
}
