/**
 * Notices: what a host and its webhooks are told of accounts, credits, jobs, payments and subscriptions. They derive from events of the log, so every host derives
 * the same ones. A new notice is one row of {@link NOTICES}.
 */
import { type Aggregate, type EventStore, HashChain, type StateStore } from "@millrace/event-sourcing"
import { Effect, Schema, type Struct } from "effect"
import { Registration } from "../accounts/Registration.ts"
import { CreditsFromDecimal } from "../Credits.ts"
import type * as Job from "../jobs/Job.ts"
import { RefundReason } from "../ledger/AccountEvent.ts"
import { LotTerms } from "../ledger/Lots.ts"
import { toDecimal } from "../payments/Amount.ts"
import { granted, type Order } from "../payments/Payment.ts"
import type { EventOf } from "../payments/SubscriptionEvent.ts"
import { Timestamp } from "../Timestamp.ts"
import { ofAccounts, ofJobs, ofPayments, ofSubscriptions, type Row, type Sources } from "./Row.ts"

export type { Sources } from "./Row.ts"

const lot = Schema.String
const amount = CreditsFromDecimal
const payment = Schema.String
/** In units of the currency. */
const money = { money: Schema.Finite, currency: Schema.String }
const subscription = Schema.String
/** `until`: when the period ends, and its credits expire. */
const period = { subscription, plan: Schema.String, payment, until: Timestamp }
const job = { job: Schema.String, operation: Schema.String, request: Schema.String }

/** All notices by name. A name never changes, and facts are only added. */
export const NOTICES = {
  "account.opened": ofAccounts("An account was opened.", {}, { AccountOpened: () => ({}) }),
  "account.suspended": ofAccounts("An account was suspended: its priced calls are refused.", {}, { AccountSuspended: () => ({}) }),
  "account.reinstated": ofAccounts("A suspended account can make calls again.", {}, { AccountReinstated: () => ({}) }),
  "account.closed": ofAccounts("An account was closed for ever.", {}, { AccountClosed: () => ({}) }),
  "credits.granted": ofAccounts(
    "An account was granted credits.",
    { lot, amount, source: LotTerms.fields.source },
    { CreditsGranted: ({ amount, lotId, source }) => ({ lot: lotId, amount, source }) }
  ),
  "credits.clawedBack": ofAccounts(
    "A payment was taken back. `debt`: what was spent of its credits.",
    { lot, amount, debt: amount },
    { CreditsClawedBack: ({ amount, debt, lotId }) => ({ lot: lotId, amount, debt }) }
  ),
  "charge.refunded": ofAccounts(
    "A charge, or a part of it, was returned.",
    { reservation: Schema.String, amount, reason: RefundReason },
    {
      Refunded: ({ amount, reason, reservationId, stage }) =>
        stage === "reserved" ? undefined : { reservation: reservationId, amount, reason }
    }
  ),
  "lot.expired": ofAccounts(
    "Credits that were not spent in time were written off.",
    { lot, amount },
    { LotExpired: ({ amount, lotId }) => ({ lot: lotId, amount }) }
  ),
  "lot.expiring": ofAccounts(
    "Credits will expire. `amount`: what the lot has available now.",
    { lot, amount, expiresAt: Timestamp },
    { LotExpiryAnnounced: ({ amount, expiresAt, lotId }) => ({ lot: lotId, amount, expiresAt }) }
  ),
  "credits.low": ofAccounts(
    "The balance, held credits included, has fallen below the threshold of its account.",
    { threshold: amount, balance: amount },
    { BalanceFellBelow: ({ balance, threshold }) => ({ threshold, balance }) }
  ),
  "job.ended": ofJobs(
    "A job has ended. A job that failed or was cancelled costs nothing.",
    { ...job, status: Schema.Literals(["succeeded", "failed", "cancelled"]) },
    {
      JobSucceeded: (_, { id }, job) => ({ ...factsOf(id, job), status: "succeeded" }),
      JobFailed: (_, { id }, job) => ({ ...factsOf(id, job), status: "failed" }),
      JobCancelled: (_, { id }, job) => ({ ...factsOf(id, job), status: "cancelled" })
    }
  ),
  "payment.captured": ofPayments(
    "The money of a payment is there. `credits`: what it buys, without the bonus.",
    { payment, ...money, credits: amount },
    { PaymentCaptured: ({ amount }, _, order) => ({ ...moneyOf(order, amount), credits: granted({ ...order, captured: amount }) }) }
  ),
  "payment.failed": ofPayments(
    "A payment failed, or nobody paid it in time.",
    { payment, reason: Schema.String },
    { PaymentFailed: ({ reason }, _, { paymentId }) => ({ payment: paymentId, reason }) }
  ),
  "payment.refunded": ofPayments(
    "Money of a payment went back to the payer.",
    { payment, ...money },
    { PaymentRefunded: ({ amount }, _, order) => moneyOf(order, amount) }
  ),
  "payment.refund_failed": ofPayments(
    "A refund did not reach the payer: the host has the money again, and still owes it.",
    { payment, ...money },
    { PaymentRefundFailed: ({ reference }, _, order) => moneyOf(order, refundOf(order, reference)) }
  ),
  "payment.disputed": ofPayments(
    "The payer's bank took money of a payment back (`open`), or a dispute of it was `won` or `lost`.",
    { payment, ...money, status: Schema.Literals(["open", "won", "lost"]) },
    {
      PaymentDisputed: ({ amount }, _, order) => ({ ...moneyOf(order, amount), status: "open" }),
      PaymentDisputeWon: ({ reference }, _, order) => ({ ...moneyOf(order, disputed(order, reference)), status: "won" }),
      PaymentDisputeLost: ({ reference }, _, order) => ({ ...moneyOf(order, disputed(order, reference)), status: "lost" })
    }
  ),
  "subscription.started": ofSubscriptions("The first period of a subscription was paid for.", period, {
    SubscriptionPeriodBegan: (event) => (event.period === 0 ? periodOf(event) : undefined)
  }),
  "subscription.renewed": ofSubscriptions("The next period of a subscription was paid for.", period, {
    SubscriptionPeriodBegan: (event) => (event.period === 0 ? undefined : periodOf(event))
  }),
  "subscription.past_due": ofSubscriptions(
    "A period is over, and the next one is to be paid by `graceUntil`. Stored means of payment pay it at once.",
    { subscription, plan: Schema.String, payment, graceUntil: Timestamp },
    {
      SubscriptionPeriodRequested: ({ attempt, graceUntil, paymentId, plan, subscriptionId }) =>
        attempt === 1 ? { subscription: subscriptionId, plan: plan.plan, payment: paymentId, graceUntil } : undefined
    }
  ),
  "subscription.ended": ofSubscriptions(
    "A subscription has ended. `replaced`: by another, before it was paid for.",
    { subscription, reason: Schema.Literals(["canceled", "unpaid", "refunded", "replaced"]) },
    { SubscriptionEnded: ({ reason, subscriptionId }) => ({ subscription: subscriptionId, reason }) }
  )
}

