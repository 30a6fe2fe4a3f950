/**
 * The subscriptions in the log, folded by plain arithmetic from the plans that hosts have: what each payment must cost and bring, when each
 * period ends, and why each subscription ended. It shares no code with the ledger.
 */
import { type Payment, Subscription } from "@millrace/core"
import { later } from "../../oracle/Calendar.ts"
import type { Evidence, Report } from "../Evidence.ts"
import type { Recorded } from "../Histories.ts"
import { GRACE, PLANS } from "../subscriptions/Endpoints.ts"

const DAY = 24 * 3_600_000

type Plan = (typeof PLANS)[number]
type Event = Subscription.SubscriptionEvent
type Of<Tag extends Event["_tag"]> = Extract<Event, { readonly _tag: Tag }>

/** What a payment is for. Money in cents, credits in thousandths. */
export interface Due {
  readonly accountId: string
  readonly subscriptionId: string
  readonly buys: "first" | "period" | "upgrade"
  readonly amount: number
  readonly credits: number
  /** What became of it: whether it bought that, or was not needed. */
  outcome: "bought" | "notNeeded" | undefined
}

interface Entry {
  readonly subscriptionId: string
  readonly first: string
  plan: Plan
  /** The plan that was chosen for the next period. */
  next: string
  period: { readonly number: number; readonly from: number; readonly until: number; readonly paymentId: string } | undefined
  /** Where periods are counted from. */
  anchor: { readonly at: number; readonly number: number; readonly every: Plan["every"] } | undefined
  isCanceled: boolean
  /** The tries of the next period's payment that were made by the host, the newest last. */
  tries: ReadonlyArray<{ readonly paymentId: string; readonly at: number; readonly plan: string }>
}

const share = (whole: number, part: number, of: number): number => Number((BigInt(whole) * BigInt(part)) / BigInt(of))

/** Money that had gone back when the payment stood so. */
export const goneOf = ({ captured, disputes, refunds }: Payment.Order): number =>
  Math.min(
    captured,
    refunds.reduce((sum, { failed, minor }) => (failed === true ? sum : sum + minor), 0) +
      disputes.reduce((sum, { minor, status }) => (status === "won" ? sum : sum + minor), 0)
  )

export class Dues {
  /** By payment. */
  readonly byId = new Map<string, Due>()
  readonly #evidence: Evidence
  readonly #report: Report

  constructor(evidence: Evidence, report: Report) {
    this.#evidence = evidence
    this.#report = report
    for (const [id, { events }] of evidence.recorder.subscriptions.byId) this.#follow(Subscription.accountOf(id), events)
  }

