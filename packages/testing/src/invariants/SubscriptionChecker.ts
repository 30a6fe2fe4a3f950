/** Checks the events of subscriptions, and the payments and lots of their periods, with bookkeeping of its own. */
import { type AccountEvent, lotIdOfPayment, Payment, type Plans, type Subscription } from "@millrace/core"
import type { PaymentChecker } from "./PaymentChecker.ts"
import type { Report } from "./Rules.ts"

interface Entry {
  readonly subscriptionId: string
  /** Periods that began, and when the last one ends. */
  periods: number
  until: number
  /** The plan in force. */
  plan: Plans.Plan
  hasEnded: boolean
}

/** The lot of a period, or of the rest of one. */
interface Bought {
  readonly accountId: string
  /** When the period ends. */
  readonly until: number
}

export class SubscriptionChecker {
  /** The newest subscription of each account. */
  readonly #entries = new Map<string, Entry>()
  /** Payments that were asked for and have no outcome, and the end of the period that an upgrade is for. */
  readonly #asked = new Map<string, number | undefined>()
  /** By the id of the lot. */
  readonly #bought = new Map<string, Bought>()
  /** When lots expire, by their ids. */
  readonly #lots = new Map<string, number | null>()
  readonly #payments: PaymentChecker | undefined
  readonly #report: Report

  /** `payments`: if the log has payments. */
  constructor(payments: PaymentChecker | undefined, report: Report) {
    this.#payments = payments
    this.#report = report
  }

  enter(id: string, event: Subscription.SubscriptionEvent): void {
    const entry = this.#entries.get(id)
    if (event._tag === "SubscriptionStarted") return this.#started(id, entry, event)
    // What becomes of a payment may be heard after the end
    if (event._tag === "SubscriptionPaymentFailed") return
    if (event._tag === "SubscriptionPaymentNotNeeded") {
      this.#counted(event.paymentId)
      return
    }
    if (entry?.subscriptionId !== event.subscriptionId || entry.hasEnded) return this.#report("subscription", "it does not last")
    switch (event._tag) {
      case "SubscriptionEnded":
        entry.hasEnded = true
        return
      case "SubscriptionPeriodRequested":
        return this.#ask(event.paymentId)
      case "SubscriptionUpgradeRequested":
        this.#prorated(entry, event)
        return this.#ask(event.paymentId, event.until)
      case "SubscriptionPlanChanged":
        entry.plan = event.plan
        return this.#paid(id, event.paymentId, this.#counted(event.paymentId) ?? entry.until)
      case "SubscriptionPeriodBegan":
        return this.#began(id, entry, event)
      default:
    }
  }

  #started(id: string, entry: Entry | undefined, { paymentId, plan, subscriptionId }: Of<"SubscriptionStarted">): void {
    if (entry !== undefined && !entry.hasEnded) this.#report("subscription", `${entry.subscriptionId} has not ended`)
    this.#entries.set(id, { subscriptionId, periods: 0, until: 0, plan, hasEnded: false })
    this.#ask(paymentId)
  }

  #ask(paymentId: string, until?: number): void {
    if (this.#asked.has(paymentId)) this.#report("period", `${paymentId} was asked for before`)
    this.#asked.set(paymentId, until)
  }

  /** Each part is the whole times the rest of the period, rounded down. */
  #prorated(
    entry: Entry,
    { amount, before, began, charged, credited, credits, from, plan, until }: Of<"SubscriptionUpgradeRequested">
  ): void {
    if (until !== entry.until || from < began || from >= until) return this.#report("proration", `the period ends at ${entry.until}`)
    if (before.plan !== entry.plan.plan) this.#report("proration", `the plan is ${entry.plan.plan}`)
    const rest = (whole: number) => Number((BigInt(whole) * BigInt(until - from)) / BigInt(until - began))
    const due = { charged: rest(plan.amount), credited: rest(before.amount), credits: rest(plan.credits) - rest(before.credits) }
    if (charged !== due.charged || credited !== due.credited || amount !== due.charged - due.credited)
      this.#report("proration", `the rest costs ${due.charged} less ${due.credited}`)
    if (credits !== Math.max(0, due.credits)) this.#report("proration", `the rest brings ${due.credits} more`)
  }

  #began(id: string, entry: Entry, { from, paymentId, period, plan, until }: Of<"SubscriptionPeriodBegan">): void {
    if (period !== entry.periods) this.#report("period", `${entry.periods} periods began before`)
    if (entry.periods > 0 && from !== entry.until) this.#report("period", `the one before ended at ${entry.until}`)
    if (until <= from) this.#report("period", "it ends before it begins")
    entry.periods += 1
    entry.until = until
    entry.plan = plan
    this.#counted(paymentId)
    this.#paid(id, paymentId, until)
  }

  /** A payment that was asked for has its outcome. Returns the end of the period that an upgrade is for. */
  #counted(paymentId: string): number | undefined {
    const until = this.#asked.get(paymentId)
    if (!this.#asked.delete(paymentId)) this.#report("period", `${paymentId} counted before, or was not asked for`)
    return until
  }

  /** A payment bought something: it was captured, and its lot expires with the period. */
  #paid(accountId: string, paymentId: string, until: number): void {
    if (this.#payments !== undefined && this.#payments.of(Payment.paymentIdOf(paymentId))?.reached !== "captured")
      this.#report("periodLot", `${paymentId} was not captured`)
    const lotId = lotIdOfPayment(paymentId)
    this.#bought.set(lotId, { accountId, until })
    this.#compare(lotId)
  }

  /** Looks at the lots of periods, whichever is written first. */
  follow(event: AccountEvent): void {
    if (event._tag !== "CreditsGranted") return
    this.#lots.set(event.lotId, event.expiresAt)
    this.#compare(event.lotId)
  }

  #compare(lotId: string): void {
    const [bought, expiresAt] = [this.#bought.get(lotId), this.#lots.get(lotId)]
    if (bought !== undefined && expiresAt !== undefined && expiresAt !== bought.until)
      this.#report("periodLot", `${lotId} expires at ${expiresAt}, and its period ends at ${bought.until}`)
  }

  /** Periods that were paid and never granted: the ids of their streams and lots. */
  lost(): ReadonlyArray<readonly [id: string, lotId: string]> {
    return [...this.#bought].flatMap(([lotId, { accountId }]) => (this.#lots.has(lotId) ? [] : [[accountId, lotId] as const]))
  }
}

type Of<Tag extends Subscription.SubscriptionEvent["_tag"]> = Extract<Subscription.SubscriptionEvent, { readonly _tag: Tag }>
