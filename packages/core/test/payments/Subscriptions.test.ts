/** Subscriptions through a checkout with manual payments: periods, grace, changes, cancellation, and hosts that share or take over the work. */
import { Decisions, lotIdOfPayment } from "@millrace/core"
import { EventStore } from "@millrace/event-sourcing"
import { Effect, type Layer } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect } from "vitest"
import * as Audit from "../../../audit/src/Audit.ts"
import { startOf } from "../../src/ledger/Periods.ts"
import { type Stores, stores, testing, typesIn } from "../accounts/Hosts.ts"
import { outcome } from "../vault/Vaults.ts"
import { ACCOUNT, DAY, type Host, host, PRO, STANDARD, StoringGateway } from "./SubscriptionHosts.ts"

const FIRST = "pay_01M7YKD46JCP6VGMKADN3JSPJ0"
const SUBSCRIPTION = "sub_01M7YKD46JCP6VGMKADN3JSPJ0"
const ids = (n: number) => ({ subscriptionId: `sub_01M7YKD46JCP6VGMKADN3JSPJ${n}`, paymentId: `pay_01M7YKD46JCP6VGMKADN3JSPJ${n}` })
/** 31 January 2026, noon. */
const JANUARY = Date.UTC(2026, 0, 31, 12)

/** Approves a manual payment, and writes what follows from it. */
const paid = Effect.fnUntraced(function* ({ checkout, manual, subscriptions }: Host, paymentId: string) {
  yield* manual.approve(paymentId)
  yield* checkout.ask(paymentId)
  yield* subscriptions.note(paymentId)
})

/** The log breaks no rule of the audit. */
const sound = ({ events }: Stores) =>
  Effect.map(Effect.provideService(Audit.run(), EventStore.EventStore, events), ({ problems }) => expect(problems).toEqual([]))

const opened = Effect.gen(function* () {
  const shared = yield* stores
  // Before the host, whose background work would otherwise live through all the years
  yield* TestClock.setTime(JANUARY)
  const here = yield* host(shared)
  yield* here.ledger.execute(ACCOUNT, Decisions.open({ sealedEmail: "sealed", emailHash: "hash" }))
  return { shared, here }
})

/** A host whose account has the first period of the standard plan. */
const subscribed = Effect.gen(function* () {
  const { here, shared } = yield* opened
  const { payable, status } = yield* here.subscriptions.want(ACCOUNT, undefined, ids(0))
  expect(status).toBe("pending")
  expect(payable?.next).toMatchObject({ _tag: "Instruction" })
  yield* paid(here, FIRST)
  return { here, shared }
})

const current = Effect.fnUntraced(function* ({ subscriptions }: Host) {
  const shown = yield* subscriptions.current(ACCOUNT)
  if (shown === undefined) return yield* Effect.die(new Error("The account has a subscription"))
  return shown
})

const available = ({ ledger }: Host) => Effect.map(ledger.balance(ACCOUNT), ({ available }) => Number(available) / 1_000)

/** The newest payment that can be approved. */
const pendingOf = ({ checkout }: Host) =>
  Effect.map(checkout.list({ accountId: ACCOUNT, status: "pending" }), ([newest]) => newest?.paymentId ?? "none")

const advance = ({ subscriptions }: Host) => subscriptions.advance(ACCOUNT.slice(4))

describe("a period", () => {
  testing(
    "begins with its capture, brings its credits, which expire with it, and is followed by the next",
    Effect.gen(function* () {
      const { here } = yield* subscribed
      const march = startOf(JANUARY, "month", 1)
      expect(new Date(march).toISOString()).toBe("2026-02-28T12:00:00.000Z")
      expect(yield* current(here)).toMatchObject({ status: "active", subscription: { period: { number: 0, until: march } } })
      expect(yield* available(here)).toBe(25_000)
      yield* TestClock.setTime(march)
      expect(yield* available(here)).toBe(0)
      yield* advance(here)
      expect((yield* current(here)).status).toBe("past_due")
      yield* paid(here, yield* pendingOf(here))
      const next = yield* current(here)
      expect(next).toMatchObject({ status: "active", subscription: { period: { number: 1, from: march } } })
      expect(next.subscription.period?.until).toBe(Date.UTC(2026, 2, 31, 12))
      expect(yield* available(here)).toBe(25_000)
    })
  )

  testing(
    "begins when the first payment is captured, and not when it was requested",
    Effect.gen(function* () {
      const { here } = yield* opened
      yield* here.subscriptions.want(ACCOUNT, "standard", ids(0))
      yield* TestClock.setTime(JANUARY + DAY / 2)
      yield* paid(here, FIRST)
      const from = JANUARY + DAY / 2
      expect((yield* current(here)).subscription.period).toMatchObject({ from, until: startOf(from, "month", 1) })
      const lot = (yield* here.ledger.read(ACCOUNT)).state.purse.lots.find(({ lotId }) => lotId === lotIdOfPayment(FIRST))
      expect(lot?.expiresAt).toBe(startOf(from, "month", 1))
    })
  )

  testing(
    "ends the subscription when all its money goes back",
    Effect.gen(function* () {
      const { here } = yield* subscribed
      yield* here.checkout.refund(FIRST, { refundId: "part", minor: 500 })
      yield* here.subscriptions.note(FIRST)
      expect((yield* current(here)).status).toBe("active")
      yield* here.checkout.refund(FIRST, { refundId: "rest" })
      yield* here.subscriptions.note(FIRST)
      expect((yield* current(here)).status).toBe("ended")
      expect(yield* available(here)).toBe(0)
    })
  )
})

