import { PaymentGateway } from "@millrace/core"
import { Stripe } from "@millrace/upstreams/payments"
import { Effect, Fiber, Redacted, Result, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect, test } from "vitest"
import { faults, hangs, json, serve } from "../shared/LocalService.ts"
import { intentOf } from "./StripeObjects.ts"
import { API_KEY, StripeServer, signed, WEBHOOK_SECRET } from "./StripeServer.ts"

type Gateway = PaymentGateway.PaymentGateway["Service"]

/** The time of the test clock, in seconds. */
const NOW = 1_790_000_000

const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> =>
  Effect.andThen(TestClock.setTime(NOW * 1_000), effect).pipe(Effect.scoped, Effect.provide(TestClock.layer()), Effect.runPromise)

const gatewayAt = (baseUrl: URL, options: Partial<Stripe.Options> = {}) =>
  PaymentGateway.PaymentGateway.use((gateway) => Effect.succeed(gateway)).pipe(
    Effect.provide(
      Stripe.layer({ apiKey: Redacted.make(API_KEY), webhookSecrets: [Redacted.make(WEBHOOK_SECRET)], baseUrl, retries: 0, ...options })
    )
  )

const started = Effect.gen(function* () {
  const stripe = new StripeServer()
  stripe.now = () => NOW
  return { stripe, gateway: yield* gatewayAt(yield* stripe.server.serve) }
})

const begin = (gateway: Gateway, id: string) =>
  Effect.map(gateway.begin({ paymentId: id, amount: { minor: 1_000, currency: "USD" }, description: "10,000 credits" }), (begun) => ({
    paymentId: id,
    ...begun
  }))

const capturedIn = Effect.fnUntraced(function* (stripe: StripeServer, gateway: Gateway) {
  const known = yield* begin(gateway, "pay_1")
  stripe.authorize(known.reference)
  yield* gateway.capture(known)
  return known
})

