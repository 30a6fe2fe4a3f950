/**
 * What may happen to an account next: one pure decision for each command. Each first applies what is due by now, and ends by what
 * follows of itself: credits that came back into expired lots, debt that paid lots can repay.
 */

import type { Decision } from "@millrace/event-sourcing"
import { HashMap, Result } from "effect"
import * as Credits from "../Credits.ts"
import type { Timestamp } from "../Timestamp.ts"
import {
  type Account,
  debt,
  get,
  type Hold,
  KEY_MEMORY,
  keyedOutcome,
  type Outcome,
  outcome,
  TRIAL_SLOTS,
  trialOutcome
} from "./Account.ts"
import type { AccountEvent, EventOf, RefundReason } from "./AccountEvent.ts"
import { ADJUSTMENT_LIFETIME, bare, Draft, renewal } from "./Draft.ts"
import * as Lots from "./Lots.ts"
import {
  AccountClosed,
  AccountInDebt,
  AccountNotFound,
  AccountSuspended,
  AlreadyEnded,
  AlreadySucceeded,
  BalanceTooLarge,
  ChargeExceedsHold,
  HoldExpired,
  InFlight,
  InsufficientCredits,
  KeyReused,
  LookupStale,
  LotNotFound,
  LotNotPaid,
  RefundExceedsCharge,
  ReservationNotFound,
  TrialUsedUp
} from "./Refusals.ts"

export { TRIAL_SLOTS } from "./Account.ts"
export { ADJUSTMENT_LIFETIME, asOf, expireDue } from "./Draft.ts"
export * from "./Refusals.ts"

/** Writes what is due, and nothing else. */
export const applyDue = (account: Account, now: Timestamp): Decision<AccountEvent> => new Draft(account, now).done()

const NOTHING: Result.Result<ReadonlyArray<never>> = Result.succeed([])

/** Reasons to fold nothing more onto an account, whatever is asked. */
const usable = (account: Account): AccountNotFound | AccountClosed | undefined =>
  account.status === "absent" ? new AccountNotFound() : account.status === "closed" ? new AccountClosed() : undefined

// opening and closing

export const open =
  (event: Omit<EventOf<"AccountOpened">, "_tag">) =>
  (account: Account): Decision<AccountEvent> =>
    account.status === "absent" ? Result.succeed([{ _tag: "AccountOpened", ...event }]) : NOTHING

/** Verified for the first time, the account gets its sign-up credits; again: nothing. */
export const verify =
  (signUp: Credits.Credits, lotId: string) =>
  (account: Account, now: Timestamp): Decision<AccountEvent, AccountNotFound | AccountClosed> => {
    const refusal = usable(account)
    if (refusal !== undefined) return Result.fail(refusal)
    if (account.verified) return NOTHING
    const draft = new Draft(account, now)
    draft.add({ _tag: "AccountVerified" })
    if (signUp > 0) {
      draft.add({
        _tag: "CreditsGranted",
        lotId,
        amount: signUp,
        source: "signup",
        priority: Lots.DEFAULT_PRIORITY.signup,
        expiresAt: null,
        paymentRef: null
      })
    }
    return draft.done()
  }

const changeStatus =
  (event: EventOf<"AccountSuspended"> | EventOf<"AccountReinstated"> | EventOf<"AccountClosed">, already: (account: Account) => boolean) =>
  (account: Account, now: Timestamp): Decision<AccountEvent, AccountNotFound | AccountClosed> => {
    if (already(account)) return NOTHING
    const refusal = usable(account)
    if (refusal !== undefined) return Result.fail(refusal)
    const draft = new Draft(account, now)
    draft.add(event)
    return draft.done()
  }

/** No priced call runs until it is reinstated; credits stay. */
export const suspend = changeStatus({ _tag: "AccountSuspended" }, (account) => account.status === "suspended")
export const reinstate = changeStatus(
  { _tag: "AccountReinstated" },
  (account) => account.status === "opened" || account.status === "verified"
)
/** For ever. What is held still ends as it would; what is left stays on the books. */
export const close = changeStatus({ _tag: "AccountClosed" }, (account) => account.status === "closed")

// credits

export interface Grant {
  readonly lotId: string
  readonly amount: Credits.Credits
  readonly source: Lots.LotSource
  readonly priority?: number
  readonly expiresAt?: Timestamp | null
  readonly paymentRef?: string | null
}

