/** The subscriptions in the log, as far as it was read: each period follows the one before it and was paid for, and each change of plan is recomputed. */
import { lotIdOfPayment, Subscription } from "@millrace/core"
import { noAmount } from "./Means.ts"
import type { PaymentIndex } from "./PaymentIndex.ts"
import { iso, type Replay, type ReportProblem } from "./Report.ts"
import type { RuleName } from "./rules/Catalog.ts"

type Event = Subscription.SubscriptionEvent
type Of<Tag extends Event["_tag"]> = Extract<Event, { readonly _tag: Tag }>

const UNPAID = noAmount("a period lasts that nobody paid for")
const UNFOLLOWED = noAmount("its owner paid for a time twice, or for none")
const WRONG_PRICE = noAmount("its owner was asked for another price than that of the rest of the period")

/** `price × rest / whole`, rounded down. */
const part = (price: number, rest: number, whole: number): number => Number((BigInt(price) * BigInt(rest)) / BigInt(whole))

export class SubscriptionIndex {
  readonly #payments: PaymentIndex

  constructor(payments: PaymentIndex) {
    this.#payments = payments
  }

  begin(report: ReportProblem): Replay {
    const { codec, evolve, initial } = Subscription.Subscription
    let all: Subscription.Subscriptions = initial
    return (type, data, at) => {
      const event = codec.decode(type, data)
      const account = all.accountId ?? (event._tag === "SubscriptionStarted" ? event.accountId : "")
      const told: ReportFinding = (rule, detail, stake) => report(rule, detail, () => ({ account, ...stake }))
      if (event._tag === "SubscriptionPeriodBegan") this.#began(all, event, told)
      if (event._tag === "SubscriptionPlanChanged") this.#paid(account, event, told)
      if (event._tag === "SubscriptionUpgradeRequested") prorated(all, event, told)
      all = evolve(all, event, at)
    }
  }

  #began({ accountId, current }: Subscription.Subscriptions, event: Of<"SubscriptionPeriodBegan">, told: ReportFinding): void {
    const before = current?.subscriptionId === event.subscriptionId ? current.period : null
    const { from, period, until } = event
    const follows = before === null ? period === 0 : period === before.number + 1 && from === before.until
    if (!follows || until <= from)
      told("subscription-period-follows", `period ${period} is from ${iso(from)} to ${iso(until)}, and ${endOf(before)}`, UNFOLLOWED)
    this.#paid(accountId ?? "", event, told)
  }

  /** A payment of this account for this time was captured before. */
  #paid(account: string, event: Of<"SubscriptionPeriodBegan"> | Of<"SubscriptionPlanChanged">, told: ReportFinding): void {
    const { paymentId, subscriptionId } = event
    const paid = this.#payments.ofLot(lotIdOfPayment(paymentId))
    if (paid === "unknown") return
    const order = paid?.order
    const purchase = order?.purchase._tag === "Period" ? order.purchase : undefined
    const isFor =
      order?.status === "captured" &&
      order.accountId === account &&
      purchase?.subscriptionId === subscriptionId &&
      purchase.plan === event.plan.plan
    const isSpan = event._tag === "SubscriptionPlanChanged" || (purchase?.from === event.from && purchase.until === event.until)
    if (!isFor || !isSpan) told("subscription-period-is-paid", `the payment ${paymentId} was not captured for it`, UNPAID)
  }
}

type ReportFinding = (rule: RuleName, detail: string, stake: ReturnType<typeof noAmount>) => void

const endOf = (period: Subscription.Period | null): string =>
  period === null ? "it is the first" : `period ${period.number} ended at ${iso(period.until)}`

const prorated = ({ current }: Subscription.Subscriptions, event: Of<"SubscriptionUpgradeRequested">, told: ReportFinding): void => {
  const { amount, before, began, charged, credited, credits, from, plan, until } = event
  const [rest, whole] = [until - from, until - began]
  const isOfPeriod = current?.period?.from === began && current.period.until === until && current.plan.plan === before.plan
  if (!isOfPeriod || rest < 0 || rest > whole || whole <= 0)
    return told("subscription-upgrade-is-prorated", "it is of no rest of the period that lasts", WRONG_PRICE)
  const [due, paid] = [part(plan.amount, rest, whole), part(before.amount, rest, whole)]
  const more = part(plan.credits, rest, whole) - part(before.credits, rest, whole)
  const isRight = charged === due && credited === paid && amount === Math.max(0, due - paid) && credits === Math.max(0, more)
  if (!isRight)
    told(
      "subscription-upgrade-is-prorated",
      `${due} less ${paid} were due, not ${charged} less ${credited}, for ${more} credits`,
      WRONG_PRICE
    )
}
