/**
 * Subscriptions and their payments. What is decided in the stream of an account's subscriptions is paid by payments of `Checkout`; what became
 * of these is written back. Each step may be repeated, at any host: `SubscriptionUpkeep` does so after a process died.
 */
import { Aggregate, type EventStore } from "@millrace/event-sourcing"
import { Clock, Context, Duration, Effect, Layer, Schema } from "effect"
import * as Credits from "../Credits.ts"
import { newPaymentId } from "../Ids.ts"
import type { Timestamp } from "../Timestamp.ts"
import { Checkout, type NewOrder, type NoGateway, type PaymentNotFound } from "./Checkout.ts"
import * as Payment from "./Payment.ts"
import { type Begun, GatewayRefused, type GatewayUnavailable } from "./PaymentGateway.ts"
import { Payments } from "./Payments.ts"
import { linesOf, type Plan } from "./Plans.ts"
import * as Subscription from "./Subscription.ts"

/** The host has no plan of this name. */
export class PlanNotFound extends Schema.TaggedError<PlanNotFound>()("PlanNotFound", { plans: Schema.Array(Schema.String) }) {
  override get message(): string {
    return this.plans.length === 0 ? "This host has no plans" : `The plans of this host are ${this.plans.join(", ")}`
  }
}

/** There is no such subscription, or it is another account's. */
export class SubscriptionNotFound extends Schema.TaggedError<SubscriptionNotFound>()("SubscriptionNotFound", {
  subscriptionId: Schema.String
}) {
  override get message(): string {
    return `There is no subscription ${this.subscriptionId}`
  }
}

export interface SubscriptionOptions {
  /** None by default. The first is that of a subscription that names none. */
  readonly plans?: ReadonlyArray<Plan>
  /** How long a subscription whose next period is not paid goes on: seven days by default. */
  readonly grace?: Duration.Input
  /** The tax that prices include: none by default. */
  readonly tax?: Payment.Tax
  /** Who sells, as it stands on invoices: lines of text. Nothing by default. */
  readonly seller?: string
}

/** What an invoice says beside what was bought. */
interface Wording extends Pick<SubscriptionOptions, "seller" | "tax"> {}

const GRACE = "7 days"

/** A subscription, how it stands, and what its owner can pay now. */
export interface Shown {
  readonly subscription: Subscription.Subscription
  readonly status: Subscription.Status
  readonly payable: { readonly order: Payment.Order; readonly next: Begun["next"] | undefined } | undefined
}

type Failure = NoGateway | GatewayUnavailable | PaymentNotFound | Aggregate.Failure

export class Subscriptions extends Context.Service<
  Subscriptions,
  {
    readonly plans: ReadonlyArray<Plan>
    /** Starts a subscription, or changes the plan of the one that there is. The ids are used where it starts, or is to be paid. */
    readonly want: (
      accountId: string,
      plan: string | undefined,
      ids: { readonly subscriptionId: string; readonly paymentId: string },
      metadata?: Aggregate.Metadata
    ) => Effect.Effect<Shown, PlanNotFound | GatewayRefused | Failure>
    /** Cancels at the period's end, or now. Credits that were paid for stay until they expire. Canceling again changes nothing. */
    readonly cancel: (
      accountId: string,
      subscriptionId: string,
      isNow: boolean,
      metadata?: Aggregate.Metadata
    ) => Effect.Effect<Shown, SubscriptionNotFound | Aggregate.Failure>
    /** The newest subscription of an account; undefined if it has none. */
    readonly current: (accountId: string) => Effect.Effect<Shown | undefined, Aggregate.Failure>
    /** Writes what became of a payment, if it is of a subscription. */
    readonly note: (paymentId: string) => Effect.Effect<void, Aggregate.Failure>
    /** Does what is due for the subscriptions in a stream: requests and begins payments, and ends what has ended. */
    readonly advance: (stream: string) => Effect.Effect<void, Failure>
    /** Gives back the money of payments that buy nothing any more. */
    readonly giveBack: (stream: string) => Effect.Effect<void, GatewayRefused | Failure>
    /** Accounts whose streams this host cannot read: for `/ready`. */
    readonly refused: () => ReadonlyArray<Aggregate.StreamRefused>
  }
