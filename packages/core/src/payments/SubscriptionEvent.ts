/**
 * What can happen to the subscriptions of an account. Stream `subscription-{account id without its prefix}`; money in the smallest unit of its
 * currency.
 */
import { Schema } from "effect"
import { Credits } from "../Credits.ts"
import { Timestamp } from "../Timestamp.ts"
import { Minor } from "./PaymentEvent.ts"
import { Plan } from "./Plans.ts"

const subscriptionId = Schema.String

/** A payment for a time. */
const Paid = {
  subscriptionId,
  paymentId: Schema.String,
  plan: Plan,
  /** Periods are counted from 0. */
  period: Schema.Int,
  from: Timestamp,
  until: Timestamp
}

export const SubscriptionEvent = Schema.TaggedUnion({
  /** The first payment is to be made. The first period begins when it is captured. */
  SubscriptionStarted: { subscriptionId, accountId: Schema.String, paymentId: Schema.String, plan: Plan },
  /** The payment of the next period is to be made. There may be several, until one is captured. */
  SubscriptionPeriodRequested: {
    ...Paid,
    /** From 1. */
    attempt: Schema.Int,
    /** Whether the owner asked for it, and so can give other means of payment. */
    byOwner: Schema.optionalKey(Schema.Boolean),
    /** When the subscription ends unless one is captured. */
    graceUntil: Timestamp
  },
  /** A period was paid for. */
  SubscriptionPeriodBegan: Paid,
  /** A payment of a subscription failed. */
  SubscriptionPaymentFailed: { subscriptionId, paymentId: Schema.String, reason: Schema.String },
  /** A plan with a higher price is to be paid for the rest of a period, from `from` on: see `prorate` for what each number is. */
  SubscriptionUpgradeRequested: {
    ...Paid,
    before: Plan,
    /** When the period began. */
    began: Timestamp,
    charged: Minor,
    credited: Minor,
    amount: Minor,
    credits: Credits
  },
  /** The rest of the period was paid for, so the plan of `SubscriptionUpgradeRequested` is in force. */
  SubscriptionPlanChanged: { subscriptionId, paymentId: Schema.String, plan: Plan },
  /** The next period is of this plan. */
  SubscriptionPlanChosen: { subscriptionId, plan: Plan },
  /** A payment was captured that buys nothing of a subscription any more: its money goes back. */
  SubscriptionPaymentNotNeeded: { subscriptionId, paymentId: Schema.String },
  /** There is no period after the one that lasts. */
  SubscriptionCanceled: { subscriptionId },
  /** It was canceled, and goes on. */
  SubscriptionResumed: { subscriptionId },
  /** `canceled`: its owner wanted that; `unpaid`: nobody paid; `refunded`: its period's money went back; `replaced`: before it was paid. */
  SubscriptionEnded: { subscriptionId, reason: Schema.Literals(["canceled", "unpaid", "refunded", "replaced"]) }
})
export type SubscriptionEvent = typeof SubscriptionEvent.Type

export type EventOf<Tag extends SubscriptionEvent["_tag"]> = Extract<SubscriptionEvent, { readonly _tag: Tag }>