  #follow(accountId: string, events: ReadonlyArray<Recorded<Event>>): void {
    let entry: Entry | undefined
    for (const recorded of events) {
      const { event } = recorded
      if (event._tag === "SubscriptionStarted") {
        const plan = this.#planOf(event.plan)
        const { paymentId: first, subscriptionId } = event
        entry = { subscriptionId, first, plan, next: plan.plan, period: undefined, anchor: undefined, isCanceled: false, tries: [] }
        this.#ask(first, { accountId, subscriptionId, buys: "first", amount: plan.amount, credits: plan.credits, outcome: undefined })
      } else if (entry !== undefined) this.#entered(entry, { ...recorded, event }, accountId)
    }
  }

  #ask(paymentId: string, due: Due): void {
    this.byId.set(paymentId, due)
  }

  /** A plan is one that hosts have, whole. */
  #planOf(plan: Plan | Of<"SubscriptionStarted">["plan"]): Plan {
    const known = PLANS.find((one) => one.plan === plan.plan)
    if (known === undefined) throw new Error(`There is no plan ${plan.plan}`)
    const { amount, credits, every } = known
    if (plan.amount !== amount || plan.credits !== credits || plan.every !== every) this.#report(`${plan.plan} has changed its terms`)
    return known
  }

  #entered(entry: Entry, recorded: Recorded<Exclude<Event, Of<"SubscriptionStarted">>>, accountId: string): void {
    const { at, event, index } = recorded
    switch (event._tag) {
      case "SubscriptionPeriodRequested":
        return this.#requested(entry, event, at, accountId)
      case "SubscriptionUpgradeRequested":
        return this.#upgrading(entry, event, accountId)
      case "SubscriptionPeriodBegan":
        return this.#began(entry, event, index)
      case "SubscriptionPlanChanged": {
        this.#bought(event.paymentId, "upgrade", index)
        entry.plan = this.#planOf(event.plan)
        entry.next = entry.plan.plan
        return
      }
      case "SubscriptionPlanChosen":
        entry.next = this.#planOf(event.plan).plan
        return
      case "SubscriptionCanceled":
        entry.isCanceled = true
        return
      case "SubscriptionResumed":
        entry.isCanceled = false
        return
      case "SubscriptionPaymentFailed":
        if (this.#orderAt(event.paymentId, index)?.status !== "failed") this.#report(`${event.paymentId} failed for its subscription only`)
        return
      case "SubscriptionPaymentNotNeeded":
        return this.#notNeeded(event.paymentId, index)
      case "SubscriptionEnded":
        return this.#ended(entry, event, recorded)
    }
  }

  /** The payment as the log had it when it had so many events. */
  #orderAt(paymentId: string, length: number): Payment.Order | undefined {
    for (const { events, states } of this.#evidence.recorder.payments.byId.values()) {
      if (states.at(-1)?.order?.paymentId !== paymentId) continue
      const last = events.filter(({ index }) => index <= length).length - 1
      return states[last]?.order
    }
    return undefined
  }

  #requested(entry: Entry, event: Of<"SubscriptionPeriodRequested">, at: number, accountId: string): void {
    const { byOwner = false, from, graceUntil, paymentId, period, subscriptionId, until } = event
    const of: Report = (violation) => this.#report(`${paymentId}: ${violation}`)
    const plan = this.#planOf(event.plan)
    this.#ask(paymentId, { accountId, subscriptionId, buys: "period", amount: plan.amount, credits: plan.credits, outcome: undefined })
    if (entry.period === undefined) return of("the next period was asked for before the first")
    if (period !== entry.period.number + 1 || from !== entry.period.until) of("it is not for the next period")
    if (until !== this.#endOf(entry, plan, from, period)) of(`its period ends at ${until}`)
    if (at < from) of("it was requested before the period ended")
    if (graceUntil !== entry.period.until + GRACE || at >= graceUntil) of(`the grace period ends at ${entry.period.until + GRACE}`)
    if (entry.isCanceled) of("it was requested for a subscription that was cancelled")
    if (!byOwner && plan.plan !== entry.next) of(`the plan ${entry.next} was chosen`)
    const last = entry.tries.at(-1)
    if (!byOwner && last?.plan === plan.plan && at < last.at + DAY) of("it was tried less than a day ago")
    entry.tries = [...entry.tries, { paymentId, at, plan: plan.plan }]
  }

  #endOf({ anchor }: Entry, { every }: Plan, from: number, period: number): number {
    return anchor === undefined || anchor.every !== every ? later(from, every, 1) : later(anchor.at, every, period + 1 - anchor.number)
  }

  #upgrading(entry: Entry, event: Of<"SubscriptionUpgradeRequested">, accountId: string): void {
    const { from, paymentId, subscriptionId } = event
    const plan = this.#planOf(event.plan)
    if (entry.period === undefined) return this.#report(`${paymentId} is for the rest of no period`)
    const [rest, whole] = [entry.period.until - from, entry.period.until - entry.period.from]
    const amount = share(plan.amount, rest, whole) - share(entry.plan.amount, rest, whole)
    const credits = share(plan.credits, rest, whole) - share(entry.plan.credits, rest, whole)
    if (amount < 50 || plan.every !== entry.plan.every) this.#report(`${paymentId} is for the rest of a period, which costs ${amount}`)
    this.#ask(paymentId, { accountId, subscriptionId, buys: "upgrade", amount, credits, outcome: undefined })
  }

  #began(entry: Entry, event: Of<"SubscriptionPeriodBegan">, index: number): void {
    const { from, paymentId, period, until } = event
    const plan = this.#planOf(event.plan)
    this.#bought(paymentId, period === 0 ? "first" : "period", index)
    const of: Report = (violation) => this.#report(`${event.subscriptionId}: period ${period} ${violation}`)
    const begins = entry.period?.until ?? this.#capturedAt(paymentId)
    if (from !== begins) of(`begins at ${from}, not ${begins}`)
    const ends = this.#endOf(entry, plan, from, period)
    if (until !== ends) of(`ends at ${until}, not ${ends}`)
    if (entry.anchor?.every !== plan.every) entry.anchor = { at: from, number: period, every: plan.every }
    // Another plan that was chosen meanwhile is that of the period after it
    if (entry.next === entry.plan.plan) entry.next = plan.plan
    Object.assign(entry, { plan, period: { number: period, from, until, paymentId }, tries: [] })
  }

  #capturedAt(paymentId: string): number | undefined {
    for (const { events, states } of this.#evidence.recorder.payments.byId.values())
      if (states.at(-1)?.order?.paymentId === paymentId) return events.find(({ event }) => event._tag === "PaymentCaptured")?.at
    return undefined
  }

  /** The gateway took its money, the log has that, and it bought nothing before. */
  #bought(paymentId: string, buys: Due["buys"], index: number): void {
    const due = this.#outcome(paymentId, index)
    if (due === undefined) return
    if (due.buys !== buys) this.#report(`${paymentId} was for ${due.buys}, and bought ${buys}`)
    due.outcome = "bought"
  }

  #notNeeded(paymentId: string, index: number): void {
    const due = this.#outcome(paymentId, index)
    if (due !== undefined) due.outcome = "notNeeded"
  }

  #outcome(paymentId: string, index: number): Due | undefined {
    const due = this.byId.get(paymentId)
    if (due === undefined) return void this.#report(`${paymentId} was not asked for`)
    if (due.outcome !== undefined) this.#report(`${paymentId} counts twice`)
    if (this.#orderAt(paymentId, index)?.status !== "captured") this.#report(`${paymentId} counts, and was not captured`)
    return due
  }

  #ended(entry: Entry, { reason, subscriptionId }: Of<"SubscriptionEnded">, { at, index }: Recorded<Event>): void {
    const of: Report = (violation) => this.#report(`${subscriptionId} ended as ${reason}: ${violation}`)
    const { calls } = this.#evidence
    const cancels = calls.filter(
      ({ intent: { input, operation }, lengthBefore }) =>
        operation === "billing.cancelSubscription" && input.subscription === subscriptionId && lengthBefore < index
    )
    switch (reason) {
      case "canceled": {
        if (cancels.length === 0) return of("its owner never cancelled it")
        const isNow = cancels.some(({ intent }) => intent.input.now === "true")
        if (!isNow && entry.period !== undefined && at < entry.period.until) of(`its period ends at ${entry.period.until}`)
        return
      }
      case "unpaid": {
        if (entry.period !== undefined && at < entry.period.until + GRACE) of(`its grace ends at ${entry.period.until + GRACE}`)
        if (entry.period === undefined && this.#orderAt(entry.first, index)?.status !== "failed") of("its first payment did not fail")
        return
      }
      case "refunded": {
        const order = entry.period && this.#orderAt(entry.period.paymentId, index)
        if (order === undefined || goneOf(order) < order.captured) of("money of its period is left")
        return
      }
      case "replaced":
        if (entry.period !== undefined) of("it was paid")
    }
  }
}