>()("@millrace/core/payments/Subscriptions") {
  static readonly layer = (
    options: SubscriptionOptions = {}
  ): Layer.Layer<Subscriptions, never, Payments | Checkout | EventStore.EventStore> =>
    Layer.effect(
      Subscriptions,
      Effect.suspend(() => make(options))
    )
}

/** What is paid by an attempt. `agreement`: the payer's stored means, if there are any. */
const orderOf = (attempt: Subscription.Attempt, accountId: string, agreement: string | undefined, wording: Wording): NewOrder => {
  const { buys, byOwner = false, from, paymentId, period, plan, subscriptionId, until, upgrade } = attempt
  const span = { from, until }
  const lines = upgrade === undefined ? {} : { lines: linesOf(upgrade.before, plan, upgrade, span) }
  const every = buys === "first" ? { every: plan.every } : {}
  return {
    ...{ paymentId, accountId, description: `Plan ${plan.plan}`, currency: plan.currency, bonus: NO_BONUS },
    ...{ amount: upgrade?.amount ?? plan.amount, credits: upgrade?.credits ?? plan.credits },
    ...wording,
    ...lines,
    purchase: { _tag: "Period", subscriptionId, plan: plan.plan, period, ...span, ...every },
    recurring: agreement === undefined || byOwner ? {} : { agreement }
  }
}

const NO_BONUS = Credits.zero

/** A payment of a subscription that was captured, with the time that it bought. */
const purchaseOf = ({ purchase }: Payment.Order) => (purchase._tag === "Period" ? purchase : undefined)

/** Decides by `decided`, and requests what is to be paid. Where stored means are declined for an upgrade, the owner is asked for others. */
const requesting = <A, D, E>(
  decided: (paymentId: string) => Effect.Effect<Subscription.Subscriptions, D>,
  plan: Plan,
  pay: (all: Subscription.Subscriptions, attempt: Subscription.Attempt) => Effect.Effect<A, E | GatewayRefused>
) => {
  const request = (paymentId: string): Effect.Effect<A | undefined, D | E | GatewayRefused> =>
    Effect.flatMap(decided(paymentId), (all): Effect.Effect<A | undefined, D | E | GatewayRefused> => {
      const attempt = Subscription.payable(all, plan)
      if (attempt === undefined) return Effect.undefined
      if (attempt.buys !== "upgrade" || Subscription.isDeclined(all, attempt)) return pay(all, attempt)
      return Effect.catchIf(
        pay(all, attempt),
        (error): error is GatewayRefused => error instanceof GatewayRefused,
        () => Effect.flatMap(newPaymentId, request)
      )
    })
  return request
}

