/** Rules of accounts: which may hold credits and be granted credits. */
import { Account, Decisions } from "@millrace/core"
import { HashMap } from "effect"
import { credits, type Rule, rule } from "./Rule.ts"

/** An account's first event opens it, and no later one does. */
export const accountIsOpenedFirst: Rule = {
  name: "account-is-opened-first",
  tags: "all",
  broken: (event, { before }) => {
    if (event._tag === "AccountOpened") return before.status === "absent" ? undefined : "the account had been opened before"
    return before.status === "absent" ? "the account had not been opened" : undefined
  }
}

/** An account that is suspended, closed or in debt makes no new hold. */
export const barredAccountHoldsNothing = rule("barred-account-holds-nothing", ["CreditReserved"], (_, { before }) => {
  if (before.status === "suspended" || before.status === "closed") return `the account was ${before.status}`
  const owed = Account.debt(before)
  return owed === 0 ? undefined : `the account owed ${credits(owed)}`
})

/** A closed account is granted no credits, except replacements of its own expired ones. */
export const closedAccountIsGrantedNothing = rule("closed-account-is-granted-nothing", ["CreditsGranted"], ({ source }, { before }) =>
  before.status === "closed" && source !== "adjustment" ? "the account was closed" : undefined
)

/** An account that was never verified has a few trial slots. Each is used or released once. */
export const trialHasItsSlots = rule("trial-has-its-slots", ["TrialReserved", "TrialUsed", "TrialReleased"], (event, { before }) => {
  const { used, open } = before.trial
  if (event._tag !== "TrialReserved") return HashMap.has(open, event.reservationId) ? undefined : `no trial ${event.reservationId} was open`
  if (before.verified) return "the account had been verified"
  if (HashMap.has(open, event.reservationId)) return `trial ${event.reservationId} was open already`
  return used + HashMap.size(open) < Decisions.TRIAL_SLOTS ? undefined : "all slots were taken"
})