describe("a payment that fails", () => {
  testing(
    "is tried again each day of the grace period, after which the subscription ends",
    Effect.gen(function* () {
      const { here, shared } = yield* subscribed
      const until = startOf(JANUARY, "month", 1)
      const tried: Array<string> = []
      for (let day = 0; day < 7; day++) {
        yield* TestClock.setTime(until + day * DAY)
        yield* advance(here)
        expect((yield* current(here)).status).toBe("past_due")
        const paymentId = yield* pendingOf(here)
        tried.push(paymentId)
        yield* here.manual.reject(paymentId, "No money")
        yield* here.checkout.ask(paymentId)
        yield* here.subscriptions.note(paymentId)
        yield* advance(here)
        expect(yield* pendingOf(here)).toBe("none")
      }
      expect(new Set(tried).size).toBe(7)
      yield* TestClock.setTime(until + 7 * DAY)
      yield* advance(here)
      expect((yield* current(here)).status).toBe("ended")
      expect((yield* typesIn(shared, "subscription-1")).filter((type) => type === "SubscriptionEnded")).toHaveLength(1)
    })
  )

  testing(
    "may be paid late: the first that is captured begins the period, and the money of another goes back",
    Effect.gen(function* () {
      const { here, shared } = yield* subscribed
      const until = startOf(JANUARY, "month", 1)
      yield* TestClock.setTime(until)
      yield* advance(here)
      const first = yield* pendingOf(here)
      yield* TestClock.setTime(until + DAY)
      yield* here.checkout.lapse(first)
      yield* here.subscriptions.note(first)
      yield* advance(here)
      const second = yield* pendingOf(here)
      expect(second).not.toBe(first)
      yield* paid(here, first)
      expect((yield* current(here)).subscription.period).toMatchObject({ number: 1, from: until, paymentId: first })
      yield* paid(here, second)
      expect((yield* current(here)).subscription.period?.paymentId).toBe(first)
      yield* here.subscriptions.giveBack(ACCOUNT.slice(4))
      yield* here.subscriptions.giveBack(ACCOUNT.slice(4))
      expect((yield* here.checkout.ask(second)).refunds).toHaveLength(1)
      yield* sound(shared)
      expect(yield* available(here)).toBe(25_000)
    })
  )

  testing(
    "ends a subscription that never began, and the next call starts another",
    Effect.gen(function* () {
      const { here } = yield* opened
      yield* here.subscriptions.want(ACCOUNT, undefined, ids(0))
      yield* here.manual.reject(FIRST)
      yield* here.checkout.ask(FIRST)
      yield* here.subscriptions.note(FIRST)
      expect((yield* current(here)).status).toBe("ended")
      const again = yield* here.subscriptions.want(ACCOUNT, undefined, ids(1))
      expect(again).toMatchObject({ status: "pending", subscription: { subscriptionId: ids(1).subscriptionId } })
    })
  )
})

