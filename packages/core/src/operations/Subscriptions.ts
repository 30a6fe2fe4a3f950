/** The operations of subscriptions: a plan is taken, changed, shown and canceled. */
import { Effect, Schema } from "effect"
import { toDecimal as creditsOf } from "../Credits.ts"
import { bare, paymentIdOf } from "../Ids.ts"
import { Every } from "../ledger/Periods.ts"
import { toDecimal } from "../payments/Amount.ts"
import type { Plan } from "../payments/Plans.ts"
import { type Shown, Subscriptions } from "../payments/Subscriptions.ts"
import { Timestamp } from "../Timestamp.ts"
import * as Operation from "../work/Operation.ts"
import { InvalidInput, NotFound, UpstreamNotConfigured } from "../work/OperationError.ts"
import { configured, nextOf, notConfigured, unavailable } from "./Billing.ts"

const Record = Schema.Struct({
  subscription_id: Schema.String,
  plan: Schema.String,
  /** `past_due`: the period is over, and the next one is not paid yet. `canceled`: it ends with its period. */
  status: Schema.Literals(["pending", "active", "past_due", "canceled", "ended"]),
  /** Null before the first period is paid. */
  current_period_end: Schema.NullOr(Timestamp),
  /** Credits that each period brings. They expire with it. */
  credits_per_period: Schema.Finite,
  /** The plan of the next period, where it is another. */
  next_plan: Schema.optionalKey(Schema.String)
})

const Payable = Schema.Struct({
  ...Record.fields,
  /** A payment that is to be made: of the first or the next period, or of the rest of this one with a dearer plan. */
  payment_id: Schema.optionalKey(Schema.String),
  /** Of this payment, in units of the currency. */
  amount: Schema.optionalKey(Schema.Finite),
  currency: Schema.optionalKey(Schema.String),
  gateway: Schema.optionalKey(Schema.String),
  client_secret: Schema.optionalKey(Schema.String),
  approve_url: Schema.optionalKey(Schema.String),
  instruction: Schema.optionalKey(Schema.String)
})

const PlanRecord = Schema.Struct({
  plan: Schema.String,
  /** Of a period, in units of the currency. */
  price: Schema.Finite,
  currency: Schema.String,
  credits_per_period: Schema.Finite,
  period: Every
})

const recordOf = ({ status, subscription: { endedAt, next, period, plan, subscriptionId } }: Shown): typeof Record.Type => ({
  subscription_id: subscriptionId,
  plan: plan.plan,
  status,
  current_period_end: period?.until ?? null,
  credits_per_period: creditsOf(plan.credits),
  ...(next.plan === plan.plan || endedAt !== null ? {} : { next_plan: next.plan })
})

const payableOf = ({ payable, ...shown }: Shown): typeof Payable.Type => ({
  ...recordOf({ ...shown, payable }),
  ...(payable === undefined
    ? {}
    : {
        payment_id: payable.order.paymentId,
        amount: toDecimal({ minor: payable.order.amount, currency: payable.order.currency }),
        currency: payable.order.currency,
        gateway: payable.order.gateway,
        ...nextOf(payable.next)
      })
})

const planOf = ({ amount, credits, currency, every, plan }: Plan): typeof PlanRecord.Type => ({
  plan,
  price: toDecimal({ minor: amount, currency }),
  currency,
  credits_per_period: creditsOf(credits),
  period: every
})

const EXAMPLE = {
  subscription_id: "sub_01M7YKD46JCP6VGMKADN3JSPJP",
  plan: "standard",
  status: "active",
  current_period_end: Date.UTC(2026, 11, 23, 9, 30),
  credits_per_period: 25_000
} as const

const name = Schema.String.check(Schema.isMinLength(1), Schema.isMaxCodePoints(100))

const unknownPlan = ({ message }: { readonly message: string }) => new InvalidInput({ field: "plan", message })

/** Fails also where this host has no plans, which the catalog then says. */
const subscribable = Effect.andThen(
  configured,
  Subscriptions.use(({ plans }) => (plans.length > 0 ? Effect.void : Effect.fail(new UpstreamNotConfigured({ upstream: "plans" }))))
)

