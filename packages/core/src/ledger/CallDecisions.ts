/** Decisions on calls: credits are reserved (held), then settled (charged) or released; a charge may be refunded later. */

import * as Credits from "../Credits.ts"
import { bare } from "../Ids.ts"
import type { Timestamp } from "../Timestamp.ts"
import { type Account, debt, get, type Hold, hold, isOnTrial, type Outcome, outcome, trialOutcome } from "./Account.ts"
import type { EventOf, RefundReason } from "./AccountEvent.ts"
import * as Lots from "./Lots.ts"
import * as Memory from "./Memory.ts"
import * as Refusals from "./Refusals.ts"
import { unusable } from "./StatusDecisions.ts"
import { ADJUSTMENT_LIFETIME, deciding, NOTHING, renewal, type Transaction } from "./Transaction.ts"
import { isSlot, releaseSlot, slotFor, useSlot } from "./TrialDecisions.ts"

/** The command that holds a call's price. A hold ends at its expiry, through recovery, or with its job. */
export type Reserve = ReserveCall & (CallDeadline | JobDeadline)

interface ReserveCall extends Pick<EventOf<"CreditReserved">, "reservationId" | "requestId" | "operation" | "quantity" | "priceVersion"> {
  readonly unitPrice: Credits.Credits
  /** The lifetime of credits that are returned to an expired lot, milliseconds; seven days by default. */
  readonly adjustmentLifetime?: number
  readonly key?: Memory.Key
  /** While the account is on trial, the call holds a slot of the trial in place of credits. */
  readonly trial?: boolean
}

interface CallDeadline {
  /** Milliseconds until the hold expires. If `recoverable`, recovery ends it then; otherwise it is released. */
  readonly lifetime: number
  readonly recoverable?: boolean
  readonly job?: never
}

interface JobDeadline {
  /** Milliseconds within which the job must be accepted. After that, the job's end ends the hold. */
  readonly job: { readonly jobId: string; readonly acceptWithin: number }
  readonly lifetime?: never
  readonly recoverable?: never
}

/** Why a reservation is refused. */
export type ReserveRefusal = NonNullable<ReturnType<typeof holdFor>> | Refusals.AlreadyEnded

/** Holds quantity × unit price, or a slot of the trial. Repeating the reservation decides nothing. */
export const reserve = (call: Reserve) =>
  deciding((transaction) => {
    const { reservationId } = call
    const { account } = transaction
    if (hold(account, reservationId) !== undefined || isSlot(account, reservationId)) return NOTHING
    const past = outcome(account, reservationId)?._tag ?? trialOutcome(account, reservationId)
    return past === undefined ? holdFor(transaction, call) : alreadyMade(reservationId, past)
  })

export interface Settle {
  readonly reservationId: string
  /** Units done, by default all. The credits of the others are released. */
  readonly quantity?: number
  readonly replyHash: string
}

/** Charges the units done at the price of the hold, and releases the rest; or uses a slot of the trial. Settling again decides nothing. */
export const settle = ({ reservationId, quantity, replyHash }: Settle) =>
  deciding((transaction, account) => {
    if (isSlot(account, reservationId)) return useSlot(transaction, reservationId, replyHash)
    const open = hold(transaction.account, reservationId)
    const known = open ?? hold(account, reservationId)
    if (known === undefined) return alreadyEnded(account, reservationId, "succeeded")
    const excess = excessOf(reservationId, known, quantity)
    if (excess !== undefined) return excess
    if (open === undefined) return new Refusals.HoldExpired({ reservationId })
    transaction.capture(reservationId, open, replyHash, quantity)
    return undefined
  })

/**
 * Charges a call whose hold was released as abandoned before it could be settled. A new reservation, which names the old one, is held and
 * captured at once. Only for hosts with `late: "charge"`.
 */
