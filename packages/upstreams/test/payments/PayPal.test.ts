import { PaymentGateway } from "@millrace/core"
import { PayPal } from "@millrace/upstreams/payments"
import { CheckoutPaymentIntent, PaypalExperienceUserAction, PaypalWalletContextShippingPreference } from "@paypal/paypal-server-sdk"
import { Duration, Effect, Fiber, Redacted, Result, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect, test } from "vitest"
import { type Answer, faults, hangs, json, type Received, serve } from "../shared/LocalService.ts"
import { sdkAt } from "./PayPalSdk.ts"
import { CLIENT_ID, CLIENT_SECRET, noticeOf, PayPalServer, WEBHOOK_ID } from "./PayPalServer.ts"

type Gateway = PaymentGateway.PaymentGateway["Service"]

const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> =>
  effect.pipe(Effect.scoped, Effect.provide(TestClock.layer()), Effect.runPromise)

const gatewayAt = (baseUrl: URL, options: Partial<PayPal.Options> = {}) =>
  PaymentGateway.PaymentGateway.use((gateway) => Effect.succeed(gateway)).pipe(
    Effect.provide(
      PayPal.layer({
        clientId: CLIENT_ID,
        clientSecret: Redacted.make(CLIENT_SECRET),
        webhookId: WEBHOOK_ID,
        returnUrl: new URL("https://example.com/paid?from=paypal"),
        cancelUrl: new URL("https://example.com/given-up"),
        brandName: "Mill",
        baseUrl,
        retries: 0,
        ...options
      })
    )
  )

const started = Effect.gen(function* () {
  const paypal = new PayPalServer()
  const url = yield* paypal.server.serve
  return { paypal, url, gateway: yield* gatewayAt(url) }
})

const begin = (gateway: Gateway, id: string) =>
  Effect.map(gateway.begin({ paymentId: id, amount: { minor: 1_000, currency: "USD" }, description: "10,000 credits" }), (begun) => ({
    paymentId: id,
    ...begun
  }))

const approvedIn = Effect.fnUntraced(function* (paypal: PayPalServer, gateway: Gateway, id = "pay_1") {
  const known = yield* begin(gateway, id)
  paypal.approve(known.reference)
  return known
})

const capturedIn = (paypal: PayPalServer, gateway: Gateway) => Effect.tap(approvedIn(paypal, gateway), (known) => gateway.capture(known))

const usd = (value: string) => ({ currency_code: "USD", value })

describe("the local server of PayPal", () => {
  test("is understood by the official SDK, from an order to its refund", () =>
    run(
      Effect.gen(function* () {
        const { paypal, url } = yield* started
        const { orders, payments } = sdkAt(url)
        const sdk = <A>(call: () => Promise<A>) => Effect.promise(call)
        const body = {
          intent: CheckoutPaymentIntent.Capture,
          purchaseUnits: [
            { customId: "pay_1", invoiceId: "pay_1", description: "10,000 credits", amount: { currencyCode: "USD", value: "10.00" } }
          ],
          paymentSource: { paypal: { experienceContext: { returnUrl: "https://example.com", cancelUrl: "https://example.com" } } }
        }
        const { result: order } = yield* sdk(() => orders.createOrder({ body, paypalRequestId: "pay_1" }))
        const id = order.id ?? ""
        expect(order).toMatchObject({ status: "PAYER_ACTION_REQUIRED", purchaseUnits: [{ customId: "pay_1" }] })
        const refusal = yield* sdk(() => orders.captureOrder({ id, body: {} }).then(undefined, (error) => error))
        expect(refusal).toMatchObject({ statusCode: 422, result: { details: [{ issue: "ORDER_NOT_APPROVED" }] } })
        paypal.approve(id)
        const { result: captured } = yield* sdk(() => orders.captureOrder({ id, body: {} }))
        const captureId = captured.purchaseUnits?.[0]?.payments?.captures?.[0]?.id ?? ""
        const { result: capture } = yield* sdk(() => payments.getCapturedPayment({ captureId }))
        expect(capture).toMatchObject({ status: "COMPLETED", supplementaryData: { relatedIds: { orderId: id } } })
        const amount = { currencyCode: "USD", value: "2.50" }
        const { result: refund } = yield* sdk(() => payments.refundCapturedPayment({ captureId, body: { amount, customId: "refund_1" } }))
        expect(refund).toMatchObject({ status: "COMPLETED", amount, customId: "refund_1" })
        const { result: last } = yield* sdk(() => orders.getOrder({ id }))
        expect(last.purchaseUnits?.[0]?.payments).toMatchObject({ captures: [{ id: captureId }], refunds: [{ id: refund.id }] })
      })
    ))
})

