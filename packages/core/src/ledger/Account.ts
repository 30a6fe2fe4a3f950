/**
 * A credit account: its status, its purse of lots and holds, its memory of ended calls, its trial, its recurring grants,
 * and its threshold. This file folds the events;
 * `Decisions.ts` has the commands. Stream `account-{accountId}`.
 */

import { type Decider, EventCodec } from "@millrace/event-sourcing"
import { HashMap } from "effect"
import type { Timestamp } from "../Timestamp.ts"
import { AccountEvent } from "./AccountEvent.ts"
import { get } from "./Get.ts"
import * as LowBalance from "./LowBalance.ts"
import * as Memory from "./Memory.ts"
import * as Purse from "./Purse.ts"
import * as RecurringGrants from "./RecurringGrants.ts"
import * as SmallMap from "./SmallMap.ts"
import * as Trial from "./Trial.ts"

export { get } from "./Get.ts"
export { KEY_MEMORY, type Outcome } from "./Memory.ts"
export { expiresByItself, type Hold } from "./Purse.ts"
export { TRIAL_SLOTS } from "./Trial.ts"

export interface Account {
  readonly status: "absent" | "opened" | "verified" | "suspended" | "closed"
  /** Whether it was ever verified; a suspended or closed account keeps this. */
  readonly verified: boolean
  /** Empty for an account without an address. */
  readonly sealedEmail: string
  readonly sealedReference?: string
  readonly purse: Purse.Purse
  readonly memory: Memory.Memory
  readonly trial: Trial.Trial
  /** In the order in which they were started. A closed account has none. */
  readonly recurring: ReadonlyArray<RecurringGrants.RecurringGrant>
  /** When it is told that the balance is low. A closed account has no threshold. */
  readonly lowBalance: LowBalance.LowBalance
  /** No lot, hold or trial slot expires before this time, and no period of a recurring grant begins. */
  readonly nothingDueBefore: Timestamp
}

const NEVER = Number.MAX_SAFE_INTEGER

export const initial: Account = {
  status: "absent",
  verified: false,
  sealedEmail: "",
  purse: Purse.initial,
  memory: Memory.initial,
  trial: Trial.initial,
  recurring: [],
  lowBalance: LowBalance.initial,
  nothingDueBefore: NEVER
}

// questions

/** The open hold of a reservation, or undefined. */
export const hold = ({ purse }: Account, reservationId: string): Purse.Hold | undefined => SmallMap.get(purse.holds, reservationId)

/** How a reservation ended; undefined when it is open, unknown or forgotten. */
export const outcome = ({ memory }: Account, reservationId: string): Memory.Outcome | undefined => Memory.outcome(memory, reservationId)

/**
 * Whether calls use slots of the trial in place of credits: the account has an address that was never verified, and was never granted
 * credits.
 */
export const isOnTrial = ({ sealedEmail, trial, verified }: Account): boolean => !verified && !trial.isCredited && sealedEmail !== ""

/** Calls of a trial. `remaining`: those that are neither used nor running. */
export interface TrialView {
  readonly total: number
  readonly used: number
  readonly remaining: number
}

/** The trial of an account that is on trial; undefined for any other account. */
export const trialOf = (account: Account): TrialView | undefined =>
  isOnTrial(account) ? { total: Trial.TRIAL_SLOTS, used: account.trial.used, remaining: Trial.remaining(account.trial) } : undefined

/** Whether a reservation is open: a hold, or a slot of the trial. */
export const isOpen = (account: Account, reservationId: string): boolean =>
  hold(account, reservationId) !== undefined || HashMap.has(account.trial.open, reservationId)

/** How a slot of the trial ended; undefined when it is open, unknown or forgotten. */
export const trialOutcome = ({ trial }: Account, reservationId: string): Memory.Outcome["_tag"] | undefined =>
  Trial.outcome(trial, reservationId)

/** Credits owed, in thousandths: more than zero stops every priced call. */
export const debt = ({ purse }: Account) => Purse.debt(purse)

