/** Checks the events of subscriptions, with bookkeeping of its own. */
import type { Subscription } from "@millrace/core"
import type { Report } from "./Rules.ts"

interface Entry {
  readonly subscriptionId: string
  /** Periods that began, and when the last one ends. */
  periods: number
  until: number
  hasEnded: boolean
}

export class SubscriptionChecker {
  /** The newest subscription of each account. */
  readonly #entries = new Map<string, Entry>()
  /** Payments that were asked for and have no outcome. */
  readonly #asked = new Set<string>()
  readonly #report: Report

  constructor(report: Report) {
    this.#report = report
  }

  enter(id: string, event: Subscription.SubscriptionEvent): void {
    const entry = this.#entries.get(id)
    if (event._tag === "SubscriptionStarted") return this.#started(id, entry, event)
    // What becomes of a payment may be heard after the end
    if (event._tag === "SubscriptionPaymentFailed") return
    if (event._tag === "SubscriptionPaymentNotNeeded") return this.#counted(event.paymentId)
    if (entry?.subscriptionId !== event.subscriptionId || entry.hasEnded) return this.#report("subscription", "it does not last")
    switch (event._tag) {
      case "SubscriptionEnded":
        entry.hasEnded = true
        return
      case "SubscriptionPeriodRequested":
      case "SubscriptionUpgradeRequested":
        if (this.#asked.has(event.paymentId)) this.#report("period", `${event.paymentId} was asked for before`)
        this.#asked.add(event.paymentId)
        return
      case "SubscriptionPlanChanged":
        return this.#counted(event.paymentId)
      case "SubscriptionPeriodBegan":
        return this.#began(entry, event)
      default:
    }
  }

  #started(id: string, entry: Entry | undefined, { paymentId, subscriptionId }: Of<"SubscriptionStarted">): void {
    if (entry !== undefined && !entry.hasEnded) this.#report("subscription", `${entry.subscriptionId} has not ended`)
    this.#entries.set(id, { subscriptionId, periods: 0, until: 0, hasEnded: false })
    this.#asked.add(paymentId)
  }

  #began(entry: Entry, { from, paymentId, period, until }: Of<"SubscriptionPeriodBegan">): void {
    if (period !== entry.periods) this.#report("period", `${entry.periods} periods began before`)
    if (entry.periods > 0 && from !== entry.until) this.#report("period", `the one before ended at ${entry.until}`)
    if (until <= from) this.#report("period", "it ends before it begins")
    entry.periods += 1
    entry.until = until
    this.#counted(paymentId)
  }

  /** A payment that was asked for has its outcome. */
  #counted(paymentId: string): void {
    if (!this.#asked.delete(paymentId)) this.#report("period", `${paymentId} counted before, or was not asked for`)
  }
}

type Of<Tag extends Subscription.SubscriptionEvent["_tag"]> = Extract<Subscription.SubscriptionEvent, { readonly _tag: Tag }>
