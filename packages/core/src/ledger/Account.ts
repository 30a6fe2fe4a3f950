/**
 * A credit account: credits come in lots, a call holds some of them and then uses or returns them. What the events mean; what may
 * happen next is in `Decisions.ts`. Stream `account-{accountId}`.
 *
 * Bounded: it keeps open holds, lots with anything left, the terms of paid lots, late refunds, and outcomes for retries.
 */

import { type Decider, EventCodec } from "@millrace/event-sourcing"
import { HashMap, Option } from "effect"
import * as Credits from "../Credits.ts"
import type { Timestamp } from "../Timestamp.ts"
import { AccountEvent, type EventOf, type RefundReason } from "./AccountEvent.ts"
import * as Lots from "./Lots.ts"

export interface Hold extends Omit<EventOf<"CreditReserved">, "_tag" | "reservationId"> {
  readonly reservedAt: Timestamp
}

/** How a reservation ended. */
export type Outcome =
  | { readonly _tag: "succeeded"; readonly charged: Credits.Credits; readonly replyHash: string }
  | { readonly _tag: "refunded"; readonly reason: RefundReason }

/** How the newest attempt under an idempotency key ended. */
export interface KeyedOutcome {
  readonly reservationId: string
  readonly requestId: string
  readonly fingerprint: string
  readonly outcome: Outcome
}

/** What stays of a lot that somebody paid for, for ever: a notice that comes again changes nothing, a chargeback finds its lot. */
export interface PaidLot extends Lots.LotTerms {
  readonly granted: Credits.Credits
  readonly clawedBack: Credits.Credits
  readonly grantedAt: Timestamp
  readonly paymentRef: string | null
}

export interface Account {
  readonly status: "absent" | "opened" | "verified" | "suspended" | "closed"
  /** Verified once, whatever became of it. */
  readonly verified: boolean
  readonly sealedEmail: string
  /** In the order in which they are used. */
  readonly lots: ReadonlyArray<Lots.Lot>
  readonly holds: HashMap.HashMap<string, Hold>
  readonly paidLots: HashMap.HashMap<string, PaidLot>
  /** Clawed back and not repaid, by the lot it was clawed back from, oldest first. */
  readonly debts: Lots.LotParts
  /** Given back after the settle, by reservation. */
  readonly givenBack: HashMap.HashMap<string, Credits.Credits>
  /** The newest outcomes by reservation: at least `OUTCOMES`, at most twice as many. */
  readonly ended: HashMap.HashMap<string, Outcome>
  readonly endedBefore: HashMap.HashMap<string, Outcome>
  /** Open holds by idempotency key. */
  readonly openKeys: HashMap.HashMap<string, string>
  /** Outcomes by idempotency key: those since `keysSince`, and those of the period before; at least `KEY_MEMORY` in all. */
  readonly keys: HashMap.HashMap<string, KeyedOutcome>
  readonly keysBefore: HashMap.HashMap<string, KeyedOutcome>
  readonly keysSince: Timestamp
  /** Nothing is due before: neither a lot's nor a hold's expiry. */
  readonly nothingDueBefore: Timestamp
  readonly trial: {
    readonly used: number
    readonly open: HashMap.HashMap<string, Timestamp>
    /** Slots that ended, for retries: all that were used, for there are no more, and the newest that were given back. */
    readonly lastUsed: ReadonlyArray<string>
    readonly lastReleased: ReadonlyArray<string>
  }
}

/** Free calls of an account that was never verified. */
export const TRIAL_SLOTS = 10

/** Outcomes kept for retries of reservations without a key: twice this many leave room for all else in a snapshot of 64 KiB. */
export const OUTCOMES = 100
/** How long an ended reservation of an idempotency key is remembered here, milliseconds; the reply store remembers for a day. */
export const KEY_MEMORY = 10 * 60_000

const NEVER = Number.MAX_SAFE_INTEGER

export const initial: Account = {
  status: "absent",
  verified: false,
  sealedEmail: "",
  lots: [],
  holds: HashMap.empty(),
  paidLots: HashMap.empty(),
  debts: [],
  givenBack: HashMap.empty(),
  ended: HashMap.empty(),
  endedBefore: HashMap.empty(),
  openKeys: HashMap.empty(),
  keys: HashMap.empty(),
  keysBefore: HashMap.empty(),
  keysSince: 0,
  nothingDueBefore: NEVER,
  trial: { used: 0, open: HashMap.empty(), lastUsed: [], lastReleased: [] }
}

