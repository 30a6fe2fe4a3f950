/**
 * The subscriptions of an account, of which at most one has not ended. Stream `subscription-{account id without its prefix}`.
 *
 * A period begins where the one before it ended, and is paid by a payment of its own. When a period ends, the payment of the next one is
 * requested. If that fails, it is requested again each day until the grace period is over. Whichever of these payments is captured first
 * counts; the money of the others goes back.
 */
import { type Decider, type Decision, EventCodec } from "@millrace/event-sourcing"
import { Result } from "effect"
import { bare } from "../Ids.ts"
import { startOf } from "../ledger/Periods.ts"
import type { Timestamp } from "../Timestamp.ts"
import { type Plan, prorate } from "./Plans.ts"
import { type EventOf, SubscriptionEvent } from "./SubscriptionEvent.ts"

export { SubscriptionEvent } from "./SubscriptionEvent.ts"

/** The id of the stream of an account's subscriptions. */
export const streamOf = (accountId: string): string => bare(accountId)

/** The account whose subscriptions are in the stream of this id. */
export const accountOf = (stream: string): string => `acc_${stream}`

// state

export interface Period {
  /** From 0. */
  readonly number: number
  readonly from: Timestamp
  readonly until: Timestamp
  readonly paymentId: string
}

/** A payment that was requested, and was not captured yet. It may have failed: money that comes later still counts. */
export interface Attempt {
  readonly subscriptionId: string
  readonly paymentId: string
  readonly buys: "first" | "period" | "upgrade"
  readonly plan: Plan
  readonly period: number
  readonly from: Timestamp
  readonly until: Timestamp
  readonly requestedAt: Timestamp
  readonly failed: boolean
  /** Whether the owner asked for it, and so can give other means of payment. */
  readonly byOwner?: boolean
  /** Of an upgrade: the plan before, and the credits and money of the rest. */
  readonly upgrade?: Pick<EventOf<"SubscriptionUpgradeRequested">, "amount" | "before" | "charged" | "credited" | "credits">
}

export interface Subscription {
  readonly subscriptionId: string
  /** The plan in force. */
  readonly plan: Plan
  /** That of the next period. */
  readonly next: Plan
  /** The period that was paid last; null before the first. */
  readonly period: Period | null
  /** Where its periods are counted from: the beginning of period `number`. */
  readonly anchor: { readonly at: Timestamp; readonly number: number } | null
  /** While the next period is to be paid: when the subscription ends unless it is. */
  readonly graceUntil: Timestamp | null
  readonly canceled: boolean
  readonly endedAt: Timestamp | null
}

export interface Subscriptions {
  readonly accountId: string | null
  /** The newest; the others have ended. */
  readonly current: Subscription | null
  /** Payments that may still be captured, of this subscription or an earlier one, the newest last. */
  readonly open: ReadonlyArray<Attempt>
  /** Captured payments whose money goes back. */
  readonly notNeeded: ReadonlyArray<string>
}

/** At most so many open payments, and payments that go back, are remembered. A year of daily tries is more than any grace period. */
const REMEMBERED = 400

const remember = <A>(list: ReadonlyArray<A>, item: A): ReadonlyArray<A> => [...list, item].slice(-REMEMBERED)

const live = ({ current }: Subscriptions, subscriptionId: string): Subscription => {
  if (current === null || current.subscriptionId !== subscriptionId || current.endedAt !== null)
    throw new Error("Only the newest subscription changes, and only before it ends")
  return current
}

const without = (open: ReadonlyArray<Attempt>, paymentId: string): ReadonlyArray<Attempt> =>
  open.filter((attempt) => attempt.paymentId !== paymentId)

const start = (all: Subscriptions, event: EventOf<"SubscriptionStarted">, at: Timestamp): Subscriptions => {
  if (all.current !== null && all.current.endedAt === null) throw new Error("A subscription starts when the one before it has ended")
  const { accountId, paymentId, plan, subscriptionId } = event
  const nothing = { period: null, anchor: null, graceUntil: null, canceled: false, endedAt: null }
  const span = { from: at, until: startOf(at, plan.every, 1) }
  const attempt: Attempt = { subscriptionId, paymentId, buys: "first", plan, period: 0, ...span, requestedAt: at, failed: false }
  return { ...all, accountId, current: { subscriptionId, plan, next: plan, ...nothing }, open: remember(all.open, attempt) }
}

const requested = (all: Subscriptions, event: EventOf<"SubscriptionPeriodRequested">, at: Timestamp): Subscriptions => {
  const { _tag: _, attempt: __, graceUntil, ...paid } = event
  const current = { ...live(all, event.subscriptionId), graceUntil }
  return { ...all, current, open: remember(all.open, { ...paid, buys: "period", requestedAt: at, failed: false }) }
}

