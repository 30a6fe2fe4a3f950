/** Rules of lots: a lot is granted once, a paid lot names its payment, and available credits expire when due. */
import { Account, type AccountEvent, Decisions, Lots } from "@millrace/core"
import { HashMap } from "effect"
import { noAmount } from "../Means.ts"
import { iso } from "../Report.ts"
import { credits, excess, moved, type Rule, rule, type Step, wholeOf } from "./Rule.ts"

/** What a due event is about. */
const nameOf = (due: AccountEvent): string =>
  "lotId" in due ? due.lotId : "reservationId" in due ? due.reservationId : "grantId" in due ? due.grantId : "the account"

export const lotRules: ReadonlyArray<Rule> = [
  // Due expiries are written before any other event, so no call spends expired credits or settles an expired hold
  rule(
    "what-is-due-comes-first",
    [
      ...(["CreditReserved", "OperationSucceeded", "Refunded", "CreditsGranted", "CreditsClawedBack"] as const),
      ...(["ClawbackReversed", "TrialReserved", "TrialUsed", "RecurringGrantStarted", "AccountClosed", "LotExpiryAnnounced"] as const)
    ],
    (event, step) => {
      // An expiry, the grant that replaces expired credits, or that of a period
      if (event._tag === "Refunded" && event.dueAt !== undefined) return undefined
      if (event._tag === "CreditsGranted" && (event.source === "adjustment" || event.recurring !== undefined)) return undefined
      const due = step.at < step.before.nothingDueBefore ? undefined : firstDue(step)
      if (due === undefined) return undefined
      return `${due._tag} of ${nameOf(due)} was due and is missing`
    },
    (_, step, say) => {
      const due = firstDue(step)
      const [amount, done, lot] = (due === undefined ? undefined : moved(due)) ?? []
      if (amount === undefined) return noAmount("a trial that had expired was not released, or a recurring grant not stopped")
      const wrong = due?._tag === "CreditsGranted" ? "did not count yet" : "still counted"
      return { amount, lot, sentence: `${say(amount)} should have been ${done} by then, and ${wrong}.` }
    }
  ),

  // A lot is not granted again while it has credits left or held; a paid lot is never granted again
  rule(
    "lot-is-granted-once",
    ["CreditsGranted"],
    ({ lotId }, { before: { purse } }) =>
      Lots.find(purse.lots, lotId) !== undefined || HashMap.has(purse.paidLots, lotId) ? `lot ${lotId} was already granted` : undefined,
    (event, _, say) => wholeOf(event, "a second time for the same lot", say)
  ),

  // A paid lot names its payment. A rule over the whole log checks that no payment grants twice
  rule(
    "paid-lot-names-its-payment",
    ["CreditsGranted"],
    ({ lotId, source, paymentRef }) =>
      Lots.isPaid(source) && paymentRef === null ? `lot ${lotId} of source ${source} names no payment` : undefined,
    (event, _, say) => wholeOf(event, "as if they were paid for, but no payment is named", say)
  ),

  // All available credits of a lot expire at its expiry, and not before
  rule(
    "lot-expires-at-its-time",
    ["LotExpired"],
    ({ lotId, amount, dueAt }, { before, at }) => {
      const lot = Lots.find(before.purse.lots, lotId)
      if (lot === undefined) return `lot ${lotId} had no credits`
      if (lot.expiresAt !== dueAt) return `lot ${lotId} does not expire at ${iso(dueAt)}`
      if (dueAt > at) return `lot ${lotId} expired before ${iso(dueAt)}`
      return amount === lot.left ? undefined : `lot ${lotId} had ${credits(lot.left)} available, but ${credits(amount)} expired`
    },
    (event, { before, at }, say) => {
      const lot = Lots.find(before.purse.lots, event.lotId)
      if (lot === undefined) return wholeOf(event, "although the lot had none", say)
      if (lot.expiresAt !== event.dueAt || event.dueAt > at) return wholeOf(event, "before they had expired", say)
      return excess(event.amount, lot.left, "written off as expired", say, event.lotId)
    }
  ),

  // An abandoned hold or trial slot is released at its deadline, and not before
  rule(
    "hold-lapses-at-its-time",
    ["Refunded", "TrialReleased"],
    (event, { before, at, hold }) => {
      const { dueAt, reservationId } = event
      if (dueAt === undefined) return undefined
      const deadline = event._tag === "Refunded" ? hold?.expiresAt : Account.get(before.trial.open, reservationId)?.expiresAt
      if (deadline !== undefined && deadline !== dueAt) return `the deadline of ${reservationId} was ${iso(deadline)}, not ${iso(dueAt)}`
      return dueAt > at ? `${reservationId} was released before ${iso(dueAt)}` : undefined
    },
    (event, _, say) => wholeOf(event, "as if their time were over, so that the call that held them may have cost nothing", say)
  )
]

/** The first expiry that is due and not written. */
const firstDue = ({ at, before }: Step) =>
  Decisions.expireDue(before, at).find(({ _tag }) => _tag !== "DebtRepaid" && _tag !== "BalanceFellBelow")
