/** Rules of recurring grants: each period is granted once, by the terms of its grant. */
import { Lots, RecurringGrants, RecurringTerms } from "@millrace/core"
import { noAmount } from "../Means.ts"
import { iso } from "../Report.ts"
import { credits, excess, type Rule, rule, wholeOf } from "./Rule.ts"

export const recurringRules: ReadonlyArray<Rule> = [
  // A recurring grant begins when it is started, grants credits that nobody paid for, and is one of at most sixteen
  rule(
    "recurring-grant-starts-once",
    ["RecurringGrantStarted"],
    ({ amount, anchor, grantId, source, until }, { before, at }) => {
      const { length } = before.recurring
      if (RecurringGrants.find(before.recurring, grantId) !== undefined) return `recurring grant ${grantId} was already started`
      if (length >= RecurringGrants.MAX_RECURRING_GRANTS) return `the account had ${length} recurring grants`
      if (before.status === "closed") return "the account was closed"
      if (Lots.isPaid(source)) return `each lot of source ${source} needs a payment of its own`
      if (amount === 0 || (until !== null && until <= anchor)) return `recurring grant ${grantId} grants nothing`
      return anchor === at ? undefined : `recurring grant ${grantId} begins at ${iso(anchor)}, and not when it is started`
    },
    ({ grantId }) => noAmount(`recurring grant ${grantId} should not have been started, and its lots are found by themselves`)
  ),

  // A lot of a recurring grant has its terms and the time of its period; no period is granted twice or too early, and none is left out
  // but those whose lots would have expired
  rule(
    "recurring-lot-is-of-its-grant",
    ["CreditsGranted"],
    (event, { before, at }) => {
      const { amount, expiresAt, lotId, paymentRef, priority, recurring, source } = event
      if (recurring === undefined) return undefined
      const { grantId, next, period } = recurring
      const grant = RecurringGrants.find(before.recurring, grantId)
      if (grant === undefined) return `recurring grant ${grantId} does not go on`
      const lot = RecurringGrants.due(grant, at).lots[0]
      if (lot === undefined) return `no period of recurring grant ${grantId} was due`
      if (lot.period !== period) return `period ${lot.period} of recurring grant ${grantId} was due, not period ${period}`
      if (lotId !== RecurringTerms.lotIdOf(grantId, period)) return `lot ${lotId} is not named after period ${period} of ${grantId}`
      if (next !== lot.next) return `the period after period ${period} begins at ${iso(lot.next)}, not at ${iso(next)}`
      if (amount !== grant.amount) return `recurring grant ${grantId} grants ${credits(grant.amount)}, not ${credits(amount)}`
      if (source !== grant.source || priority !== grant.priority || paymentRef !== null)
        return `lot ${lotId} has other terms than ${grantId}`
      const end = grant.expires === "next" ? next : null
      return expiresAt === end ? undefined : `lot ${lotId} expires ${end === null ? "never" : `at ${iso(end)}`} by its recurring grant`
    },
    (event, { before, at }, say) => {
      const grant = RecurringGrants.find(before.recurring, event.recurring?.grantId ?? "")
      const isDue = grant !== undefined && RecurringGrants.due(grant, at).lots[0]?.period === event.recurring?.period
      if (isDue && event.amount !== grant.amount) return excess(event.amount, grant.amount, "granted", say, event.lotId)
      return wholeOf(
        event,
        isDue ? "on other terms than their recurring grant has" : "although no recurring grant was due to grant them",
        say
      )
    }
  ),

  // A recurring grant is stopped once
  rule(
    "recurring-grant-stops-once",
    ["RecurringGrantStopped"],
    ({ grantId }, { before }) =>
      RecurringGrants.find(before.recurring, grantId) === undefined ? `recurring grant ${grantId} does not go on` : undefined,
    ({ grantId }) => noAmount(`recurring grant ${grantId} did not go on, and was stopped once more`)
  )
]