describe("Stripe", () => {
  test("is asked for a PaymentIntent that is captured by hand and names the payment", () =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(
          json(
            intentOf({
              id: "pi_1",
              amount: 1_000,
              currency: "usd",
              description: "10,000 credits",
              metadata: { payment_id: "pay_1" },
              capture_method: "manual"
            })
          )
        )
        const { next, reference } = yield* begin(yield* gatewayAt(service.url), "pay_1")
        expect(reference).toBe("pi_1")
        expect(next).toEqual({ _tag: "ClientSecret", clientSecret: expect.stringMatching(/^pi_1_secret_/u) })
        const { body, headers, method, path } = yield* service.received
        expect([method, path]).toEqual(["POST", "/v1/payment_intents"])
        expect(Object.fromEntries(new URLSearchParams(body))).toEqual({
          amount: "1000",
          currency: "usd",
          capture_method: "manual",
          "automatic_payment_methods[enabled]": "true",
          description: "10,000 credits",
          "metadata[payment_id]": "pay_1"
        })
        expect(headers).toMatchObject({
          authorization: `Bearer ${API_KEY}`,
          "idempotency-key": "pay_1",
          "stripe-version": "2026-10-28.endive"
        })
        expect(headers["x-stripe-client-telemetry"]).toBeUndefined()
      })
    ))

  test("with a key that is none says so, and does not tell it", () =>
    run(
      Effect.gen(function* () {
        const stripe = new StripeServer()
        const url = yield* stripe.server.serve
        for (const key of ["", "  ", "sk_", "pk_test_public", "sk_test_two\nlines", "sk_test_\u2026"]) {
          const error = yield* Effect.flip(begin(yield* gatewayAt(url, { apiKey: Redacted.make(key) }), "pay_1"))
          expect(error.message).toBe("stripe does not answer now: apiKey must be a key of Stripe")
        }
        expect(stripe.server.requests).toBe(0)
      })
    ))

  test("stores the means of a first payment, and takes later ones by them while the payer is away", () =>
    run(
      Effect.gen(function* () {
        const { gateway, stripe } = yield* started
        const payment = (paymentId: string, recurring: PaymentGateway.NewPayment["recurring"] = {}) =>
          ({ paymentId, amount: { minor: 2_000, currency: "USD" }, description: "Plan standard", recurring }) as const
        const first = { paymentId: "pay_1", ...(yield* gateway.begin(payment("pay_1"))) }
        expect(stripe.intent(first.reference)).toMatchObject({ customer: "cus_1Local", setup_future_usage: "off_session" })
        stripe.authorize(first.reference)
        const { agreement = "none" } = yield* gateway.capture(first)
        expect(agreement).toBe("cus_1Local/pm_1Local")

        const second = { paymentId: "pay_2", ...(yield* gateway.begin(payment("pay_2", { agreement }))) }
        expect(yield* gateway.standing(second)).toMatchObject({ status: "captured", captured: 2_000, agreement })
        expect((yield* gateway.begin(payment("pay_2", { agreement }))).reference).toBe(second.reference)

        for (const why of ["card_declined", "authentication_required"] as const) {
          stripe.awayDeclines = why
          const error = yield* Effect.flip(gateway.begin(payment(`pay_${why}`, { agreement })))
          expect(error.message).toBe(`stripe refused the payment: ${why}`)
        }
        const noAgreement = yield* Effect.flip(gateway.begin(payment("pay_5", { agreement: "vault_1" })))
        expect(noAgreement._tag).toBe("GatewayRefused")
        const topUp = yield* begin(gateway, "pay_6")
        stripe.authorize(topUp.reference)
        expect((yield* gateway.capture(topUp)).agreement).toBeUndefined()
      })
    ))

  test("finds a refund by its id when its idempotency key is long forgotten", () =>
    run(
      Effect.gen(function* () {
        const { gateway, stripe } = yield* started
        const known = yield* capturedIn(stripe, gateway)
        const once = yield* gateway.refund(known, { refundId: "refund_1", minor: 100 })
        stripe.forgetKeys()
        expect(yield* gateway.refund(known, { refundId: "refund_1", minor: 100 })).toEqual(once)
        expect(stripe.refunds).toHaveLength(1)
      })
    ))

  test("waits for 3-D Secure, and for another card where one is declined", () =>
    run(
      Effect.gen(function* () {
        const { gateway, stripe } = yield* started
        const known = yield* begin(gateway, "pay_1")
        stripe.requireAction(known.reference)
        expect(yield* gateway.capture(known)).toMatchObject({ status: "pending", reason: null })
        stripe.decline(known.reference, "Your card has insufficient funds.")
        expect(yield* gateway.standing(known)).toMatchObject({ status: "pending", reason: "Your card has insufficient funds." })
        // Words for developers are not for the payer
        stripe.decline(known.reference, "Invalid parameter sk_test", "invalid_request_error")
        expect(yield* gateway.standing(known)).toMatchObject({ status: "pending", reason: "The payment was declined" })
        stripe.requireAction(known.reference)
        stripe.authorize(known.reference)
        expect(yield* gateway.standing(known)).toMatchObject({ status: "authorized", reason: null })
        expect(yield* gateway.capture(known)).toMatchObject({ status: "captured", captured: 1_000 })
      })
    ))

  test("says why a payment failed", () =>
    run(
      Effect.gen(function* () {
        const { gateway, stripe } = yield* started
        const known = yield* begin(gateway, "pay_1")
        stripe.cancel(known.reference, "automatic")
        expect(yield* gateway.standing(known)).toMatchObject({ status: "failed", reason: "The payment was not completed in time" })
        stripe.cancel(known.reference, "fraudulent")
        expect(yield* gateway.standing(known)).toMatchObject({ status: "failed", reason: "The payment was cancelled" })
      })
    ))

  test("tells of each refund whether it is on its way, has arrived, or came back", () =>
    run(
      Effect.gen(function* () {
        const { gateway, stripe } = yield* started
        const known = yield* capturedIn(stripe, gateway)
        const { id } = stripe.refund(known.reference, 300, {}, "pending")
        const told = Effect.map(gateway.standing(known), ({ refunds }) => refunds.map(({ minor, status }) => [minor, status]))
        expect(yield* told).toEqual([[300, "pending"]])
        stripe.changeRefund(id, "succeeded")
        expect(yield* told).toEqual([[300, "succeeded"]])
        stripe.changeRefund(id, "failed")
        expect(yield* told).toEqual([[300, "failed"]])
      })
    ))

  test("has a dispute only once money was taken, in the currency of the payment", () =>
    run(
      Effect.gen(function* () {
        const { gateway, stripe } = yield* started
        const known = yield* capturedIn(stripe, gateway)
        const disputes = Effect.map(gateway.standing(known), ({ disputes }) => disputes.map(({ minor, status }) => [minor, status]))
        const inquiry = stripe.dispute(known.reference, 100, { status: "warning_needs_response", balance_transactions: [] })
        expect(yield* disputes).toEqual([])
        stripe.changeDispute(inquiry, "warning_closed")
        expect(yield* disputes).toEqual([])
        stripe.changeDispute(inquiry, "under_review")
        expect(yield* disputes).toEqual([[100, "open"]])
        stripe.changeDispute(inquiry, "lost")
        expect(yield* disputes).toEqual([[100, "lost"]])
        stripe.dispute(known.reference, 9_000, { status: "prevented", currency: "mxn" })
        expect(yield* disputes).toEqual([
          [1_000, "lost"],
          [100, "lost"]
        ])
      })
    ))

  test("keeps what it refuses: an amount that is too small, another key, an unknown payment", () =>
    run(
      Effect.gen(function* () {
        const { gateway, stripe } = yield* started
        const small = yield* Effect.flip(gateway.begin({ paymentId: "pay_1", amount: { minor: 10, currency: "USD" }, description: "" }))
        expect(small).toMatchObject({ _tag: "GatewayRefused", gateway: "stripe", reason: "amount_too_small" })
        const odd = yield* Effect.flip(gateway.begin({ paymentId: "pay_2", amount: { minor: 1_001, currency: "KWD" }, description: "" }))
        expect(odd).toMatchObject({ _tag: "GatewayRefused", reason: "it takes no such amount of KWD" })
        const unknown = yield* Effect.flip(gateway.standing({ paymentId: "pay_1", reference: "pi_none" }))
        expect(unknown).toMatchObject({ _tag: "GatewayRefused", reason: "resource_missing" })
        const other = yield* gatewayAt(yield* stripe.server.serve, { apiKey: Redacted.make("sk_test_of_another") })
        const denied = yield* Effect.flip(begin(other, "pay_3"))
        expect(denied).toMatchObject({ _tag: "GatewayUnavailable", reason: "it answered with status 401" })
        expect(stripe.intents.size).toBe(0)
      })
    ))

  const good = intentOf({
    id: "pi_1",
    amount: 1_000,
    currency: "usd",
    description: null,
    metadata: { payment_id: "pay_1" },
    capture_method: "manual"
  })

  // Stripe's library takes any status for a success, and 400 and 403 have codes: they are tested above
  test.each(faults(good, 8_192).filter(([name]) => name !== "400" && name !== "201 with a good body"))(
    "is unavailable where it answers with %s",
    (_, answer) =>
      run(
        Effect.gen(function* () {
          const service = yield* serve(answer)
          const error = yield* Effect.flip(begin(yield* gatewayAt(service.url, { byteLimit: 8_192 }), "pay_1"))
          expect(error).toMatchObject({ _tag: "GatewayUnavailable", gateway: "stripe" })
        })
      )
  )

  test.each(hangs(good))("is unavailable where it hangs %s, and its connection is closed", (_, answer) =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(answer)
        const gateway = yield* gatewayAt(service.url, { timeLimit: "20 seconds" })
        const fiber = yield* Effect.forkChild(Effect.result(begin(gateway, "pay_1")), { startImmediately: true })
        yield* service.received
        yield* TestClock.adjust("20 seconds")
        const outcome = yield* Fiber.join(fiber)
        expect(Result.isFailure(outcome) && outcome.failure.message).toBe("stripe does not answer now: its reply exceeds the time limit")
        yield* service.abandoned
      })
    )
  )

  test("is left at once by a caller who is interrupted", () =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(() => undefined)
        const fiber = yield* Effect.forkChild(begin(yield* gatewayAt(service.url), "pay_1"), { startImmediately: true })
        yield* service.received
        yield* Fiber.interrupt(fiber)
        yield* service.abandoned
      })
    ))
})