/** Answers as a server, and keeps what it was sent. */
const recorded = (paypal: PayPalServer, bodies: Map<string, unknown>) => {
  const handle = paypal.server.handle
  return ({ body, method, path, ...rest }: Received) => {
    if (method === "POST" && body.startsWith("{")) bodies.set(path.replaceAll(/[0-9][0-9A-Z]{10,}/gu, "*"), JSON.parse(body))
    return handle({ body, method, path, ...rest })
  }
}

describe("PayPal", () => {
  test("is sent what the official SDK sends for the same order, capture and refund", () =>
    run(
      Effect.gen(function* () {
        const ours = new Map<string, unknown>()
        const theirs = new Map<string, unknown>()
        const first = new PayPalServer()
        first.server.handle = recorded(first, ours)
        const gateway = yield* gatewayAt(yield* first.server.serve)
        const known = yield* capturedIn(first, gateway)
        yield* gateway.refund(known, { refundId: "refund_1", minor: 250 })

        const second = new PayPalServer()
        second.server.handle = recorded(second, theirs)
        const { orders, payments } = sdkAt(yield* second.server.serve)
        const experienceContext = {
          brandName: "Mill",
          returnUrl: "https://example.com/paid?from=paypal&payment=pay_1",
          cancelUrl: "https://example.com/given-up?payment=pay_1",
          shippingPreference: PaypalWalletContextShippingPreference.NoShipping,
          userAction: PaypalExperienceUserAction.PayNow
        }
        const unit = {
          customId: "pay_1",
          invoiceId: "pay_1",
          description: "10,000 credits",
          amount: { currencyCode: "USD", value: "10.00" }
        }
        const body = { intent: CheckoutPaymentIntent.Capture, purchaseUnits: [unit], paymentSource: { paypal: { experienceContext } } }
        yield* Effect.promise(async () => {
          const { result } = await orders.createOrder({ body })
          const id = result.id ?? ""
          second.approve(id)
          const { result: order } = await orders.captureOrder({ id, body: {} })
          const captureId = order.purchaseUnits?.[0]?.payments?.captures?.[0]?.id ?? ""
          await payments.refundCapturedPayment({
            captureId,
            body: { amount: { currencyCode: "USD", value: "2.50" }, customId: "refund_1" }
          })
        })
        expect([...ours.keys()]).toEqual(["/v2/checkout/orders", "/v2/checkout/orders/*/capture", "/v2/payments/captures/*/refund"])
        expect(Object.fromEntries(ours)).toEqual(Object.fromEntries(theirs))
      })
    ))

  test("gives the payer an address to approve the payment at", () =>
    run(
      Effect.gen(function* () {
        const { gateway } = yield* started
        const { next, reference } = yield* begin(gateway, "pay_1")
        expect(next).toEqual({ _tag: "ApproveUrl", approveUrl: `https://www.sandbox.paypal.com/checkoutnow?token=${reference}` })
      })
    ))

  test("waits for an eCheck, which comes, or does not", () =>
    run(
      Effect.gen(function* () {
        const { gateway, paypal } = yield* started
        for (const [id, end, expected] of [
          ["pay_1", "COMPLETED", { status: "captured", captured: 1_000, reason: null }],
          ["pay_2", "DECLINED", { status: "failed", captured: 0, reason: "PayPal declined the payment" }]
        ] as const) {
          const known = yield* approvedIn(paypal, gateway, id)
          paypal.outcomes.push({ status: "PENDING", reason: "ECHECK" })
          const waiting = { status: "authorized", captured: 0, reason: "PayPal is waiting for the money" }
          expect(yield* gateway.capture(known)).toMatchObject(waiting)
          expect(yield* gateway.capture(known)).toMatchObject(waiting)
          paypal.changeCapture(known.reference, end)
          expect(yield* gateway.standing(known)).toMatchObject(expected)
        }
        expect(paypal.captures).toBe(2)
      })
    ))

  test("is refused a capture for another reason than the payer's means", () =>
    run(
      Effect.gen(function* () {
        const { gateway, paypal } = yield* started
        const known = yield* approvedIn(paypal, gateway)
        paypal.outcomes.push({ issue: "PAYEE_ACCOUNT_RESTRICTED" })
        expect(yield* Effect.flip(gateway.capture(known))).toMatchObject({ _tag: "GatewayRefused", reason: "PAYEE_ACCOUNT_RESTRICTED" })
        expect(yield* gateway.capture(known)).toMatchObject({ status: "captured" })
      })
    ))

  test("forgets an order that nobody captured in time: it has failed", () =>
    run(
      Effect.gen(function* () {
        const { gateway, paypal } = yield* started
        const known = yield* approvedIn(paypal, gateway)
        paypal.forget(known.reference)
        for (const standing of [yield* gateway.standing(known), yield* gateway.capture(known)])
          expect(standing).toMatchObject({ status: "failed", reason: "The payment was not completed in time" })
      })
    ))

  test("has given back what is on its way to the payer, and not what failed", () =>
    run(
      Effect.gen(function* () {
        const { gateway, paypal } = yield* started
        const known = yield* capturedIn(paypal, gateway)
        paypal.refund(known.reference, usd("1.00"), undefined, "PENDING")
        paypal.refund(known.reference, usd("2.00"), undefined, "FAILED")
        paypal.refund(known.reference, usd("3.00"), undefined, "CANCELLED")
        expect((yield* gateway.standing(known)).refunds.map(({ minor, status }) => [minor, status])).toEqual([
          [100, "pending"],
          [200, "failed"],
          [300, "failed"]
        ])
      })
    ))

  test("finds a refund by its id when its request id is long forgotten", () =>
    run(
      Effect.gen(function* () {
        const { gateway, paypal } = yield* started
        const known = yield* capturedIn(paypal, gateway)
        const once = yield* gateway.refund(known, { refundId: "refund_1", minor: 100 })
        paypal.forgetKeys()
        expect(yield* gateway.refund(known, { refundId: "refund_1", minor: 100 })).toEqual(once)
        expect(paypal.refunds).toBe(1)
      })
    ))

  test("has captured what it holds again, because the payer complains", () =>
    run(
      Effect.gen(function* () {
        const { gateway, paypal } = yield* started
        const known = yield* capturedIn(paypal, gateway)
        for (const reason of ["BUYER_COMPLAINT", "CHARGEBACK", "REFUNDED"] as const) {
          paypal.changeCapture(known.reference, "PENDING", reason)
          expect(yield* gateway.standing(known)).toMatchObject({ status: "captured", captured: 1_000 })
        }
      })
    ))

  test("has a dispute once it is more than an inquiry, by its outcome and by who paid", () =>
    run(
      Effect.gen(function* () {
        const { gateway, paypal } = yield* started
        const known = yield* capturedIn(paypal, gateway)
        const disputes = Effect.map(gateway.standing(known), ({ disputes }) => disputes.map(({ minor, status }) => [minor, status]))
        const id = paypal.dispute(known.reference, usd("4.00"), { dispute_life_cycle_stage: "INQUIRY" })
        expect(yield* disputes).toEqual([])
        paypal.changeDispute(id, { dispute_life_cycle_stage: "CHARGEBACK", status: "UNDER_REVIEW" })
        expect(yield* disputes).toEqual([[400, "open"]])
        const taken = { affected_party: "SELLER", amount: usd("4.00"), type: "DEBIT", reason: "DISPUTE_SETTLEMENT" } as const
        for (const [outcome_code, money_movements, status] of [
          ["RESOLVED_SELLER_FAVOUR", [], "won"],
          ["CANCELED_BY_BUYER", [], "won"],
          ["DENIED", [], "won"],
          ["RESOLVED_BUYER_FAVOUR", [], "lost"],
          ["ACCEPTED", [], "lost"],
          ["RESOLVED_WITH_PAYOUT", [], "won"],
          ["RESOLVED_WITH_PAYOUT", [{ ...taken, affected_party: "PAYPAL" }], "won"],
          ["RESOLVED_WITH_PAYOUT", [taken], "lost"],
          ["NONE", [taken, { ...taken, type: "CREDIT" }], "won"]
        ] as const) {
          paypal.changeDispute(id, { status: "RESOLVED", dispute_outcome: { outcome_code }, money_movements })
          expect(yield* disputes, outcome_code).toEqual([[400, status]])
        }
        paypal.dispute(known.reference, { currency_code: "MXN", value: "900.00" })
        expect(yield* disputes).toContainEqual([1_000, "open"])
      })
    ))

  test("is signed in to once, again in time, and again after its token was revoked", () =>
    run(
      Effect.gen(function* () {
        const { gateway, paypal } = yield* started
        yield* Effect.forEach([1, 2, 3, 4], (id) => begin(gateway, `pay_${id}`), { concurrency: "unbounded" })
        expect(paypal.issued).toBe(1)
        yield* TestClock.adjust(Duration.seconds(paypal.lifetime - 61))
        yield* begin(gateway, "pay_5")
        expect(paypal.issued).toBe(1)
        yield* TestClock.adjust("1 second")
        yield* begin(gateway, "pay_6")
        expect(paypal.issued).toBe(2)
        paypal.tokens.clear()
        yield* begin(gateway, "pay_7")
        expect(paypal.issued).toBe(3)
      })
    ))

  test("that refuses the app is unavailable, and what cannot be paid so is refused", () =>
    run(
      Effect.gen(function* () {
        const { gateway, url } = yield* started
        const other = yield* gatewayAt(url, { clientSecret: Redacted.make("another") })
        expect(yield* Effect.flip(begin(other, "pay_1"))).toMatchObject({
          _tag: "GatewayUnavailable",
          reason: "it refuses the client id and the secret"
        })
        const odd = gateway.begin({ paymentId: "pay_2", amount: { minor: 1_050, currency: "HUF" }, description: "" })
        expect(yield* Effect.flip(odd)).toMatchObject({ _tag: "GatewayRefused", reason: "it takes no such amount of HUF" })
        const none = gateway.begin({ paymentId: "pay_3", amount: { minor: 0, currency: "USD" }, description: "" })
        expect(yield* Effect.flip(none)).toMatchObject({ _tag: "GatewayRefused", reason: "DECIMAL_PRECISION" })
        const path = gateway.standing({ paymentId: "pay_1", reference: "../../v1/oauth2/token" })
        expect(yield* Effect.flip(path)).toMatchObject({ _tag: "GatewayRefused", reason: "this is no id of an order" })
      })
    ))

  /** Signs in everybody, and answers everything else so. */
  const afterSignIn =
    (answer: Answer): Answer =>
    (response, request) =>
      request.path === "/v1/oauth2/token"
        ? json({ access_token: "token", token_type: "Bearer", expires_in: 60_000 })(response, request)
        : answer(response, request)

  const good = { id: "5O0000000000001NL", links: [{ href: "https://www.paypal.com/approve", rel: "payer-action" }] }

  test.each(faults(good, 8_192).filter(([name]) => name !== "400" && name !== "201 with a good body"))(
    "is unavailable where it answers with %s",
    (_, answer) =>
      run(
        Effect.gen(function* () {
          for (const served of [answer, afterSignIn(answer)]) {
            const service = yield* serve(served)
            const error = yield* Effect.flip(begin(yield* gatewayAt(service.url, { byteLimit: 8_192 }), "pay_1"))
            expect(error).toMatchObject({ _tag: "GatewayUnavailable", gateway: "paypal" })
          }
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
        expect(Result.isFailure(outcome) && outcome.failure.message).toBe("paypal does not answer now: its reply exceeds the time limit")
        yield* service.abandoned
      })
    )
  )
})