// evolve

const evolve = (before: Account, event: AccountEvent, at: Timestamp): Account => {
  const account = apply(before, event, at)
  // A hold that ends early leaves the bound too low. It is recomputed only once it is reached
  const { nothingDueBefore } = before
  const bound = at < nothingDueBefore ? Math.min(nothingDueBefore, deadlineOf(event), lotExpiry(account)) : nextDue(account, at)
  return bound === nothingDueBefore ? account : { ...account, nothingDueBefore: bound }
}

const apply = (account: Account, event: AccountEvent, at: Timestamp): Account => {
  switch (event._tag) {
    case "AccountOpened": {
      const { sealedEmail = "", sealedReference } = event
      return { ...account, status: "opened", sealedEmail, ...(sealedReference === undefined ? {} : { sealedReference }) }
    }
    case "AccountVerified":
      return { ...account, status: account.status === "opened" ? "verified" : account.status, verified: true }
    case "AccountSuspended":
      return { ...account, status: "suspended" }
    case "AccountReinstated":
      return { ...account, status: account.verified ? "verified" : "opened" }
    case "AccountClosed":
      return { ...account, status: "closed", lowBalance: LowBalance.initial }
    case "TrialReserved":
    case "TrialUsed":
    case "TrialReleased": {
      const memory = Memory.evolve(account.memory, event, get(account.trial.open, event.reservationId), at)
      return { ...account, trial: Trial.evolve(account.trial, event), memory }
    }
    case "RecurringGrantStarted":
    case "RecurringGrantStopped":
      return { ...account, recurring: RecurringGrants.evolve(account.recurring, event) }
    case "BalanceThresholdSet":
    case "BalanceFellBelow":
      return { ...account, lowBalance: LowBalance.evolve(account.lowBalance, event, account.purse.lots) }
    default: {
      const ended = "reservationId" in event ? hold(account, event.reservationId) : undefined
      const purse = Purse.evolve(account.purse, event, ended, at)
      const { told } = account.lowBalance
      const lowBalance = told ? LowBalance.evolve(account.lowBalance, event, purse.lots) : account.lowBalance
      const memory = Memory.evolve(account.memory, event, ended, at)
      if (event._tag !== "CreditsGranted") return { ...account, purse, memory, lowBalance }
      const recurring = RecurringGrants.evolve(account.recurring, event)
      return { ...account, purse, memory, lowBalance, recurring, trial: Trial.evolve(account.trial, event) }
    }
  }
}

/** When the hold or trial slot of an event expires, or the next period of a recurring grant begins. */
const deadlineOf = (event: AccountEvent): Timestamp => {
  if (event._tag === "TrialReserved") return event.expiresAt
  if (event._tag === "CreditsGranted") return event.recurring?.next ?? NEVER
  if (event._tag === "RecurringGrantStarted") return event.anchor
  return event._tag === "CreditReserved" && event.recoverable === undefined ? (event.expiresAt ?? NEVER) : NEVER
}

const lotExpiry = ({ purse }: Account): Timestamp => Purse.nextLotExpiry(purse) ?? NEVER

/** The next time at which something is due. If something is due at `at` already, any time up to then. */
const nextDue = (account: Account, at: Timestamp): Timestamp => {
  let next = lotExpiry(account)
  for (const dueAt of deadlines(account)) {
    if (next <= at) return Math.min(next, account.nothingDueBefore)
    if (dueAt < next) next = dueAt
  }
  return next
}

function* deadlines({ purse, recurring, trial }: Account): Iterable<Timestamp> {
  for (const { dueAt } of recurring) yield dueAt
  for (const [, hold] of purse.holds) if (Purse.expiresByItself(hold)) yield hold.expiresAt
  for (const { expiresAt } of HashMap.values(trial.open)) yield expiresAt
}

export const Account: Decider<Account, AccountEvent> = {
  category: "account",
  codec: EventCodec.make(AccountEvent),
  initial,
  evolve
}
