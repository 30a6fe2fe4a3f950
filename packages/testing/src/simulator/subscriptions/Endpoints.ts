/** Subscriptions at simulated hosts: their operations, which are free, and the plans that all hosts have. */
import { Credits, type Operation, type Plans, SubscriptionOperations, type SubscriptionOptions } from "@millrace/core"
import { Duration } from "effect"

/** The operations, with their first prices in thousandths of a credit. */
export const OFFERS: ReadonlyArray<{ readonly operation: Operation.Any; readonly price: number }> = [
  { operation: SubscriptionOperations.subscribe, price: 0 },
  { operation: SubscriptionOperations.list, price: 0 },
  { operation: SubscriptionOperations.cancel, price: 0 }
]

const plan = (name: string, amount: number, credits: number, every: Plans.Plan["every"]): Plans.Plan => ({
  ...{ plan: name, amount, currency: "USD", credits: Credits.of(credits), every }
})

/** A day is the shortest period, so most are days. `plus` costs so little more than `daily` that the rest of a period is never paid. */
export const PLANS = [
  plan("daily", 301, 3_000_007, "day"),
  plan("plus", 349, 3_500_000, "day"),
  plan("pro", 1_999, 25_000_001, "day"),
  plan("weekly", 2_000, 30_000_000, "week"),
  plan("large", 9_001, 200_000_003, "week"),
  plan("monthly", 5_000, 99_000_000, "month")
] as const

/** How long a subscription whose next period is not paid goes on: two tries fit in, and not three. Milliseconds. */
export const GRACE = Duration.toMillis("40 hours")

export const terms: SubscriptionOptions = { plans: PLANS, grace: GRACE }