describe("a webhook of Stripe", () => {
  const event = (object: object) => JSON.stringify({ id: "evt_1", object: "event", type: "some", data: { object } })
  const intent = event({ id: "pi_1", object: "payment_intent", metadata: { payment_id: "pay_1" } })
  const nowhere = new URL("http://127.0.0.1:9")

  test("is good for five minutes, under each secret of the host", () =>
    run(
      Effect.gen(function* () {
        const secrets = ["whsec_old", "whsec_new"]
        const { notice } = yield* gatewayAt(nowhere, { webhookSecrets: secrets.map((secret) => Redacted.make(secret)) })
        for (const secret of secrets)
          for (const age of [-5, 0, 300]) expect(yield* notice(signed(intent, secret, NOW - age))).toEqual(["pi_1"])
        expect(yield* Effect.flip(notice(signed(intent, "whsec_old", NOW - 301)))).toMatchObject({ _tag: "NoticeForged" })
        expect(yield* Effect.flip(notice(signed(intent, "whsec_other", NOW)))).toMatchObject({ _tag: "NoticeForged" })
      })
    ))

  test("is about the payments that its object names", () =>
    run(
      Effect.gen(function* () {
        const { notice } = yield* gatewayAt(nowhere)
        const read = (payload: string) => notice(signed(payload, WEBHOOK_SECRET, NOW))
        expect(yield* read(event({ id: "ch_1", object: "charge", payment_intent: "pi_2" }))).toEqual(["pi_2"])
        expect(yield* read(event({ id: "re_1", object: "refund", payment_intent: { id: "pi_3" } }))).toEqual(["pi_3"])
        for (const payload of [
          event({ id: "ch_1", object: "charge", payment_intent: null }),
          event({ id: "cus_1", object: "customer" }),
          event({ id: "pi_4", object: "payment_intent", metadata: {} }),
          "{}",
          "[1]",
          "no JSON"
        ])
          expect(yield* read(payload), payload).toEqual([])
      })
    ))

  test("is not accepted where the host has no secret, or an empty one", () =>
    run(
      Effect.gen(function* () {
        for (const secrets of [[], [""]]) {
          const { notice } = yield* gatewayAt(nowhere, { webhookSecrets: secrets.map((secret) => Redacted.make(secret)) })
          expect(yield* Effect.flip(notice(signed(intent, "", NOW)))).toMatchObject({ _tag: "NoticeForged" })
        }
      })
    ))
})