const make = Effect.fnUntraced(function* ({ grace = GRACE, plans = [], seller, tax }: SubscriptionOptions) {
  const wording: Wording = { ...(tax === undefined ? {} : { tax }), ...(seller === undefined ? {} : { seller }) }
  const payments = yield* Payments
  const checkout = yield* Checkout
  const { execute, read, refused } = yield* Aggregate.make(Subscription.Subscription)
  const graceMillis = Duration.toMillis(grace)

  const note = Effect.fn("Subscriptions.note")(function* (paymentId: string) {
    const order = yield* payments.order(paymentId)
    const bought = order === undefined ? undefined : purchaseOf(order)
    if (order === undefined || bought === undefined) return
    const metadata = { $correlationId: paymentId }
    const stream = Subscription.streamOf(order.accountId)
    if (order.status === "failed") yield* execute(stream, Subscription.failed(paymentId, order.reason ?? "The payment failed"), metadata)
    if (order.status !== "captured") return
    if (order.notGranted === undefined) yield* execute(stream, Subscription.captured(paymentId, bought), metadata)
    if (Payment.statusOf(order) === "refunded") yield* execute(stream, Subscription.refunded(paymentId), metadata)
  })

  /** The payer's stored means: those by which the newest period was paid. */
  const agreementOf = Effect.fnUntraced(function* ({ current }: Subscription.Subscriptions) {
    const paid = current?.period == null ? undefined : yield* payments.order(current.period.paymentId)
    return paid?.gateway === checkout.gateway ? paid?.agreement : undefined
  })

  /** Requests the payment that can be made now, and takes it from stored means. What the gateway refuses has failed. */
  const pay = Effect.fnUntraced(function* (all: Subscription.Subscriptions, attempt: Subscription.Attempt) {
    const { accountId } = all
    if (accountId === null) return undefined
    const { paymentId } = attempt
    const agreement = Subscription.isDeclined(all, attempt) ? undefined : yield* agreementOf(all)
    const order = orderOf(attempt, accountId, agreement, wording)
    const begun = yield* Effect.tapErrorTag(checkout.request(order, { $correlationId: paymentId }), "GatewayRefused", () => note(paymentId))
    if (begun.order.recurring?.agreement !== undefined) yield* checkout.capture(accountId, paymentId)
    yield* note(paymentId)
    const now = yield* payments.order(paymentId)
    const isOpen = now?.status === "pending" || now?.status === "authorized"
    return now === undefined || !isOpen ? undefined : { order: now, next: begun.next }
  })

  const shown = Effect.fnUntraced(function* (stream: string, payable?: Shown["payable"]) {
    const { current } = (yield* read(stream)).state
    const now: Timestamp = yield* Clock.currentTimeMillis
    return current === null ? undefined : { subscription: current, status: Subscription.statusOf(current, now), payable }
  })

  const found = (subscriptionId: string) => (subscription: Shown | undefined) =>
    subscription?.subscription.subscriptionId === subscriptionId
      ? Effect.succeed(subscription)
      : Effect.fail(new SubscriptionNotFound({ subscriptionId }))

  return Subscriptions.of({
    plans,
    note,
    refused,
    want: Effect.fn("Subscriptions.want")(function* (accountId: string, name: string | undefined, ids, metadata?: Aggregate.Metadata) {
      const plan = name === undefined ? plans[0] : plans.find((plan) => plan.plan === name)
      if (plan === undefined) return yield* new PlanNotFound({ plans: plans.map((plan) => plan.plan) })
      const stream = Subscription.streamOf(accountId)
      const decided = (paymentId: string) =>
        Effect.map(execute(stream, Subscription.want({ ...ids, paymentId, accountId, plan }, graceMillis), metadata), ({ state }) => state)
      const payable = yield* requesting(decided, plan, pay)(ids.paymentId)
      return (yield* shown(stream, payable)) ?? (yield* Effect.die(new Error("A subscription that is wanted exists")))
    }),
    cancel: Effect.fn("Subscriptions.cancel")(function* (accountId: string, subscriptionId: string, isNow: boolean, metadata) {
      const stream = Subscription.streamOf(accountId)
      yield* execute(stream, Subscription.cancel(subscriptionId, isNow), metadata)
      return yield* Effect.flatMap(shown(stream), found(subscriptionId))
    }),
    current: (accountId) => shown(Subscription.streamOf(accountId)),
    advance: Effect.fn("Subscriptions.advance")(function* (stream: string) {
      const { state } = yield* execute(stream, Subscription.due({ grace: graceMillis, paymentId: yield* newPaymentId }))
      const attempt = Subscription.payable(state)
      // A refusal was written as the failure of the payment, which is tried again later
      if (attempt !== undefined) yield* Effect.catchTag(pay(state, attempt), "GatewayRefused", () => Effect.void)
    }),
    giveBack: Effect.fn("Subscriptions.giveBack")(function* (stream: string) {
      for (const paymentId of (yield* read(stream)).state.notNeeded) {
        const order = yield* payments.order(paymentId)
        if (order === undefined || order.captured <= Payment.returned(order)) continue
        yield* Effect.catchTag(checkout.refund(paymentId, { refundId: `${paymentId}_not_needed` }), "RefundTooLarge", () => Effect.void)
      }
    })
  })
})