/** The most that an account may have, free and held: a hundred million dollars, so that sums over accounts stay exact, too. */
export const MAX_BALANCE = Credits.of(100_000_000_000_000)

/** Adds a lot; the same lot again changes nothing: a paid one is remembered for ever, others while anything of them is left. */
export const grant =
  ({ lotId, amount, source, priority = Lots.DEFAULT_PRIORITY[source], expiresAt = null, paymentRef = null }: Grant) =>
  (account: Account, now: Timestamp): Decision<AccountEvent, AccountNotFound | AccountClosed | BalanceTooLarge> => {
    const refusal = usable(account)
    if (refusal !== undefined) return Result.fail(refusal)
    const draft = new Draft(account, now)
    if (amount === 0 || HashMap.has(account.paidLots, lotId) || Lots.find(draft.account.lots, lotId) !== undefined) return NOTHING
    const { lots } = draft.account
    if (Lots.left(lots) + Lots.held(lots) + amount > MAX_BALANCE) return Result.fail(new BalanceTooLarge({ limit: MAX_BALANCE }))
    draft.add({ _tag: "CreditsGranted", lotId, amount, source, priority, expiresAt, paymentRef })
    return draft.done()
  }

/** Takes a paid lot back, as after a chargeback: what is free of it, what is held as it is released, the rest as debt. */
export const clawBack =
  (lotId: string, amount?: Credits.Credits) =>
  (account: Account, now: Timestamp): Decision<AccountEvent, LotNotFound | LotNotPaid> => {
    const draft = new Draft(account, now)
    const paid = get(draft.account.paidLots, lotId)
    const lot = Lots.find(draft.account.lots, lotId)
    if (paid === undefined) return Result.fail(lot === undefined ? new LotNotFound({ lotId }) : new LotNotPaid({ lotId }))
    const taken = Credits.of(Math.min(amount ?? paid.granted, paid.granted - paid.clawedBack))
    if (taken === 0) return NOTHING
    const fromAvailable = Credits.min(taken, lot?.left ?? Credits.zero)
    const unclaimed = lot === undefined ? 0 : lot.held - lot.claimed
    const fromHeld = Credits.of(Math.min(taken - fromAvailable, unclaimed))
    const owed = Credits.of(taken - fromAvailable - fromHeld)
    draft.add({ _tag: "CreditsClawedBack", lotId, paymentRef: paid.paymentRef, amount: taken, fromAvailable, fromHeld, debt: owed })
    return draft.done()
  }

/**
 * Undoes clawbacks of a lot: what it still claims and what is still owed for it first, the rest comes back as credits, for
 * `adjustmentLifetime` milliseconds where the lot has expired.
 */
export const reverseClawback =
  (lotId: string, amount?: Credits.Credits, adjustmentLifetime: number = ADJUSTMENT_LIFETIME) =>
  (account: Account, now: Timestamp): Decision<AccountEvent, LotNotFound> => {
    const draft = new Draft(account, now)
    const paid = get(draft.account.paidLots, lotId)
    if (paid === undefined) return Result.fail(new LotNotFound({ lotId }))
    const back = Credits.of(Math.min(amount ?? paid.clawedBack, paid.clawedBack))
    if (back === 0) return NOTHING
    const toHeld = Credits.min(back, Lots.find(draft.account.lots, lotId)?.claimed ?? Credits.zero)
    const toDebt = Credits.of(Math.min(back - toHeld, Lots.amountOf(draft.account.debts, lotId)))
    const toAvailable = Credits.of(back - toHeld - toDebt)
    draft.add({ _tag: "ClawbackReversed", lotId, paymentRef: paid.paymentRef, amount: back, toHeld, toDebt, toAvailable })
    if (toAvailable > 0) {
      const name = `${bare(lotId)}_r${now}_${paid.clawedBack}`
      draft.expireReturned([{ lotId, amount: toAvailable }], name, adjustmentLifetime, now)
    }
    return draft.done()
  }

// calls

/** What a call wants to hold. No hold without an end: by itself, through recovery, or with its job. */
export type Reserve = ReserveCall & (CallDeadline | JobDeadline)