describe("a change of plan", () => {
  testing(
    "to a dearer one is paid for the rest of the period, and brings the rest of its credits",
    Effect.gen(function* () {
      const { here, shared } = yield* subscribed
      // Half of the 28 days
      yield* TestClock.setTime(JANUARY + 14 * DAY)
      const { payable } = yield* here.subscriptions.want(ACCOUNT, "pro", ids(1))
      expect(payable?.order).toMatchObject({ amount: 1_500, lines: [{ amount: 2_500 }, { amount: -1_000 }] })
      expect((yield* current(here)).subscription.plan).toEqual(STANDARD)
      yield* here.subscriptions.want(ACCOUNT, "pro", ids(2))
      expect((yield* here.checkout.list({ accountId: ACCOUNT, status: "pending" })).length).toBe(1)
      yield* paid(here, ids(1).paymentId)
      expect((yield* current(here)).subscription).toMatchObject({ plan: PRO, next: PRO, period: { number: 0 } })
      expect(yield* available(here)).toBe(25_000 + 25_000)
      // There and back costs nothing more
      expect((yield* here.subscriptions.want(ACCOUNT, "standard", ids(3))).payable).toBeUndefined()
      expect((yield* current(here)).subscription.next).toEqual(STANDARD)
      expect((yield* here.subscriptions.want(ACCOUNT, "pro", ids(4))).payable).toBeUndefined()
      expect((yield* current(here)).subscription.next).toEqual(PRO)
      yield* sound(shared)
    })
  )

  testing(
    "to a cheaper one begins with the next period",
    Effect.gen(function* () {
      const { here } = yield* opened
      yield* here.subscriptions.want(ACCOUNT, "pro", ids(0))
      yield* paid(here, FIRST)
      yield* here.subscriptions.want(ACCOUNT, "standard", ids(1))
      yield* TestClock.setTime(startOf(JANUARY, "month", 1))
      yield* advance(here)
      yield* paid(here, yield* pendingOf(here))
      expect((yield* current(here)).subscription).toMatchObject({ plan: STANDARD, period: { number: 1 } })
      expect(yield* available(here)).toBe(25_000)
    })
  )

  testing(
    "to a plan that there is not is refused",
    Effect.gen(function* () {
      const { here } = yield* opened
      expect(yield* outcome(here.subscriptions.want(ACCOUNT, "gold", ids(0)))).toBe("PlanNotFound")
    })
  )
})

describe("stored means of payment", () => {
  testing(
    "pay later periods while the payer is away, and where they are declined the payer pays",
    Effect.gen(function* () {
      const gateway = new StoringGateway()
      const shared = yield* stores
      yield* TestClock.setTime(JANUARY)
      const here = yield* host(shared, { gateway: gateway.layer as Layer.Layer<never> })
      yield* here.ledger.execute(ACCOUNT, Decisions.open({ sealedEmail: "sealed", emailHash: "hash" }))
      yield* here.subscriptions.want(ACCOUNT, undefined, ids(0))
      gateway.pay(FIRST)
      yield* here.checkout.capture(ACCOUNT, FIRST)
      yield* here.subscriptions.note(FIRST)
      const [first, second] = [startOf(JANUARY, "month", 1), startOf(JANUARY, "month", 2)]
      yield* TestClock.setTime(first)
      yield* advance(here)
      expect(yield* current(here)).toMatchObject({ status: "active", subscription: { period: { number: 1, until: second } } })
      expect(gateway.taken).toEqual(["means_1"])

      gateway.declines = true
      yield* TestClock.setTime(second)
      yield* advance(here)
      expect((yield* current(here)).status).toBe("past_due")
      expect(yield* pendingOf(here)).toBe("none")
      const { payable } = yield* here.subscriptions.want(ACCOUNT, undefined, ids(1))
      expect(payable?.next).toEqual({ _tag: "ClientSecret", clientSecret: `secret_${ids(1).paymentId}` })
      gateway.pay(ids(1).paymentId)
      yield* here.checkout.capture(ACCOUNT, ids(1).paymentId)
      yield* here.subscriptions.note(ids(1).paymentId)
      expect(yield* current(here)).toMatchObject({ status: "active", subscription: { period: { number: 2, from: second } } })
      expect(yield* available(here)).toBe(25_000)
      yield* sound(shared)
    })
  )
})