const moneyOf = ({ currency, paymentId }: Order, minor: number) => ({ payment: paymentId, money: toDecimal({ minor, currency }), currency })

const periodOf = ({ paymentId, plan, subscriptionId, until }: EventOf<"SubscriptionPeriodBegan">) => ({
  ...{ subscription: subscriptionId, plan: plan.plan },
  ...{ payment: paymentId, until }
})

const refundOf = ({ refunds }: Order, reference: string): number => refunds.find((refund) => refund.reference === reference)?.minor ?? 0

const disputed = ({ disputes }: Order, reference: string): number => disputes.find((dispute) => dispute.reference === reference)?.minor ?? 0

const factsOf = (id: string, { operation, requestId }: Job.Accepted) => ({ job: id, operation, request: requestId })

export type Name = keyof typeof NOTICES

/** The names of all notices. */
export const NAMES = Object.keys(NOTICES) as ReadonlyArray<Name>

export const isName = (text: string): text is Name => Object.hasOwn(NOTICES, text)

/** The facts of a notice as JSON: amounts in decimal credits. */
export type Facts<N extends Name> = Struct.Simplify<(typeof NOTICES)[N]["facts"]["Encoded"]>

/** A notice of a name. */
export interface NoticeOf<N extends Name> {
  /** Names the notice for ever, at every host: receivers recognise a repetition by it. */
  readonly id: string
  readonly name: N
  /** The account that it is about. */
  readonly account: string
  /** When it happened: ISO 8601. */
  readonly at: string
  /** The place of its event in the log. */
  readonly position: EventStore.Position
  readonly facts: Facts<N>
}

/** A notice of any name. */
export type Notice = { readonly [N in Name]: NoticeOf<N> }[Name]

/** The names by the types of their events, because most events of a log are none of these. */
const BY_TYPE = Map.groupBy(
  NAMES.flatMap((name) => NOTICES[name].types.map((type) => ({ name, type }))),
  ({ type }) => type
)

/** Whether a notice may follow from an event. Does not parse it. */
export const mayTell = (event: EventStore.RecordedEvent): boolean =>
  BY_TYPE.get(event.type)?.some(({ name }) => NOTICES[name].selects(event)) ?? false

/** The notices of an event, at most one of each wanted name. Only for these is anything looked up. */
export const of = (
  event: EventStore.RecordedEvent,
  wanted: (name: Name) => boolean
): Effect.Effect<ReadonlyArray<Notice>, Aggregate.Failure, Sources> => {
  const names = BY_TYPE.get(event.type)?.filter(({ name }) => wanted(name) && NOTICES[name].selects(event)) ?? []
  if (names.length === 0) return Effect.succeed([])
  return Effect.map(
    Effect.forEach(names, ({ name }) => Effect.map((NOTICES[name] as Row).find(event), (found) => ({ name, found }))),
    (all) => all.flatMap(({ found, name }) => (found === undefined ? [] : [noticeOf(event, name, found)]))
  )
}

const noticeOf = (event: EventStore.RecordedEvent, name: Name, { account, facts }: { readonly account: string; readonly facts: unknown }) =>
  ({
    id: `${name.replaceAll(".", "_")}_${event.id}`,
    name,
    account,
    at: HashChain.atOf(event),
    position: event.position,
    facts
  }) as Notice

/**
 * The host's own id of a notice's account; undefined if it has none, was erased, or cannot be read. Only a store that is away is a failure.
 */
export const referenceOf = (
  account: string
): Effect.Effect<string | undefined, EventStore.StoreUnavailable | StateStore.StateUnavailable, Registration> =>
  Registration.use((registration) => registration.reference(account)).pipe(
    Effect.catchIf(
      (error) => error._tag !== "StoreUnavailable" && error._tag !== "StateUnavailable",
      () => Effect.undefined
    )
  )