export const subscribe = Operation.make("billing.subscribe", {
  summary: "Subscribe to a plan, or change it",
  description:
    "Each period of a plan is a payment, whose credits expire with the period. The first payment is made as a top-up is: the answer has what the " +
    "payer needs, and `/billing/topups/{payment}/capture` captures it. An account has one subscription at a time. With another plan this changes " +
    "it: a dearer plan is paid at once for the rest of the period and brings its credits, any other begins with the next period. A canceled " +
    "subscription goes on, and one that is `past_due` can be paid. Without `plan`, the first plan of the host is meant.",
  price: 0,
  local: true,
  route: { method: "POST", path: "/billing/subscriptions", body: { plan: Schema.optionalKey(name) } },
  success: Payable,
  secret: ["client_secret"],
  configured: subscribable,
  check: Effect.fnUntraced(function* ({ plan }) {
    yield* configured
    const { plans } = yield* Subscriptions
    const isKnown = plan === undefined ? plans.length > 0 : plans.some((known) => known.plan === plan)
    const message = plans.length === 0 ? "this host has no plans" : `the plans are ${plans.map((known) => known.plan).join(", ")}`
    if (!isKnown) return yield* unknownPlan({ message })
  }),
  run: Effect.fnUntraced(function* ({ plan }, { accountId, requestId, reservationId }) {
    const ids = { subscriptionId: `sub_${bare(reservationId)}`, paymentId: paymentIdOf(reservationId) }
    const subscriptions = yield* Subscriptions
    const shown = yield* Effect.mapError(subscriptions.want(accountId, plan, ids, { $correlationId: requestId }), (error) => {
      if (error._tag === "PlanNotFound") return unknownPlan(error)
      return error._tag === "NoGateway" ? notConfigured(error) : unavailable(error)
    })
    return { data: payableOf(shown) }
  }),
  example: {
    input: { plan: "standard" },
    data: {
      ...EXAMPLE,
      status: "pending",
      current_period_end: null,
      payment_id: "pay_01M7YKD46JCP6VGMKADN3JSPJP",
      amount: 20,
      currency: "USD",
      gateway: "manual",
      instruction: "Pay 20.00 USD to the operator of this host, and give pay_01M7YKD46JCP6VGMKADN3JSPJP as the reference."
    }
  },
  links: [{ operation: "billing.cancelSubscription", parameters: { subscription: "/subscription_id" } }]
})

export const list = Operation.make("billing.subscriptions", {
  summary: "The account's subscription, and the plans of the host",
  description: "`subscriptions` has the newest subscription, also after it ended; it is empty if the account never had one.",
  price: 0,
  local: true,
  route: { method: "GET", path: "/billing/subscriptions" },
  success: Schema.Struct({ subscriptions: Schema.Array(Record), plans: Schema.Array(PlanRecord) }),
  run: Effect.fnUntraced(function* (_input, { accountId }) {
    const subscriptions = yield* Subscriptions
    const current = yield* Effect.mapError(subscriptions.current(accountId), unavailable)
    return { data: { subscriptions: current === undefined ? [] : [recordOf(current)], plans: subscriptions.plans.map(planOf) } }
  }),
  example: {
    input: {},
    data: {
      subscriptions: [EXAMPLE],
      plans: [{ plan: "standard", price: 20, currency: "USD", credits_per_period: 25_000, period: "month" }]
    }
  }
})

export const cancel = Operation.make("billing.cancelSubscription", {
  summary: "Cancel a subscription",
  description:
    "It ends with its period, or at once with `now=true`. Credits that were paid for can be used until they expire in either case. Canceling " +
    "again changes nothing.",
  price: 0,
  local: true,
  route: {
    method: "DELETE",
    path: "/billing/subscriptions/:subscription",
    params: { subscription: name },
    query: { now: Schema.optionalKey(Schema.Literals(["true", "false"])) }
  },
  success: Record,
  run: Effect.fnUntraced(function* ({ now = "false", subscription }, { accountId, requestId }) {
    const subscriptions = yield* Subscriptions
    const shown = yield* Effect.mapError(
      subscriptions.cancel(accountId, subscription, now === "true", { $correlationId: requestId }),
      (error) => (error._tag === "SubscriptionNotFound" ? new NotFound({ resource: "subscription" }) : unavailable(error))
    )
    return { data: recordOf(shown) }
  }),
  example: { input: { subscription: EXAMPLE.subscription_id }, data: { ...EXAMPLE, status: "canceled" } }
})