describe("a dearer plan that stored means pay for", () => {
  testing(
    "is paid by other means where these are declined",
    Effect.gen(function* () {
      const gateway = new StoringGateway()
      const shared = yield* stores
      yield* TestClock.setTime(JANUARY)
      const here = yield* host(shared, { gateway: gateway.layer as Layer.Layer<never> })
      yield* here.ledger.execute(ACCOUNT, Decisions.open({ sealedEmail: "sealed", emailHash: "hash" }))
      yield* here.subscriptions.want(ACCOUNT, undefined, ids(0))
      gateway.pay(FIRST)
      yield* here.checkout.capture(ACCOUNT, FIRST)
      yield* here.subscriptions.note(FIRST)
      gateway.declines = true
      yield* TestClock.setTime(JANUARY + 5 * DAY)
      const { payable } = yield* here.subscriptions.want(ACCOUNT, "pro", ids(1))
      const paymentId = payable?.order.paymentId ?? "none"
      expect(paymentId).not.toBe(ids(1).paymentId)
      expect(payable?.next).toEqual({ _tag: "ClientSecret", clientSecret: `secret_${paymentId}` })
      // Asked again, it is the same payment
      expect((yield* here.subscriptions.want(ACCOUNT, "pro", ids(2))).payable?.order.paymentId).toBe(paymentId)
      gateway.pay(paymentId)
      yield* here.checkout.capture(ACCOUNT, paymentId)
      yield* here.subscriptions.note(paymentId)
      expect((yield* current(here)).subscription.plan).toEqual(PRO)
      yield* sound(shared)
    })
  )

  testing(
    "is not to be paid by an owner who asks for the plan that is in force",
    Effect.gen(function* () {
      const { here } = yield* subscribed
      yield* TestClock.setTime(JANUARY + 5 * DAY)
      expect((yield* here.subscriptions.want(ACCOUNT, "pro", ids(1))).payable?.order.paymentId).toBe(ids(1).paymentId)
      expect((yield* here.subscriptions.want(ACCOUNT, "standard", ids(2))).payable).toBeUndefined()
      expect((yield* here.subscriptions.want(ACCOUNT, "pro", ids(3))).payable?.order.paymentId).toBe(ids(1).paymentId)
    })
  )
})

describe("cancellation", () => {
  testing(
    "at the period's end keeps the credits until then, and is taken back by subscribing again",
    Effect.gen(function* () {
      const { here, shared } = yield* subscribed
      expect((yield* here.subscriptions.cancel(ACCOUNT, SUBSCRIPTION, false)).status).toBe("canceled")
      yield* here.subscriptions.cancel(ACCOUNT, SUBSCRIPTION, false)
      expect(yield* available(here)).toBe(25_000)
      expect((yield* here.subscriptions.want(ACCOUNT, undefined, ids(1))).status).toBe("active")
      yield* here.subscriptions.cancel(ACCOUNT, SUBSCRIPTION, false)
      yield* TestClock.setTime(startOf(JANUARY, "month", 1))
      yield* advance(here)
      yield* advance(here)
      expect((yield* current(here)).status).toBe("ended")
      expect((yield* typesIn(shared, "subscription-1")).filter((type) => type === "SubscriptionPeriodRequested")).toEqual([])
    })
  )

  testing(
    "now ends it at once, and is refused for another account's",
    Effect.gen(function* () {
      const { here } = yield* subscribed
      expect(yield* outcome(here.subscriptions.cancel("acc_2", SUBSCRIPTION, true))).toBe("SubscriptionNotFound")
      expect((yield* here.subscriptions.cancel(ACCOUNT, SUBSCRIPTION, true)).status).toBe("ended")
      expect(yield* available(here)).toBe(25_000)
    })
  )
})

describe("the upkeep of subscriptions", () => {
  /** Maintains subscriptions for some minutes, at two hosts. */
  const maintained = (shared: Stores) =>
    Effect.scoped(
      Effect.gen(function* () {
        for (const _ of [1, 2]) yield* host(shared, { upkeep: true })
        for (const _ of Array(5)) yield* Effect.andThen(TestClock.adjust("1 minute"), Effect.yieldNow)
      })
    )

  testing(
    "renews once at two hosts, and begins a period whose capture nobody carried on",
    Effect.gen(function* () {
      const { here, shared } = yield* subscribed
      yield* TestClock.setTime(startOf(JANUARY, "month", 1))
      yield* maintained(shared)
      const requested = (yield* typesIn(shared, "subscription-1")).filter((type) => type === "SubscriptionPeriodRequested")
      expect(requested).toHaveLength(1)
      const renewal = yield* pendingOf(here)
      // The host dies between the capture and the period
      yield* here.manual.approve(renewal)
      yield* here.checkout.ask(renewal)
      expect((yield* current(here)).status).toBe("past_due")
      yield* maintained(shared)
      expect((yield* current(here)).status).toBe("active")
      expect((yield* typesIn(shared, "subscription-1")).filter((type) => type === "SubscriptionPeriodBegan")).toHaveLength(2)
      expect(yield* available(here)).toBe(25_000)
    })
  )

  testing(
    "charges for nothing of a grace period for all of which every host was away",
    Effect.gen(function* () {
      const { here, shared } = yield* subscribed
      yield* TestClock.setTime(startOf(JANUARY, "month", 1) + 8 * DAY)
      yield* maintained(shared)
      expect((yield* current(here)).status).toBe("ended")
      expect(yield* pendingOf(here)).toBe("none")
    })
  )
})
