/** Subscriptions over HTTP, with payments that an operator approves. */
import { Credits, ManualGateway, PaymentGateway, type Plans } from "@millrace/core"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect } from "vitest"
import { type Answer, type Host, host, testing } from "./Host.ts"

const PATH = "/api/v1/billing/subscriptions"
/** The end of the first day, at which the clock of these tests began. */
const END = "1970-01-02T00:00:00.000Z"

const STANDARD: Plans.Plan = { plan: "standard", amount: 2_000, currency: "USD", credits: Credits.of(25_000_000), every: "day" }
const PRO: Plans.Plan = { ...STANDARD, plan: "pro", amount: 5_000, credits: Credits.of(75_000_000) }
const PLANS = [STANDARD, PRO]

interface Record {
  readonly subscription_id: string
  readonly payment_id?: string
}

const dataOf = ({ json }: Answer) => (json as { readonly data: Record }).data
const errorOf = ({ json }: Answer) => (json as { readonly error: { readonly code: string; readonly message: string } }).error

/** A person with a key, and what they do with their subscription. */
const subscriber = Effect.fnUntraced(function* (served: Host) {
  const { accountId, bearer } = yield* served.account(1)
  const ask = (method: string, path: string, body?: object, key?: string) =>
    served.call(path, {
      method,
      headers: { ...bearer, ...(key === undefined ? {} : { "idempotency-key": key }) },
      ...(body === undefined ? {} : { body })
    })
  return {
    subscribe: (body: object, key?: string) => ask("POST", PATH, body, key),
    shown: Effect.map(ask("GET", PATH), ({ json }) => (json as { readonly data: unknown }).data),
    cancel: (id: string, query = "") => ask("DELETE", `${PATH}/${id}${query}`),
    /** An operator confirms the payment, and its owner captures it. */
    pay: (payment: string | undefined) =>
      Effect.andThen(
        served.run(ManualGateway.ManualPayments.use(({ approve }) => approve(`${payment}`))),
        ask("POST", `/api/v1/billing/topups/${payment}/capture`, {})
      ),
    available: Effect.map(served.balance(accountId), ({ available }) => available / 1_000)
  }
})

/** How many events of a type the log has. */
const count = ({ log }: Host, wanted: string) => Effect.map(log, (events) => events.filter(({ type }) => type === wanted).length)

/** Someone with the first period of the standard plan. The account had one credit before. */
const paying = Effect.fnUntraced(function* (served: Host) {
  const person = yield* subscriber(served)
  const { payment_id, subscription_id } = dataOf(yield* person.subscribe({ plan: "standard" }))
  yield* person.pay(payment_id)
  return { ...person, subscription_id }
})