export const get = <V>(map: HashMap.HashMap<string, V>, key: string): V | undefined => Option.getOrUndefined(HashMap.get(map, key))

export const outcome = (account: Account, reservationId: string): Outcome | undefined =>
  get(account.ended, reservationId) ?? get(account.endedBefore, reservationId)

export const trialOutcome = ({ trial }: Account, reservationId: string): Outcome["_tag"] | undefined =>
  trial.lastUsed.includes(reservationId) ? "succeeded" : trial.lastReleased.includes(reservationId) ? "refunded" : undefined

export const keyedOutcome = (account: Account, keyHash: string): KeyedOutcome | undefined =>
  get(account.keys, keyHash) ?? get(account.keysBefore, keyHash)

/** Credits owed: more than zero stops every priced call. */
export const debt = (account: Account): Credits.Credits => Lots.total(account.debts)

/** Whether the ledger itself ends this hold at its expiry; others are ended by recovery or by their job. */
export const expiresByItself = (hold: Hold): hold is Hold & { readonly expiresAt: Timestamp } =>
  hold.expiresAt !== undefined && hold.recoverable === undefined

const evolve = (before: Account, event: AccountEvent, at: Timestamp): Account => {
  const account = apply(before, event, at)
  // Holds that ended early leave the bound too low; it is made exact again only when it is reached
  const bound = at < account.nothingDueBefore ? Math.min(account.nothingDueBefore, nextLotExpiry(account)) : nextDue(account, at)
  return bound === account.nothingDueBefore ? account : { ...account, nothingDueBefore: bound }
}

const nextLotExpiry = (account: Account): Timestamp => {
  // Sorted by expiry
  for (const lot of account.lots) if (lot.left > 0) return lot.expiresAt ?? NEVER
  return NEVER
}

/** The next instant at which something is due, or any before it while something is at `at`: where much is, the rest is not searched. */
const nextDue = (account: Account, at: Timestamp): Timestamp => {
  let next = nextLotExpiry(account)
  for (const dueAt of deadlines(account)) {
    if (next <= at) return Math.min(next, account.nothingDueBefore)
    if (dueAt < next) next = dueAt
  }
  return next
}

function* deadlines({ holds, trial }: Account): Iterable<Timestamp> {
  for (const hold of HashMap.values(holds)) if (expiresByItself(hold)) yield hold.expiresAt
  yield* HashMap.values(trial.open)
}

const dueBy = (account: Account, at: Timestamp | undefined): Timestamp => Math.min(account.nothingDueBefore, at ?? NEVER)

const apply = (account: Account, event: AccountEvent, at: Timestamp): Account => {
  switch (event._tag) {
    case "AccountOpened":
      return { ...account, status: "opened", sealedEmail: event.sealedEmail }
    case "AccountVerified":
      return { ...account, status: account.status === "opened" ? "verified" : account.status, verified: true }
    case "AccountSuspended":
      return { ...account, status: "suspended" }
    case "AccountReinstated":
      return { ...account, status: account.verified ? "verified" : "opened" }
    case "AccountClosed":
      return { ...account, status: "closed" }
    case "CreditsGranted":
      return granted(account, event, at)
    case "CreditReserved":
      return reserved(account, event, at)
    case "OperationSucceeded":
      return succeeded(account, event, at)
    case "Refunded":
      return event.stage === "reserved" ? released(account, event, at) : givenBack(account, event)
    case "LotExpired":
      return { ...account, lots: Lots.adjust(account.lots, event.lotId, { left: -event.amount }) }
    case "CreditsClawedBack":
      return clawedBack(account, event)
    case "DebtRepaid":
      return {
        ...account,
        lots: Lots.adjust(account.lots, event.lotId, { left: -event.amount }),
        debts: Lots.split(account.debts, event.amount)[1]
      }
    case "ClawbackReversed":
      return clawbackReversed(account, event)
    case "TrialReserved":
      return {
        ...account,
        trial: { ...account.trial, open: HashMap.set(account.trial.open, event.reservationId, event.expiresAt) },
        nothingDueBefore: dueBy(account, event.expiresAt)
      }
    case "TrialUsed":
    case "TrialReleased":
      return { ...account, trial: trialEnded(account.trial, event) }
  }
}