const upgrading = (all: Subscriptions, event: EventOf<"SubscriptionUpgradeRequested">, at: Timestamp): Subscriptions => {
  const { _tag: _, amount, before, began: __, charged, credited, credits, ...paid } = event
  live(all, event.subscriptionId)
  const upgrade = { amount, before, charged, credited, credits }
  return { ...all, open: remember(all.open, { ...paid, buys: "upgrade", requestedAt: at, failed: false, upgrade }) }
}

const began = (all: Subscriptions, { from, paymentId, period, plan, subscriptionId, until }: EventOf<"SubscriptionPeriodBegan">) => {
  const { anchor, ...current } = live(all, subscriptionId)
  // A plan with periods of another length counts them anew
  const counted = anchor !== null && current.plan.every === plan.every ? anchor : { at: from, number: period }
  const next = current.next.plan === current.plan.plan ? plan : current.next
  const now = { ...current, anchor: counted, plan, next, graceUntil: null, period: { number: period, from, until, paymentId } }
  return { ...all, current: now, open: without(all.open, paymentId) }
}

const evolve = (all: Subscriptions, event: SubscriptionEvent, at: Timestamp): Subscriptions => {
  switch (event._tag) {
    case "SubscriptionStarted":
      return start(all, event, at)
    case "SubscriptionPeriodRequested":
      return requested(all, event, at)
    case "SubscriptionUpgradeRequested":
      return upgrading(all, event, at)
    case "SubscriptionPeriodBegan":
      return began(all, event)
    case "SubscriptionPaymentFailed":
      return { ...all, open: all.open.map((one) => (one.paymentId === event.paymentId ? { ...one, failed: true } : one)) }
    case "SubscriptionPlanChanged":
      return {
        ...all,
        current: { ...live(all, event.subscriptionId), plan: event.plan, next: event.plan },
        open: without(all.open, event.paymentId)
      }
    case "SubscriptionPlanChosen":
      return { ...all, current: { ...live(all, event.subscriptionId), next: event.plan } }
    case "SubscriptionPaymentNotNeeded":
      return { ...all, open: without(all.open, event.paymentId), notNeeded: remember(all.notNeeded, event.paymentId) }
    case "SubscriptionCanceled":
      return { ...all, current: { ...live(all, event.subscriptionId), canceled: true } }
    case "SubscriptionResumed":
      return { ...all, current: { ...live(all, event.subscriptionId), canceled: false } }
    case "SubscriptionEnded":
      return { ...all, current: { ...live(all, event.subscriptionId), endedAt: at } }
  }
}

export const Subscription: Decider<Subscriptions, SubscriptionEvent> = {
  category: "subscription",
  codec: EventCodec.make(SubscriptionEvent),
  initial: { accountId: null, current: null, open: [], notNeeded: [] },
  evolve
}

/** What callers are told. `past_due`: the period is over, and the next one is not paid yet. `canceled`: it ends with its period. */
export type Status = "pending" | "active" | "past_due" | "canceled" | "ended"

export const statusOf = ({ canceled, endedAt, period }: Subscription, now: Timestamp): Status => {
  if (endedAt !== null) return "ended"
  if (period === null) return "pending"
  if (canceled) return now < period.until ? "canceled" : "ended"
  return now < period.until ? "active" : "past_due"
}

/** The payment that its owner can make now: that of the first or the next period, or of an upgrade. `plan`: only one that buys this. */
export const payable = ({ current, open }: Subscriptions, plan?: Plan): Attempt | undefined =>
  current === null || current.endedAt !== null
    ? undefined
    : open.findLast(
        (attempt) =>
          attempt.subscriptionId === current.subscriptionId &&
          !attempt.failed &&
          isWanted(current, attempt) &&
          (plan === undefined || samePlan(attempt.plan, plan))
      )

/** Whether a payment of an upgrade in this period failed: then its owner is asked for other means. */
export const isDeclined = ({ open }: Subscriptions, { buys, period, subscriptionId }: Attempt): boolean =>
  buys === "upgrade" &&
  open.some((one) => one.buys === "upgrade" && one.failed && one.subscriptionId === subscriptionId && one.period === period)

/** Whether a payment, if it is captured, still buys something. */
const isWanted = ({ endedAt, period, plan, subscriptionId }: Subscription, attempt: Attempt): boolean => {
  if (endedAt !== null || attempt.subscriptionId !== subscriptionId) return false
  switch (attempt.buys) {
    case "first":
      return period === null
    case "period":
      return period !== null && attempt.period === period.number + 1 && attempt.from === period.until
    case "upgrade":
      return period !== null && attempt.period === period.number && samePlan(attempt.upgrade?.before, plan)
  }
}