export const settleLate = (call: Reserve, { quantity, replyHash, reservationId: lateOf }: Settle) =>
  deciding((transaction) => {
    const { reservationId } = call
    const { account } = transaction
    if (hold(account, reservationId) !== undefined) return new Refusals.InFlight({ reservationId })
    const own = outcome(account, reservationId)
    if (own !== undefined) return alreadyMade(reservationId, own._tag)
    const past = outcome(account, lateOf)
    if (past === undefined) return new Refusals.ReservationNotFound({ reservationId: lateOf })
    if (past._tag !== "refunded" || past.reason !== "abandoned")
      return new Refusals.AlreadyEnded({ reservationId: lateOf, outcome: past._tag })
    const refusal = holdFor(transaction, call, lateOf)
    if (refusal !== undefined) return refusal
    const held = hold(transaction.account, reservationId)
    if (held === undefined) throw new Error("A reservation just made is open")
    const excess = excessOf(reservationId, held, quantity)
    if (excess === undefined) transaction.capture(reservationId, held, replyHash, quantity)
    return excess
  })

/** Releases a hold: returns all of it to its lots; or releases a slot of the trial. Releasing again decides nothing. */
export const release = (reservationId: string, reason: Exclude<RefundReason, "goodwill">) =>
  deciding((transaction, account) => {
    if (isSlot(account, reservationId)) return releaseSlot(transaction, reservationId, reason)
    if (hold(account, reservationId) === undefined) return alreadyEnded(account, reservationId, "refunded")
    const open = hold(transaction.account, reservationId)
    // Undefined: it was due, and was released as abandoned
    if (open !== undefined) transaction.release(reservationId, open, reason)
    return undefined
  })

/** A charge, read from the events, with the terms of its lots. The account's state does not keep settled charges. */
export interface Charge {
  readonly reservationId: string
  readonly charged: Credits.Credits
  readonly lots: Lots.LotParts
  readonly terms: ReadonlyArray<Lots.LotTerms & { readonly lotId: string; readonly grantedAt: Timestamp }>
}

/**
 * Refunds the part of a charge that was not refunded yet, or `amount` of it. The credits return to the same lots, last charged first. A
 * refund to a lot with debt reduces that debt first. The part of an expired lot becomes a new lot with a lifetime of `adjustmentLifetime`
 * milliseconds.
 */
export const refund = (charge: Charge, reason: RefundReason, amount?: Credits.Credits, adjustmentLifetime: number = ADJUSTMENT_LIFETIME) =>
  deciding((transaction, account) => {
    const { reservationId } = charge
    const before = get(account.purse.refunds, reservationId) ?? Credits.zero
    const refundable = Credits.of(charge.charged - before)
    const wanted = amount ?? refundable
    if (wanted > refundable) return new Refusals.RefundExceedsCharge({ reservationId, refundable })
    if (wanted === 0) return NOTHING
    const { debts, lots: live } = transaction.account.purse
    const [, open] = Lots.split(charge.lots.toReversed(), before)
    const [lots] = Lots.split(open, wanted)
    const claimed = lots
      .map(({ lotId, amount }) => ({ lotId, amount: Credits.min(amount, Lots.amountOf(debts, lotId)) }))
      .filter((part) => part.amount > 0)
    const returned = Lots.without(lots, claimed)
    const usedUp = returned.filter(({ lotId }) => Lots.find(live, lotId) === undefined).map(({ lotId }) => lotId)
    const revived = charge.terms.filter(({ lotId }) => usedUp.includes(lotId))
    transaction.add({
      _tag: "Refunded",
      reservationId,
      stage: "settled",
      amount: wanted,
      reason,
      lots,
      ...(claimed.length === 0 ? {} : { claimed }),
      ...(revived.length === 0 ? {} : { revived })
    })
    transaction.expireReturned(returned, `${bare(reservationId)}_g${before}`, renewal(reason, adjustmentLifetime), transaction.now)
    return undefined
  })

// parts of these decisions

