/** Decisions on calls: credits are reserved (held), then settled (charged) or released; a charge may be refunded later. */

import type { Decision } from "@millrace/event-sourcing"
import { Result } from "effect"
import * as Credits from "../Credits.ts"
import { bare } from "../Ids.ts"
import type { Timestamp } from "../Timestamp.ts"
import { type Account, debt, get, type Hold, hold, type Outcome, outcome } from "./Account.ts"
import type { AccountEvent, EventOf, RefundReason } from "./AccountEvent.ts"
import * as Lots from "./Lots.ts"
import * as Memory from "./Memory.ts"
import {
  type AccountClosed,
  AccountInDebt,
  type AccountNotFound,
  AccountSuspended,
  AlreadyEnded,
  AlreadySucceeded,
  ChargeExceedsHold,
  HoldExpired,
  InFlight,
  InsufficientCredits,
  KeyReused,
  LookupStale,
  RefundExceedsCharge,
  ReservationNotFound
} from "./Refusals.ts"
import { NOTHING, unusable } from "./StatusDecisions.ts"
import { ADJUSTMENT_LIFETIME, renewal, Transaction } from "./Transaction.ts"

/** The command that holds a call's price. A hold ends at its expiry, through recovery, or with its job. */
export type Reserve = ReserveCall & (CallDeadline | JobDeadline)