const samePlan = (a: Plan | undefined, b: Plan): boolean =>
  a !== undefined &&
  a.plan === b.plan &&
  a.amount === b.amount &&
  a.credits === b.credits &&
  a.every === b.every &&
  a.currency === b.currency

// decisions

type Decided = Decision<SubscriptionEvent>

const NOTHING: Decided = Result.succeed([])

/** Gateways take no smaller payments, in the smallest unit of a currency: half a dollar at Stripe. */
const LEAST = 50

export interface Wanted {
  /** Of a subscription that starts with this. */
  readonly subscriptionId: string
  readonly accountId: string
  /** Of a payment that is to be made for it. */
  readonly paymentId: string
  readonly plan: Plan
}

/**
 * Starts a subscription, or changes the plan of the one that there is. A higher price is paid at once for the rest of the period, by
 * `prorate`; any other plan begins with the next period. Wanting the plan that there is changes nothing, but that a canceled subscription
 * goes on, and that the next period can be paid after a payment of it failed. `grace` in milliseconds.
 */
export const want =
  (wanted: Wanted, grace: number) =>
  (all: Subscriptions, now: Timestamp): Decided => {
    const { current } = all
    const started: SubscriptionEvent = { _tag: "SubscriptionStarted", ...wanted }
    const status = current === null ? "ended" : statusOf(current, now)
    if (current === null || current.endedAt !== null) return Result.succeed([started])
    const { subscriptionId } = current
    if (status === "ended") return Result.succeed([{ _tag: "SubscriptionEnded", subscriptionId, reason: "canceled" }, started])
    if (status === "pending") {
      const isAlive = all.open.some((attempt) => attempt.subscriptionId === subscriptionId && !attempt.failed)
      if (isAlive && samePlan(wanted.plan, current.plan)) return NOTHING
      return Result.succeed([{ _tag: "SubscriptionEnded", subscriptionId, reason: "replaced" }, started])
    }
    const resumed: ReadonlyArray<SubscriptionEvent> = current.canceled ? [{ _tag: "SubscriptionResumed", subscriptionId }] : []
    return Result.succeed([...resumed, ...change(all, current, wanted, now), ...again(all, current, wanted, { grace, now })])
  }

const change = ({ open }: Subscriptions, current: Subscription, wanted: Wanted, now: Timestamp): ReadonlyArray<SubscriptionEvent> => {
  const { next, period, plan: before, subscriptionId } = current
  const { paymentId, plan } = wanted
  const chosen: ReadonlyArray<SubscriptionEvent> =
    next.plan === plan.plan && samePlan(next, plan) ? [] : [{ _tag: "SubscriptionPlanChosen", subscriptionId, plan }]
  if (period === null || before.plan === plan.plan || period.until <= now) return chosen
  if (before.every !== plan.every || before.currency !== plan.currency) return chosen
  const same = open.some((one) => one.buys === "upgrade" && !one.failed && samePlan(one.plan, plan) && isWanted(current, one))
  if (same) return []
  const rest = prorate(before, plan, period, now)
  if (rest.amount < LEAST || rest.credits === 0) return chosen
  const span = { period: period.number, began: period.from, from: now, until: period.until }
  return [{ _tag: "SubscriptionUpgradeRequested", subscriptionId, paymentId, before, plan, ...span, ...rest }]
}

/** The payment of a period that is past due, if none can be made now. */
const again = (
  { open }: Subscriptions,
  current: Subscription,
  { paymentId, plan }: Wanted,
  { grace, now }: { readonly grace: number; readonly now: Timestamp }
): ReadonlyArray<SubscriptionEvent> => {
  const { period, subscriptionId } = current
  if (period === null || now < period.until) return []
  const attempts = open.filter((attempt) => attempt.buys === "period" && isWanted(current, attempt))
  if (attempts.some((attempt) => !attempt.failed && samePlan(attempt.plan, plan))) return []
  const graceUntil = current.graceUntil ?? period.until + grace
  const asked = { ...nextPeriod({ ...current, next: plan }, period), attempt: attempts.length + 1, graceUntil, byOwner: true }
  return now < graceUntil ? [{ _tag: "SubscriptionPeriodRequested", subscriptionId, paymentId, ...asked }] : []
}

