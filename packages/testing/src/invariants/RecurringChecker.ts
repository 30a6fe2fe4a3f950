/** Checks the recurring grants of one account: their lots are those of their terms, none is granted twice, and none is missing. */
import type { AccountEvent, EventOf } from "@millrace/core"
import { later } from "../oracle/Calendar.ts"
import type { Report } from "./Rules.ts"

interface Grant extends EventOf<"RecurringGrantStarted"> {
  /** The next period, from 0, and when it begins. */
  period: number
  dueAt: number
}

const MOST = 16
/** A lot that would raise the balance above this stays due. Thousandths of a credit. */
const LARGEST_BALANCE = 10 ** 14

/** Whether a period has begun that is to be granted: of those whose lots would expire, only the one that lasts. */
const isOwed = ({ anchor, dueAt, every, expires, period, until }: Grant, at: number): boolean => {
  for (let from = dueAt; from <= at && (until === null || from < until); from = later(anchor, every, ++period))
    if (expires === "never" || later(anchor, every, period + 1) > at) return true
  return false
}

export class RecurringChecker {
  readonly #grants = new Map<string, Grant>()
  readonly #report: Report

  constructor(report: Report) {
    this.#report = report
  }

  /** Before an event that is not due itself: nothing is due. `balance`: available and held. */
  nothingDue(at: number, balance: number): void {
    for (const grant of this.#grants.values())
      if (isOwed(grant, at) && balance + grant.amount <= LARGEST_BALANCE)
        this.#report("recurring", `${grant.grantId} was due at ${grant.dueAt}`)
  }

  /** `balance`: before the event. */
  enter(event: AccountEvent, at: number, balance: number): void {
    if (event._tag === "RecurringGrantStarted") {
      const { amount, anchor, grantId, source } = event
      if (this.#grants.has(grantId) || this.#grants.size >= MOST) this.#report("recurring", `${grantId} is one too many`)
      if (anchor !== at || amount === 0 || source === "topup" || source === "subscription")
        this.#report("recurring", `${amount} of ${source} from ${anchor}`)
      this.#grants.set(grantId, { ...event, period: 0, dueAt: anchor })
    }
    if (event._tag === "RecurringGrantStopped") this.#stopped(event.grantId, at, balance)
    if (event._tag === "CreditsGranted" && event.recurring !== undefined) this.#granted(event, event.recurring, at)
    if (event._tag === "AccountClosed" && this.#grants.size > 0) this.#report("recurring", "a grant of a closed account goes on")
  }

  #stopped(grantId: string, at: number, balance: number): void {
    const grant = this.#grants.get(grantId)
    if (grant === undefined) return this.#report("recurring", `${grantId} does not go on`)
    if (isOwed(grant, at) && balance + grant.amount <= LARGEST_BALANCE) this.#report("recurring", `${grantId} owes ${grant.period}`)
    this.#grants.delete(grantId)
  }

  #granted(
    lot: EventOf<"CreditsGranted">,
    { grantId, next, period }: NonNullable<EventOf<"CreditsGranted">["recurring"]>,
    at: number
  ): void {
    const grant = this.#grants.get(grantId)
    if (grant === undefined) return this.#report("recurring", `${grantId} does not go on`)
    const { amount, anchor, every, expires, priority, source, until } = grant
    const from = later(anchor, every, period)
    const isItsTurn = expires === "never" ? period === grant.period : period >= grant.period && at < next
    const isOfTerms = lot.amount === amount && lot.priority === priority && lot.source === source && lot.paymentRef === null
    const expiresAt = expires === "next" ? next : null
    if (!isItsTurn || from > at || (until !== null && from >= until)) this.#report("recurring", `period ${period} of ${grantId} at ${at}`)
    if (!isOfTerms || lot.expiresAt !== expiresAt || next !== later(anchor, every, period + 1))
      this.#report("recurring", `${lot.lotId} is not of ${grantId}`)
    grant.period = period + 1
    grant.dueAt = next
  }
}