describe("a subscription", () => {
  testing(
    "is there after its first payment, with the credits of the period",
    Effect.gen(function* () {
      const served = yield* host({ plans: PLANS })
      const { available, pay, shown, subscribe } = yield* subscriber(served)
      const plans = [
        { plan: "standard", price: 20, currency: "USD", credits_per_period: 25_000, period: "day" },
        { plan: "pro", price: 50, currency: "USD", credits_per_period: 75_000, period: "day" }
      ]
      expect(yield* shown).toEqual({ subscriptions: [], plans })
      const answer = yield* subscribe({ plan: "standard" })
      expect([answer.status, answer.headers["x-credits-charged"]]).toEqual([200, "0"])
      const started = dataOf(answer)
      expect(started).toEqual({
        subscription_id: expect.stringMatching(/^sub_[0-9A-Z]{26}$/u),
        ...{ plan: "standard", status: "pending", current_period_end: null, credits_per_period: 25_000 },
        payment_id: expect.stringMatching(/^pay_[0-9A-Z]{26}$/u),
        ...{ amount: 20, currency: "USD", gateway: "manual" },
        instruction: expect.stringContaining(`20.00 USD`)
      })
      expect(yield* available).toBe(1)
      expect(dataOf(yield* pay(started.payment_id))).toMatchObject({ status: "captured", credits: 25_000 })
      const { subscription_id } = started
      const active = { subscription_id, plan: "standard", status: "active", current_period_end: END, credits_per_period: 25_000 }
      expect(yield* shown).toEqual({ subscriptions: [active], plans })
      expect(yield* available).toBe(25_001)
    })
  )

  testing(
    "of no name is the first plan, and asking again returns the same payment",
    Effect.gen(function* () {
      const served = yield* host({ plans: PLANS })
      const { subscribe } = yield* subscriber(served)
      const first = dataOf(yield* subscribe({}))
      expect(first).toMatchObject({ plan: "standard", status: "pending" })
      expect(dataOf(yield* subscribe({ plan: "standard" }))).toEqual(first)
      expect([yield* count(served, "SubscriptionStarted"), yield* count(served, "PaymentRequested")]).toEqual([1, 1])
    })
  )

  testing(
    "is started once by many calls under one key, and their answer is replayed after it has changed",
    Effect.gen(function* () {
      const served = yield* host({ plans: PLANS })
      const { cancel, pay, shown, subscribe } = yield* subscriber(served)
      const answers = yield* Effect.all(
        Array.from({ length: 16 }, () => subscribe({ plan: "pro" }, "one")),
        { concurrency: "unbounded" }
      )
      for (const { status } of answers) expect([200, 409]).toContain(status)
      const again = yield* subscribe({ plan: "pro" }, "one")
      const started = dataOf(again)
      for (const answer of answers) if (answer.status === 200) expect(dataOf(answer)).toEqual(started)
      expect([yield* count(served, "SubscriptionStarted"), yield* count(served, "PaymentRequested")]).toEqual([1, 1])
      yield* pay(started.payment_id)
      yield* cancel(started.subscription_id, "?now=true")
      const late = yield* subscribe({ plan: "pro" }, "one")
      expect([late.status, late.headers["idempotent-replayed"]]).toEqual([200, "true"])
      expect(dataOf(late)).toEqual(started)
      expect(yield* shown).toMatchObject({ subscriptions: [{ subscription_id: started.subscription_id, status: "ended" }] })
      const other = yield* subscribe({ plan: "standard" }, "one")
      expect([other.status, errorOf(other).code]).toEqual([422, "idempotency_key_reused"])
    })
  )
})

describe("a change of plan", () => {
  testing(
    "to a dearer one is paid for the rest of the period, to the cent and the credit",
    Effect.gen(function* () {
      const served = yield* host({ plans: PLANS })
      const { available, pay, shown, subscribe, subscription_id } = yield* paying(served)
      yield* TestClock.adjust("1 hour")
      const answer = dataOf(yield* subscribe({ plan: "pro" }))
      // 23 of 24 hours: floor(5000 × 23 / 24) − floor(2000 × 23 / 24) cents
      expect(answer).toMatchObject({ subscription_id, plan: "standard", status: "active", current_period_end: END, amount: 28.75 })
      expect(answer).not.toHaveProperty("next_plan")
      expect(dataOf(yield* pay(answer.payment_id))).toMatchObject({ status: "captured", amount: 28.75, credits: 47_916.667 })
      expect(yield* shown).toMatchObject({
        subscriptions: [{ subscription_id, plan: "pro", status: "active", current_period_end: END, credits_per_period: 75_000 }]
      })
      expect(yield* available).toBe(1 + 25_000 + 47_916.667)
    })
  )

  testing(
    "to a cheaper one begins with the next period and costs nothing now",
    Effect.gen(function* () {
      const served = yield* host({ plans: [PRO, STANDARD] })
      const { available, pay, subscribe } = yield* subscriber(served)
      yield* pay(dataOf(yield* subscribe({})).payment_id)
      const chosen = dataOf(yield* subscribe({ plan: "standard" }))
      expect(chosen).toMatchObject({ plan: "pro", status: "active", next_plan: "standard", credits_per_period: 75_000 })
      expect(chosen).not.toHaveProperty("payment_id")
      const back = dataOf(yield* subscribe({ plan: "pro" }))
      for (const field of ["next_plan", "payment_id"]) expect(back).not.toHaveProperty(field)
      expect([yield* available, yield* count(served, "PaymentRequested")]).toEqual([75_001, 1])
    })
  )

  testing(
    "to a plan that the host does not have is refused with 422, names the field and the plans, and changes nothing",
    Effect.gen(function* () {
      const served = yield* host({ plans: PLANS })
      const { shown, subscribe } = yield* paying(served)
      const before = yield* shown
      for (const plan of ["gold", "Standard", "__proto__"]) {
        const refused = yield* subscribe({ plan })
        expect([plan, refused.status]).toEqual([plan, 422])
        expect(errorOf(refused)).toMatchObject({ code: "invalid_request", message: "plan: the plans are standard, pro" })
      }
      expect(yield* shown).toEqual(before)
    })
  )
})