/** Cancels the subscription at the end of its period, or now. Before the first period it ends at once. */
export const cancel =
  (subscriptionId: string, isNow: boolean) =>
  ({ current }: Subscriptions, now: Timestamp): Decided => {
    if (current === null || current.subscriptionId !== subscriptionId || current.endedAt !== null) return NOTHING
    const isOver = current.period === null || current.period.until <= now
    if (isNow || isOver) return Result.succeed([{ _tag: "SubscriptionEnded", subscriptionId, reason: "canceled" }])
    return current.canceled ? NOTHING : Result.succeed([{ _tag: "SubscriptionCanceled", subscriptionId }])
  }

/** A payment was captured. `span`: the time that a first payment bought, which begins with its capture. */
export const captured =
  (paymentId: string, span: { readonly from: Timestamp; readonly until: Timestamp }) =>
  ({ current, open }: Subscriptions): Decided => {
    const attempt = open.find((one) => one.paymentId === paymentId)
    if (attempt === undefined) return NOTHING
    const { from, period, plan, subscriptionId, until } = attempt
    if (current === null || !isWanted(current, attempt))
      return Result.succeed([{ _tag: "SubscriptionPaymentNotNeeded", subscriptionId, paymentId }])
    if (attempt.buys === "upgrade") return Result.succeed([{ _tag: "SubscriptionPlanChanged", subscriptionId, paymentId, plan }])
    const bought = attempt.buys === "first" ? { from: span.from, until: span.until } : { from, until }
    return Result.succeed([{ _tag: "SubscriptionPeriodBegan", subscriptionId, paymentId, plan, period, ...bought }])
  }

/** A payment failed. Without its first one a subscription ends. */
export const failed =
  (paymentId: string, reason: string) =>
  ({ current, open }: Subscriptions): Decided => {
    const attempt = open.find((one) => one.paymentId === paymentId)
    if (attempt === undefined || attempt.failed) return NOTHING
    const { buys, subscriptionId } = attempt
    const told: SubscriptionEvent = { _tag: "SubscriptionPaymentFailed", subscriptionId, paymentId, reason }
    const ends = buys === "first" && current !== null && isWanted(current, attempt)
    return Result.succeed(ends ? [told, { _tag: "SubscriptionEnded", subscriptionId, reason: "unpaid" }] : [told])
  }

/** All the money of a payment went back. If it paid for the newest period, the subscription ends. */
export const refunded =
  (paymentId: string) =>
  ({ current }: Subscriptions): Decided =>
    current !== null && current.endedAt === null && current.period?.paymentId === paymentId
      ? Result.succeed([{ _tag: "SubscriptionEnded", subscriptionId: current.subscriptionId, reason: "refunded" }])
      : NOTHING

/** How long after a failed payment the next is requested, in milliseconds. */
export const RETRY_AFTER = 24 * 3_600_000

/**
 * What is due at the end of a period: the end of a canceled subscription, the payment of the next period, a further one, or the end of the
 * grace period. `grace` in milliseconds. A host that was away for all of the grace period charges for nothing of it.
 */
export const due =
  ({ grace, paymentId }: { readonly grace: number; readonly paymentId: string }) =>
  (all: Subscriptions, now: Timestamp): Decided => {
    const { current } = all
    if (current === null || current.endedAt !== null || current.period === null || now < current.period.until) return NOTHING
    const { subscriptionId } = current
    if (current.canceled) return Result.succeed([{ _tag: "SubscriptionEnded", subscriptionId, reason: "canceled" }])
    const graceUntil = current.graceUntil ?? current.period.until + grace
    if (now >= graceUntil) return Result.succeed([{ _tag: "SubscriptionEnded", subscriptionId, reason: "unpaid" }])
    const attempts = all.open.filter((attempt) => attempt.buys === "period" && isWanted(current, attempt))
    const last = attempts.at(-1)
    if (last !== undefined && !isOver(last, current.next, now)) return NOTHING
    const asked = { ...nextPeriod(current, current.period), attempt: attempts.length + 1, graceUntil }
    return Result.succeed([{ _tag: "SubscriptionPeriodRequested", subscriptionId, paymentId, ...asked }])
  }

const isOver = ({ failed, plan, requestedAt }: Attempt, next: Plan, now: Timestamp): boolean =>
  !samePlan(plan, next) || (failed && now >= requestedAt + RETRY_AFTER)

/** The period after one, of the plan that was chosen for it. */
const nextPeriod = ({ anchor, next, plan }: Subscription, { number, until }: Period) => {
  const counted = anchor !== null && next.every === plan.every ? anchor : { at: until, number: number + 1 }
  return { plan: next, period: number + 1, from: until, until: startOf(counted.at, next.every, number + 2 - counted.number) }
}