const granted = (account: Account, event: EventOf<"CreditsGranted">, at: Timestamp): Account => {
  const { lotId, amount, source, priority, expiresAt, paymentRef } = event
  const lot = { lotId, source, priority, expiresAt, grantedAt: at, left: amount, held: Credits.zero, claimed: Credits.zero }
  return {
    ...account,
    lots: Lots.insert(account.lots, lot),
    paidLots: Lots.isPaid(source)
      ? HashMap.set(account.paidLots, lotId, {
          granted: amount,
          clawedBack: Credits.zero,
          source,
          priority,
          expiresAt,
          grantedAt: at,
          paymentRef
        })
      : account.paidLots
  }
}

const reserved = (account: Account, event: EventOf<"CreditReserved">, at: Timestamp): Account => {
  const { _tag, reservationId, ...call } = event
  let lots = account.lots
  for (const { lotId, amount } of event.lots) lots = Lots.adjust(lots, lotId, { left: -amount, held: amount })
  return {
    ...account,
    lots,
    holds: HashMap.set(account.holds, reservationId, { ...call, reservedAt: at }),
    openKeys: event.keyHash === undefined ? account.openKeys : HashMap.set(account.openKeys, event.keyHash, reservationId),
    nothingDueBefore: event.recoverable === undefined ? dueBy(account, event.expiresAt) : account.nothingDueBefore
  }
}

const succeeded = (account: Account, event: EventOf<"OperationSucceeded">, at: Timestamp): Account => {
  const hold = holdOf(account, event.reservationId)
  const { charged, replyHash, claimed = [], owed = [] } = event
  let lots = account.lots
  for (const { lotId, amount } of hold.lots) {
    const taken = Lots.amountOf(claimed, lotId)
    const back = amount - Lots.amountOf(event.lots, lotId) - taken
    lots = Lots.adjust(lots, lotId, { held: -amount, left: back, claimed: -taken - Lots.amountOf(owed, lotId) })
  }
  return ended(
    { ...account, lots, debts: owe(account.debts, owed) },
    event.reservationId,
    hold,
    { _tag: "succeeded", charged, replyHash },
    at
  )
}

const released = (account: Account, event: EventOf<"Refunded">, at: Timestamp): Account => {
  const { reservationId, reason, claimed = [] } = event
  let lots = account.lots
  for (const { lotId, amount } of event.lots) {
    const taken = Lots.amountOf(claimed, lotId)
    lots = Lots.adjust(lots, lotId, { held: -amount, left: amount - taken, claimed: -taken })
  }
  return ended({ ...account, lots }, reservationId, holdOf(account, reservationId), { _tag: "refunded", reason }, at)
}

const givenBack = (account: Account, event: EventOf<"Refunded">): Account => {
  const { reservationId, amount, claimed = [] } = event
  let { lots, debts } = account
  for (const { lotId, amount } of Lots.without(event.lots, claimed)) {
    const used = event.revived?.find((lot) => lot.lotId === lotId)
    lots = giveTo(account, lots, lotId, amount, used)
  }
  for (const part of claimed) debts = Lots.without(debts, [part])
  const before = get(account.givenBack, reservationId) ?? Credits.zero
  return { ...account, lots, debts, givenBack: HashMap.set(account.givenBack, reservationId, Credits.of(before + amount)) }
}

const clawedBack = (account: Account, event: EventOf<"CreditsClawedBack">): Account => {
  const { lotId, amount, fromAvailable, fromHeld, debt } = event
  return {
    ...account,
    lots: Lots.adjust(account.lots, lotId, { left: -fromAvailable, claimed: fromHeld }),
    paidLots: changePaidLot(account, lotId, amount),
    debts: owe(account.debts, [{ lotId, amount: debt }])
  }
}