interface ReserveCall {
  readonly reservationId: string
  readonly requestId: string
  readonly operation: string
  readonly quantity: number
  readonly priceVersion: number
  readonly unitPrice: Credits.Credits
  /** How long credits live that come back into an expired lot through our failure, milliseconds; seven days by default. */
  readonly adjustmentLifetime?: number
  /** `lookedUpAt`: when the reply store was asked for this key. */
  readonly key?: { readonly hash: string; readonly fingerprint: string; readonly lookedUpAt: Timestamp }
}

interface CallDeadline {
  /** When the hold ends, as milliseconds from now: by itself, or if `recoverable` by what recovery finds out. */
  readonly lifetime: number
  readonly recoverable?: boolean
  readonly job?: never
}

interface JobDeadline {
  /** Milliseconds within which the job must have been accepted; then its own end is the hold's. */
  readonly job: { readonly jobId: string; readonly acceptWithin: number }
  readonly lifetime?: never
  readonly recoverable?: never
}

export type ReserveRefusal =
  | AccountNotFound
  | AccountClosed
  | AccountSuspended
  | AccountInDebt
  | InsufficientCredits
  | AlreadyEnded
  | InFlight
  | KeyReused
  | AlreadySucceeded
  | LookupStale

/** Holds quantity × unit price; the same reservation again decides nothing. */
export const reserve =
  (call: Reserve) =>
  (account: Account, now: Timestamp): Decision<AccountEvent, ReserveRefusal> => {
    const { reservationId, quantity, unitPrice } = call
    const draft = new Draft(account, now)
    if (HashMap.has(draft.account.holds, reservationId)) return NOTHING
    const past = outcome(draft.account, reservationId)
    if (past !== undefined)
      return past._tag === "succeeded" ? NOTHING : Result.fail(new AlreadyEnded({ reservationId, outcome: past._tag }))
    const refusal = usable(draft.account) ?? unpayable(draft.account) ?? (call.key && refusedKey(draft.account, call.key, now))
    if (refusal !== undefined) return Result.fail(refusal)
    const amount = Credits.of(quantity * unitPrice)
    const lots = Lots.allocate(draft.account.lots, amount, now)
    if (lots === undefined) return Result.fail(insufficient(draft.account, amount, unitPrice, now))
    draft.add(reservation(call, amount, lots, now))
    return draft.done()
  }

const unpayable = (account: Account): AccountSuspended | AccountInDebt | undefined => {
  if (account.status === "suspended") return new AccountSuspended()
  const owed = debt(account)
  return owed > 0 ? new AccountInDebt({ debt: owed }) : undefined
}

const refusedKey = (account: Account, key: NonNullable<Reserve["key"]>, now: Timestamp) => {
  const running = get(account.openKeys, key.hash)
  if (running !== undefined) {
    const hold = get(account.holds, running)
    return hold?.fingerprint === key.fingerprint ? new InFlight({ reservationId: running }) : new KeyReused()
  }
  // Not for longer than the reply store: it forgets after a day, and then the key is free, however quiet the account
  const known = now - account.keysSince < 2 * KEY_MEMORY ? keyedOutcome(account, key.hash) : undefined
  if (known?.outcome._tag === "succeeded") {
    const { reservationId, requestId, fingerprint } = known
    return fingerprint === key.fingerprint ? new AlreadySucceeded({ reservationId, requestId }) : new KeyReused()
  }
  return now - key.lookedUpAt >= KEY_MEMORY ? new LookupStale() : undefined
}

