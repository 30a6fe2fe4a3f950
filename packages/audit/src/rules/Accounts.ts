/** Rules of accounts: which may hold credits and be granted credits. */
import { Account, Decisions } from "@millrace/core"
import { HashMap } from "effect"
import { noAmount } from "../Means.ts"
import { credits, type Rule, rule, wholeOf } from "./Rule.ts"

export const accountRules: ReadonlyArray<Rule> = [
  // The first event of an account opens it, and no later event does
  {
    name: "account-is-opened-first",
    tags: "all",
    broken: (event, { before }) => {
      if (event._tag === "AccountOpened") return before.status === "absent" ? undefined : "the account was already open"
      return before.status === "absent" ? "the account was not open yet" : undefined
    },
    means: (event, { before }, say) =>
      event._tag === "AccountOpened"
        ? noAmount(`the account, which is ${before.status}, was opened once more`)
        : wholeOf(event, "although the account did not exist yet", say)
  },

  // An account that is suspended, closed or in debt makes no new hold
  rule(
    "barred-account-holds-nothing",
    ["CreditReserved"],
    (_, { before }) => {
      if (before.status === "suspended" || before.status === "closed") return `the account was ${before.status}`
      const owed = Account.debt(before)
      return owed === 0 ? undefined : `the account owed ${credits(owed)}`
    },
    (event, { before }, say) => {
      const owed = Account.debt(before)
      return wholeOf(event, owed === 0 ? `although the account was ${before.status}` : `although the account owed ${say(owed)}`, say)
    }
  ),

  // A closed account is granted no credits, except replacements of its own expired ones
  rule(
    "closed-account-is-granted-nothing",
    ["CreditsGranted"],
    ({ source }, { before }) => (before.status === "closed" && source !== "adjustment" ? "the account was closed" : undefined),
    (event, _, say) => wholeOf(event, "although the account was closed and can never spend them", say)
  ),

  // An account that was never verified has ten trial slots; each trial is used or released once
  rule(
    "trial-has-its-slots",
    ["TrialReserved", "TrialUsed", "TrialReleased"],
    (event, { before: { trial, verified } }) => {
      const isOpen = HashMap.has(trial.open, event.reservationId)
      if (event._tag !== "TrialReserved") return isOpen ? undefined : `trial ${event.reservationId} was not open`
      if (verified) return "the account was verified"
      if (isOpen) return `trial ${event.reservationId} was already open`
      return trial.used + HashMap.size(trial.open) < Decisions.TRIAL_SLOTS ? undefined : "all trial slots were taken"
    },
    () => noAmount("a trial costs no credits, but a call may have been free that should have been paid")
  )
]