describe("a webhook of PayPal", () => {
  test("that cannot be one is refused without asking PayPal", () =>
    run(
      Effect.gen(function* () {
        const { gateway, paypal } = yield* started
        for (const body of ["", "no JSON", "[]", "7", "null", '{"a":1},"webhook_event":{}', `{"a":"${"b".repeat(300_000)}"}`])
          expect(yield* Effect.flip(gateway.notice(noticeOf(body, "t", "s")))).toMatchObject({ _tag: "NoticeForged" })
        expect(yield* Effect.flip(gateway.notice(noticeOf("{}", "t".repeat(3_000), "s")))).toMatchObject({ _tag: "NoticeForged" })
        expect(paypal.server.requests).toBe(0)
      })
    ))

  test("for another webhook is refused", () =>
    run(
      Effect.gen(function* () {
        const { gateway, paypal, url } = yield* started
        yield* approvedIn(paypal, gateway)
        const [notice = noticeOf("", "", "")] = paypal.webhooks()
        const other = yield* gatewayAt(url, { webhookId: "1AB23456CD789012E" })
        expect(yield* Effect.flip(other.notice(notice))).toMatchObject({ _tag: "NoticeForged" })
        expect(yield* gateway.notice(notice)).toHaveLength(1)
      })
    ))

  test("is not judged while PayPal does not answer", () =>
    run(
      Effect.gen(function* () {
        const { gateway, paypal } = yield* started
        const known = yield* approvedIn(paypal, gateway)
        const [notice = noticeOf("", "", "")] = paypal.webhooks()
        paypal.server.fail(["away"])
        expect(yield* Effect.flip(gateway.notice(notice))).toMatchObject({ _tag: "GatewayUnavailable" })
        expect(yield* gateway.notice(notice)).toEqual([known.reference])
      })
    ))

  test("about a refund or a dispute of an order that PayPal has forgotten is about none", () =>
    run(
      Effect.gen(function* () {
        const { gateway, paypal } = yield* started
        const known = yield* capturedIn(paypal, gateway)
        paypal.refund(known.reference, usd("1.00"))
        paypal.dispute(known.reference, usd("1.00"))
        const late = paypal.webhooks().slice(-2)
        paypal.forget(known.reference)
        for (const notice of late) expect(yield* gateway.notice(notice)).toEqual([])
      })
    ))
})