const insufficient = (account: Account, required: Credits.Credits, unitPrice: Credits.Credits, now: Timestamp) => {
  const available = Lots.available(account.lots, now)
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

export interface Settle {
  readonly reservationId: string
  /** Units that were really done; what was held for the others goes back. All, when left out. */
  readonly quantity?: number
  readonly replyHash: string
}

/** Charges what was done at the price of the hold, and gives the rest back; again after it was settled decides nothing. */
export const settle =
  ({ reservationId, quantity, replyHash }: Settle) =>
  (account: Account, now: Timestamp): Decision<AccountEvent, ReservationNotFound | AlreadyEnded | ChargeExceedsHold | HoldExpired> => {
    const known = get(account.holds, reservationId)
    if (known === undefined) return ended(reservationId, outcome(account, reservationId)?._tag, "succeeded")
    const done = quantity ?? known.quantity
    const charged = chargeFor(reservationId, known, done)
    if (Result.isFailure(charged)) return Result.fail(charged.failure)
    const draft = new Draft(account, now)
    const hold = get(draft.account.holds, reservationId)
    if (hold === undefined) return Result.fail(new HoldExpired({ reservationId }))
    draft.capture(reservationId, hold, charged.success, done, replyHash)
    return draft.done()
  }

const chargeFor = (reservationId: string, hold: Hold, done: number): Result.Result<Credits.Credits, ChargeExceedsHold> =>
  Number.isInteger(done) && done >= 0 && done <= hold.quantity
    ? Result.succeed(hold.quantity === 0 ? Credits.zero : Credits.of((hold.amount / hold.quantity) * done))
    : Result.fail(new ChargeExceedsHold({ reservationId, held: hold.quantity, done }))

/**
 * Charges a call whose hold had ended before it could be settled: a new reservation, held and settled at once, names the old one.
 * Only for hosts that chose so; a hold that is still open, or was cancelled, is not late.
 */
export const settleLate =
  (call: Reserve, { quantity, replyHash, reservationId: lateOf }: Settle) =>
  (account: Account, now: Timestamp): Decision<AccountEvent, ReserveRefusal | ReservationNotFound | ChargeExceedsHold> => {
    const { reservationId } = call
    const draft = new Draft(account, now)
    if (HashMap.has(draft.account.holds, reservationId)) return Result.fail(new InFlight({ reservationId }))
    const own = outcome(draft.account, reservationId)
    if (own !== undefined) return own._tag === "succeeded" ? NOTHING : Result.fail(new AlreadyEnded({ reservationId, outcome: own._tag }))
    const past = outcome(draft.account, lateOf)
    if (past === undefined) return Result.fail(new ReservationNotFound({ reservationId: lateOf }))
    if (past._tag !== "refunded" || past.reason !== "abandoned")
      return Result.fail(new AlreadyEnded({ reservationId: lateOf, outcome: past._tag }))
    const refusal = usable(draft.account) ?? unpayable(draft.account) ?? (call.key && refusedKey(draft.account, call.key, now))
    if (refusal !== undefined) return Result.fail(refusal)
    const amount = Credits.of(call.quantity * call.unitPrice)
    const lots = Lots.allocate(draft.account.lots, amount, now)
    if (lots === undefined) return Result.fail(insufficient(draft.account, amount, call.unitPrice, now))
    draft.add(reservation(call, amount, lots, now, lateOf))
    const hold = get(draft.account.holds, call.reservationId)
    if (hold === undefined) throw new Error("A reservation just made is open")
    const done = quantity ?? hold.quantity
    const charged = chargeFor(call.reservationId, hold, done)
    if (Result.isFailure(charged)) return Result.fail(charged.failure)
    draft.capture(call.reservationId, hold, charged.success, done, replyHash)
    return draft.done()
  }

/** Gives all that is held back; again after it was refunded decides nothing. */
export const release =
  (reservationId: string, reason: Exclude<RefundReason, "goodwill">) =>
  (account: Account, now: Timestamp): Decision<AccountEvent, ReservationNotFound | AlreadyEnded> => {
    if (!HashMap.has(account.holds, reservationId)) return ended(reservationId, outcome(account, reservationId)?._tag, "refunded")
    const draft = new Draft(account, now)
    const hold = get(draft.account.holds, reservationId)
    // Undefined: it was due, and went back as abandoned
    if (hold !== undefined) draft.release(reservationId, hold, reason)
    return draft.done()
  }

const ended = (
  reservationId: string,
  outcome: Outcome["_tag"] | undefined,
  wanted: Outcome["_tag"]
): Result.Result<ReadonlyArray<never>, ReservationNotFound | AlreadyEnded> => {
  if (outcome === undefined) return Result.fail(new ReservationNotFound({ reservationId }))
  return outcome === wanted ? NOTHING : Result.fail(new AlreadyEnded({ reservationId, outcome }))
}

/** A charge as its own events tell it, with the terms of its lots: an account does not keep what is settled. */
export interface Charge {
  readonly reservationId: string
  readonly charged: Credits.Credits
  readonly lots: Lots.LotParts
  readonly terms: ReadonlyArray<Lots.LotTerms & { readonly lotId: string; readonly grantedAt: Timestamp }>
}

/**
 * Gives back some or all of what was charged and not yet given back: to the very lots, those taken last first, as if less had been
 * charged. What was charged on a lot that is owed for reduces that debt first; what was charged on one that has expired lives anew for
 * `adjustmentLifetime` milliseconds.
 */
export const refund =
  (charge: Charge, reason: RefundReason, amount?: Credits.Credits, adjustmentLifetime: number = ADJUSTMENT_LIFETIME) =>
  (account: Account, now: Timestamp): Decision<AccountEvent, RefundExceedsCharge> => {
    const { reservationId } = charge
    const before = get(account.givenBack, reservationId) ?? Credits.zero
    const refundable = Credits.of(charge.charged - before)
    const wanted = amount ?? refundable
    if (wanted > refundable) return Result.fail(new RefundExceedsCharge({ reservationId, refundable }))
    if (wanted === 0) return NOTHING
    const draft = new Draft(account, now)
    const [, open] = Lots.split(charge.lots.toReversed(), before)
    const [lots] = Lots.split(open, wanted)
    const claimed = lots
      .map(({ lotId, amount }) => ({ lotId, amount: Credits.min(amount, Lots.amountOf(draft.account.debts, lotId)) }))
      .filter((part) => part.amount > 0)
    const given = Lots.without(lots, claimed)
    const usedUp = given.filter(({ lotId }) => Lots.find(draft.account.lots, lotId) === undefined).map(({ lotId }) => lotId)
    const revived = charge.terms.filter(({ lotId }) => usedUp.includes(lotId))
    draft.add({
      _tag: "Refunded",
      reservationId,
      stage: "settled",
      amount: wanted,
      reason,
      lots,
      ...(claimed.length === 0 ? {} : { claimed }),
      ...(revived.length === 0 ? {} : { revived })
    })
    draft.expireReturned(given, `${bare(reservationId)}_g${before}`, renewal(reason, adjustmentLifetime), now)
    return draft.done()
  }

// the free trial of an account that is not verified

/** Takes one of ten slots; the same reservation again decides nothing. */
export const reserveTrial =
  (call: { readonly reservationId: string; readonly requestId: string; readonly operation: string; readonly lifetime: number }) =>
  (
    account: Account,
    now: Timestamp
  ): Decision<AccountEvent, AccountNotFound | AccountClosed | AccountSuspended | TrialUsedUp | AlreadyEnded> => {
    const { reservationId, requestId, operation, lifetime } = call
    const draft = new Draft(account, now)
    if (HashMap.has(draft.account.trial.open, reservationId)) return NOTHING
    const past = trialOutcome(draft.account, reservationId)
    if (past !== undefined) return past === "succeeded" ? NOTHING : Result.fail(new AlreadyEnded({ reservationId, outcome: past }))
    const refusal = usable(draft.account) ?? (account.status === "suspended" ? new AccountSuspended() : undefined)
    if (refusal !== undefined) return Result.fail(refusal)
    const { used, open } = draft.account.trial
    if (account.verified || used + HashMap.size(open) >= TRIAL_SLOTS) return Result.fail(new TrialUsedUp({ slots: TRIAL_SLOTS }))
    draft.add({ _tag: "TrialReserved", reservationId, requestId, operation, expiresAt: now + lifetime })
    return draft.done()
  }

const endTrial =
  (tag: "TrialUsed" | "TrialReleased", wanted: Outcome["_tag"]) =>
  (reservationId: string) =>
  (account: Account, now: Timestamp): Decision<AccountEvent, ReservationNotFound | AlreadyEnded> => {
    const draft = new Draft(account, now)
    if (!HashMap.has(draft.account.trial.open, reservationId)) {
      return ended(reservationId, trialOutcome(draft.account, reservationId), wanted)
    }
    draft.add({ _tag: tag, reservationId })
    return draft.done()
  }

/** Uses a slot up; again after it was used decides nothing. */
export const useTrial = endTrial("TrialUsed", "succeeded")
/** Gives a slot back; again after it was given back, which time does, too, decides nothing. */
export const releaseTrial = endTrial("TrialReleased", "refunded")