interface ReserveCall {
  readonly reservationId: string
  readonly requestId: string
  readonly operation: string
  readonly quantity: number
  readonly priceVersion: number
  readonly unitPrice: Credits.Credits
  /** The lifetime of credits that are returned to an expired lot, milliseconds; seven days by default. */
  readonly adjustmentLifetime?: number
  readonly key?: Memory.Key
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

/** Why nothing can be held for a call. */
type HoldRefusal =
  | AccountNotFound
  | AccountClosed
  | AccountSuspended
  | AccountInDebt
  | InsufficientCredits
  | InFlight
  | KeyReused
  | AlreadySucceeded
  | LookupStale

export type ReserveRefusal = HoldRefusal | AlreadyEnded

/** Holds quantity × unit price. Repeating the reservation decides nothing. */
export const reserve =
  (call: Reserve) =>
  (account: Account, now: Timestamp): Decision<AccountEvent, ReserveRefusal> => {
    const { reservationId } = call
    const transaction = new Transaction(account, now)
    if (hold(transaction.account, reservationId) !== undefined) return NOTHING
    const past = outcome(transaction.account, reservationId)
    if (past !== undefined) return alreadyMade(reservationId, past)
    const refusal = holdFor(transaction, call)
    return refusal === undefined ? transaction.commit() : Result.fail(refusal)
  }

export interface Settle {
  readonly reservationId: string
  /** Units done, by default all. The credits of the others are released. */
  readonly quantity?: number
  readonly replyHash: string
}

/** Charges the units done at the price of the hold, and releases the rest. Settling again decides nothing. */
export const settle =
  ({ reservationId, quantity, replyHash }: Settle) =>
  (account: Account, now: Timestamp): Decision<AccountEvent, ReservationNotFound | AlreadyEnded | ChargeExceedsHold | HoldExpired> => {
    const known = hold(account, reservationId)
    if (known === undefined) return alreadyEnded(reservationId, outcome(account, reservationId)?._tag, "succeeded")
    const charged = chargeFor(reservationId, known, quantity)
    if (Result.isFailure(charged)) return Result.fail(charged.failure)
    const transaction = new Transaction(account, now)
    const open = hold(transaction.account, reservationId)
    if (open === undefined) return Result.fail(new HoldExpired({ reservationId }))
    transaction.capture(reservationId, open, charged.success, quantity ?? open.quantity, replyHash)
    return transaction.commit()
  }

/**
 * Charges a call whose hold was released as abandoned before it could be settled. A new reservation, which names the old one, is held and
 * captured at once. Only for hosts with `late: "charge"`.
 */
export const settleLate =
  (call: Reserve, { quantity, replyHash, reservationId: lateOf }: Settle) =>
  (account: Account, now: Timestamp): Decision<AccountEvent, ReserveRefusal | ReservationNotFound | ChargeExceedsHold> => {
    const { reservationId } = call
    const transaction = new Transaction(account, now)
    if (hold(transaction.account, reservationId) !== undefined) return Result.fail(new InFlight({ reservationId }))
    const own = outcome(transaction.account, reservationId)
    if (own !== undefined) return alreadyMade(reservationId, own)
    const past = outcome(transaction.account, lateOf)
    if (past === undefined) return Result.fail(new ReservationNotFound({ reservationId: lateOf }))
    if (past._tag !== "refunded" || past.reason !== "abandoned")
      return Result.fail(new AlreadyEnded({ reservationId: lateOf, outcome: past._tag }))
    const refusal = holdFor(transaction, call, lateOf)
    if (refusal !== undefined) return Result.fail(refusal)
    const held = hold(transaction.account, reservationId)
    if (held === undefined) throw new Error("A reservation just made is open")
    const charged = chargeFor(reservationId, held, quantity)
    if (Result.isFailure(charged)) return Result.fail(charged.failure)
    transaction.capture(reservationId, held, charged.success, quantity ?? held.quantity, replyHash)
    return transaction.commit()
  }

/** Releases a hold: returns all of it to its lots. Releasing again decides nothing. */
export const release =
  (reservationId: string, reason: Exclude<RefundReason, "goodwill">) =>
  (account: Account, now: Timestamp): Decision<AccountEvent, ReservationNotFound | AlreadyEnded> => {
    if (hold(account, reservationId) === undefined) return alreadyEnded(reservationId, outcome(account, reservationId)?._tag, "refunded")
    const transaction = new Transaction(account, now)
    const open = hold(transaction.account, reservationId)
    // Undefined: it was due, and was released as abandoned
    if (open !== undefined) transaction.release(reservationId, open, reason)
    return transaction.commit()
  }

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
export const refund =
  (charge: Charge, reason: RefundReason, amount?: Credits.Credits, adjustmentLifetime: number = ADJUSTMENT_LIFETIME) =>
  (account: Account, now: Timestamp): Decision<AccountEvent, RefundExceedsCharge> => {
    const { reservationId } = charge
    const before = get(account.purse.refunds, reservationId) ?? Credits.zero
    const refundable = Credits.of(charge.charged - before)
    const wanted = amount ?? refundable
    if (wanted > refundable) return Result.fail(new RefundExceedsCharge({ reservationId, refundable }))
    if (wanted === 0) return NOTHING
    const transaction = new Transaction(account, now)
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
    transaction.expireReturned(returned, `${bare(reservationId)}_g${before}`, renewal(reason, adjustmentLifetime), now)
    return transaction.commit()
  }

// parts of these decisions

/** Answers a command on an ended reservation: decides nothing if it ended as wanted, else refuses. */
const alreadyEnded = (
  reservationId: string,
  ended: Outcome["_tag"] | undefined,
  wanted: Outcome["_tag"]
): Result.Result<ReadonlyArray<never>, ReservationNotFound | AlreadyEnded> => {
  if (ended === undefined) return Result.fail(new ReservationNotFound({ reservationId }))
  return ended === wanted ? NOTHING : Result.fail(new AlreadyEnded({ reservationId, outcome: ended }))
}

/** Answers a repeated reservation: decides nothing after its success, refuses after its refund. */
const alreadyMade = (reservationId: string, { _tag }: Outcome): Result.Result<ReadonlyArray<never>, AlreadyEnded> =>
  _tag === "succeeded" ? NOTHING : Result.fail(new AlreadyEnded({ reservationId, outcome: _tag }))

/** Adds the hold of a call, or returns why it is refused. */
const holdFor = (transaction: Transaction, call: Reserve, lateOf?: string): HoldRefusal | undefined => {
  const { account, now } = transaction
  const refusal = unusable(account) ?? unpayable(account) ?? (call.key && refusedKey(account, call.key, now))
  if (refusal !== undefined) return refusal
  const amount = Credits.of(call.quantity * call.unitPrice)
  const lots = Lots.allocate(account.purse.lots, amount, now)
  if (lots === undefined) return insufficient(account, amount, call.unitPrice, now)
  transaction.add(reservation(call, amount, lots, now, lateOf))
  return undefined
}

const unpayable = (account: Account): AccountSuspended | AccountInDebt | undefined => {
  if (account.status === "suspended") return new AccountSuspended()
  const owed = debt(account)
  return owed > 0 ? new AccountInDebt({ debt: owed }) : undefined
}

const refusedKey = (account: Account, key: Memory.Key, now: Timestamp) => {
  const used = Memory.keyState(account.memory, key, now)
  switch (used?._tag) {
    case undefined:
      return undefined
    case "running": {
      const { reservationId } = used
      return hold(account, reservationId)?.fingerprint === key.fingerprint ? new InFlight({ reservationId }) : new KeyReused()
    }
    case "succeeded":
      return used.fingerprint === key.fingerprint ? new AlreadySucceeded({ reservationId: used.reservationId }) : new KeyReused()
    case "stale":
      return new LookupStale()
  }
}

const insufficient = (account: Account, required: Credits.Credits, unitPrice: Credits.Credits, now: Timestamp) => {
  const available = Lots.available(account.purse.lots, now)
  return new InsufficientCredits({
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
  ...(call.lifetime === undefined ? {} : { expiresAt: now + call.lifetime }),
  ...(call.recoverable === true ? { recoverable: true as const } : {}),
  ...(call.job === undefined ? {} : { jobId: call.job.jobId, acceptBy: now + call.job.acceptWithin }),
  ...(call.adjustmentLifetime === undefined || call.adjustmentLifetime === ADJUSTMENT_LIFETIME
    ? {}
    : { adjustmentLifetime: call.adjustmentLifetime }),
  ...(call.key === undefined ? {} : { keyHash: call.key.hash, fingerprint: call.key.fingerprint }),
  ...(lateOf === undefined ? {} : { lateOf })
})

/** The price of the units done, by default all held units. */
const chargeFor = (reservationId: string, hold: Hold, done: number = hold.quantity): Result.Result<Credits.Credits, ChargeExceedsHold> =>
  Number.isInteger(done) && done >= 0 && done <= hold.quantity
    ? Result.succeed(hold.quantity === 0 ? Credits.zero : Credits.of((hold.amount / hold.quantity) * done))
    : Result.fail(new ChargeExceedsHold({ reservationId, held: hold.quantity, done }))