const clawbackReversed = (account: Account, event: EventOf<"ClawbackReversed">): Account => {
  const { lotId, amount, toHeld, toDebt, toAvailable } = event
  const lots = Lots.adjust(account.lots, lotId, { claimed: -toHeld })
  return {
    ...account,
    lots: toAvailable > 0 ? giveTo(account, lots, lotId, toAvailable) : lots,
    paidLots: changePaidLot(account, lotId, -amount),
    debts: Lots.without(account.debts, [{ lotId, amount: toDebt }])
  }
}

/** Credits for a lot that may have been used up: then it lives again, as it was granted. */
const giveTo = (
  account: Account,
  lots: ReadonlyArray<Lots.Lot>,
  lotId: string,
  amount: Credits.Credits,
  used?: Lots.LotTerms & { readonly grantedAt: Timestamp }
): ReadonlyArray<Lots.Lot> => {
  if (Lots.find(lots, lotId) !== undefined) return Lots.adjust(lots, lotId, { left: amount })
  const terms = used ?? get(account.paidLots, lotId)
  if (terms === undefined) throw new Error(`Lot ${lotId} is not known`)
  const { source, priority, expiresAt, grantedAt } = terms
  return Lots.insert(lots, { lotId, source, priority, expiresAt, grantedAt, left: amount, held: Credits.zero, claimed: Credits.zero })
}

const changePaidLot = (account: Account, lotId: string, by: number): Account["paidLots"] =>
  HashMap.modify(account.paidLots, lotId, (lot) => ({ ...lot, clawedBack: Credits.of(lot.clawedBack + by) }))

const owe = (debts: Lots.LotParts, more: Lots.LotParts): Lots.LotParts => {
  let sum = debts
  for (const { lotId, amount } of more) {
    if (amount === 0) continue
    const before = Lots.amountOf(sum, lotId)
    sum =
      before === 0
        ? [...sum, { lotId, amount }]
        : sum.map((part) => (part.lotId === lotId ? { lotId, amount: Credits.of(before + amount) } : part))
  }
  return sum
}

const trialEnded = (
  trial: Account["trial"],
  { _tag, reservationId }: EventOf<"TrialUsed"> | EventOf<"TrialReleased">
): Account["trial"] => {
  const newest = (before: ReadonlyArray<string>) => [...before, reservationId].slice(-TRIAL_SLOTS)
  const open = HashMap.remove(trial.open, reservationId)
  return _tag === "TrialUsed"
    ? { ...trial, open, used: trial.used + 1, lastUsed: newest(trial.lastUsed) }
    : { ...trial, open, lastReleased: newest(trial.lastReleased) }
}

/** A hold that an event ends. That it is there is the deciders' promise: without it the log is not one this code wrote. */
const holdOf = (account: Account, reservationId: string): Hold => {
  const hold = get(account.holds, reservationId)
  if (hold === undefined) throw new Error(`Reservation ${reservationId} is not open`)
  return hold
}

const ended = (account: Account, reservationId: string, hold: Hold, outcome: Outcome, at: Timestamp): Account => {
  const full = HashMap.size(account.ended) >= OUTCOMES
  const next: Account = {
    ...account,
    holds: HashMap.remove(account.holds, reservationId),
    ended: HashMap.set(full ? HashMap.empty<string, Outcome>() : account.ended, reservationId, outcome),
    endedBefore: full ? account.ended : account.endedBefore
  }
  return hold.keyHash === undefined ? next : rememberKey(next, hold.keyHash, reservationId, hold, outcome, at)
}

const rememberKey = (account: Account, keyHash: string, reservationId: string, hold: Hold, outcome: Outcome, at: Timestamp): Account => {
  const age = at - account.keysSince
  const { keys, keysBefore, keysSince } =
    age < KEY_MEMORY
      ? account
      : { keys: HashMap.empty<string, KeyedOutcome>(), keysBefore: age < 2 * KEY_MEMORY ? account.keys : HashMap.empty(), keysSince: at }
  const { requestId, fingerprint = "" } = hold
  return {
    ...account,
    openKeys: HashMap.remove(account.openKeys, keyHash),
    keys: HashMap.set(keys, keyHash, { reservationId, requestId, fingerprint, outcome }),
    keysBefore,
    keysSince
  }
}

export const Account: Decider<Account, AccountEvent> = {
  category: "account",
  codec: EventCodec.make(AccountEvent),
  initial,
  evolve
}