describe("a cancellation", () => {
  testing(
    "ends it with its period, may be sent again, and is taken back by subscribing",
    Effect.gen(function* () {
      const served = yield* host({ plans: PLANS })
      const { available, cancel, subscribe, subscription_id } = yield* paying(served)
      for (const query of ["", "?now=false"]) {
        const answer = yield* cancel(subscription_id, query)
        expect(answer.status).toBe(200)
        expect(dataOf(answer)).toMatchObject({ subscription_id, status: "canceled", current_period_end: END })
      }
      expect([yield* count(served, "SubscriptionCanceled"), yield* available]).toEqual([1, 25_001])
      const resumed = dataOf(yield* subscribe({ plan: "standard" }))
      expect(resumed).toMatchObject({ subscription_id, status: "active" })
      expect(resumed).not.toHaveProperty("payment_id")
    })
  )

  testing(
    "now ends it at once; the credits stay, and the next subscription is another",
    Effect.gen(function* () {
      const served = yield* host({ plans: PLANS })
      const { available, cancel, subscribe, subscription_id } = yield* paying(served)
      for (const _ of [1, 2])
        expect(dataOf(yield* cancel(subscription_id, "?now=true"))).toMatchObject({ subscription_id, status: "ended" })
      expect([yield* count(served, "SubscriptionEnded"), yield* available]).toEqual([1, 25_001])
      const next = dataOf(yield* subscribe({ plan: "standard" }))
      expect(next).toMatchObject({ status: "pending", amount: 20 })
      expect(next.subscription_id).not.toBe(subscription_id)
    })
  )

  testing(
    "of another account's subscription, or of none, is answered 404 in the same words, and changes nothing",
    Effect.gen(function* () {
      const served = yield* host({ plans: PLANS })
      const { shown, subscription_id } = yield* paying(served)
      const before = yield* shown
      const stranger = yield* subscriber(served)
      const told = yield* Effect.forEach([subscription_id, "sub_01M7YKD46JCP6VGMKADN3JSPJP"], (id) => stranger.cancel(id, "?now=true"))
      const [other, none] = told.map((answer) => [answer.status, errorOf(answer).code, errorOf(answer).message])
      expect(other).toEqual([404, "not_found", expect.any(String)])
      expect(none).toEqual(other)
      expect([yield* shown, yield* count(served, "SubscriptionEnded")]).toEqual([before, 0])
    })
  )
})

describe("a gateway", () => {
  testing(
    "that is away makes the call fail with 503; the call may be sent again, and one subscription starts",
    Effect.gen(function* () {
      let isAway = true
      const away = Effect.fail(new PaymentGateway.GatewayUnavailable({ gateway: "manual", reason: "connect ECONNREFUSED 10.0.0.7:443" }))
      const gateway = Layer.effect(
        PaymentGateway.PaymentGateway,
        Effect.map(PaymentGateway.PaymentGateway, (manual) => ({
          ...manual,
          begin: (payment: PaymentGateway.NewPayment) => Effect.suspend(() => (isAway ? away : manual.begin(payment)))
        }))
      ).pipe(Layer.provide(ManualGateway.gateway()))
      const served = yield* host({ plans: PLANS, gateway })
      const { available, pay, shown, subscribe } = yield* subscriber(served)
      for (const key of ["one", "one", undefined]) {
        const failed = yield* subscribe({ plan: "standard" }, key)
        expect([failed.status, errorOf(failed).code]).toEqual([503, "upstream_unavailable"])
        expect(failed.body).not.toContain("10.0.0.7")
      }
      isAway = false
      const answer = yield* subscribe({ plan: "standard" }, "one")
      expect(answer.status).toBe(200)
      yield* pay(dataOf(answer).payment_id)
      expect(yield* shown).toMatchObject({ subscriptions: [{ status: "active", current_period_end: END }] })
      expect([yield* count(served, "SubscriptionStarted"), yield* available]).toEqual([1, 25_001])
    })
  )

  testing(
    "that there is not makes it fail with 503, and the plans can be read",
    Effect.gen(function* () {
      const served = yield* host({ plans: PLANS, gateway: null })
      const { shown, subscribe } = yield* subscriber(served)
      const refused = yield* subscribe({ plan: "standard" })
      expect([refused.status, errorOf(refused).code]).toEqual([503, "upstream_not_configured"])
      expect(yield* shown).toMatchObject({ subscriptions: [], plans: [{ plan: "standard" }, { plan: "pro" }] })
    })
  )
})