/** Answers a command on a reservation that is not open: decides nothing if it ended as wanted, else refuses. */
const alreadyEnded = (account: Account, reservationId: string, wanted: Outcome["_tag"]) => {
  const ended = outcome(account, reservationId)?._tag ?? trialOutcome(account, reservationId)
  if (ended === undefined) return new Refusals.ReservationNotFound({ reservationId })
  return ended === wanted ? NOTHING : new Refusals.AlreadyEnded({ reservationId, outcome: ended })
}

/** Answers a repeated reservation: decides nothing after its success, refuses after its refund. */
const alreadyMade = (reservationId: string, outcome: Outcome["_tag"]) =>
  outcome === "succeeded" ? NOTHING : new Refusals.AlreadyEnded({ reservationId, outcome })

/** Adds the hold of a call, or the slot of a call on trial, or returns why it is refused. */
const holdFor = (transaction: Transaction, call: Reserve, lateOf?: string) => {
  const { account, now } = transaction
  const refusal = unusable(account) ?? unpayable(account) ?? (call.key && refusedKey(account, call.key, now))
  if (refusal !== undefined) return refusal
  if (call.trial === true && isOnTrial(account)) return slotFor(transaction, call)
  const amount = Credits.of(call.quantity * call.unitPrice)
  const lots = Lots.allocate(account.purse.lots, amount, now)
  if (lots === undefined) return insufficient(account, amount, call.unitPrice, now)
  transaction.add(reservation(call, amount, lots, now, lateOf))
  return undefined
}

const unpayable = (account: Account) => {
  if (account.status === "suspended") return new Refusals.AccountSuspended()
  const owed = debt(account)
  return owed > 0 ? new Refusals.AccountInDebt({ debt: owed }) : undefined
}

const refusedKey = (account: Account, key: Memory.Key, now: Timestamp) => {
  const used = Memory.keyState(account.memory, key, now)
  if (used === undefined) return undefined
  if (used._tag === "stale") return new Refusals.LookupStale()
  const { reservationId } = used
  const fingerprint =
    used._tag === "running" ? (hold(account, reservationId) ?? get(account.trial.open, reservationId))?.fingerprint : used.fingerprint
  if (fingerprint !== key.fingerprint) return new Refusals.KeyReused()
  return used._tag === "running" ? new Refusals.InFlight({ reservationId }) : new Refusals.AlreadySucceeded({ reservationId })
}

const insufficient = (account: Account, required: Credits.Credits, unitPrice: Credits.Credits, now: Timestamp) => {
  const available = Lots.available(account.purse.lots, now)
  return new Refusals.InsufficientCredits({
    required,
    available,
    shortfall: Credits.of(required - available),
    affordableUnits: Math.floor(available / unitPrice)
  })
}

const reservation = (
  call: Reserve,
  amount: Credits.Credits,
  lots: Lots.LotParts,
  now: Timestamp,
  lateOf?: string
): EventOf<"CreditReserved"> => ({
  _tag: "CreditReserved",
  reservationId: call.reservationId,
  requestId: call.requestId,
  operation: call.operation,
  quantity: call.quantity,
  priceVersion: call.priceVersion,
  amount,
  lots,
  ...(call.lifetime !== undefined && { expiresAt: now + call.lifetime }),
  ...(call.recoverable === true && { recoverable: true as const }),
  ...(call.job !== undefined && { jobId: call.job.jobId, acceptBy: now + call.job.acceptWithin }),
  ...(call.adjustmentLifetime !== undefined &&
    call.adjustmentLifetime !== ADJUSTMENT_LIFETIME && { adjustmentLifetime: call.adjustmentLifetime }),
  ...(call.key !== undefined && { keyHash: call.key.hash, fingerprint: call.key.fingerprint }),
  ...(lateOf !== undefined && { lateOf })
})

/** Refuses a number of units done that is not whole, or is more than held. */
const excessOf = (reservationId: string, { quantity: held }: Hold, done: number = held): Refusals.ChargeExceedsHold | undefined =>
  Number.isInteger(done) && done >= 0 && done <= held ? undefined : new Refusals.ChargeExceedsHold({ reservationId, held, done })
