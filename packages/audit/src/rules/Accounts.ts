/** Accounts: which may hold credits and be granted credits. */
import { Account, Decisions } from "@millrace/core"
import { HashMap } from "effect"
import { credits, type Rule, rule } from "./Rule.ts"

/** An account begins by being opened, once, and nothing happens to it before. */
export const accountIsOpenedFirst: Rule = {
  name: "account-is-opened-first",
  tags: "all",
  broken: (event, { before }) => {
    if (event._tag === "AccountOpened") return before.status === "absent" ? undefined : "the account had been opened before"
    return before.status === "absent" ? "the account had not been opened" : undefined
  }
}

/** An account that is suspended, closed or in debt holds nothing new. */
export const barredAccountHoldsNothing = rule("barred-account-holds-nothing", ["CreditReserved"], (_, { before }) => {
  if (before.status === "suspended" || before.status === "closed") return `the account was ${before.status}`
  const owed = Account.debt(before)
  return owed === 0 ? undefined : `the account owed ${credits(owed)}`
})

/** A closed account is given no credits, but what becomes of credits it had. */
export const closedAccountIsGrantedNothing = rule("closed-account-is-granted-nothing", ["CreditsGranted"], ({ source }, { before }) =>
  before.status === "closed" && source !== "adjustment" ? "the account was closed" : undefined
)

/** The trial of an account that was never verified has a few slots, of which each is used or released once. */
export const trialHasItsSlots = rule("trial-has-its-slots", ["TrialReserved", "TrialUsed", "TrialReleased"], (event, { before }) => {
  const { used, open } = before.trial
  if (event._tag !== "TrialReserved") return HashMap.has(open, event.reservationId) ? undefined : `no trial ${event.reservationId} was open`
  if (before.verified) return "the account had been verified"
  if (HashMap.has(open, event.reservationId)) return `trial ${event.reservationId} was open already`
  return used + HashMap.size(open) < Decisions.TRIAL_SLOTS ? undefined : "all slots were taken"
})
