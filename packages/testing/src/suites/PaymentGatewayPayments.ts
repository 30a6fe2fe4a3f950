/** The contract of payment gateways: from the beginning of a payment to its capture, or its failure. */
import assert from "node:assert/strict"
import { Effect } from "effect"
import { atOnce } from "./Contract.ts"
import { AMOUNT, authorized, begun, captured, newPayment, outcome, pending, whole } from "./PaymentGatewayFixtures.ts"
import type { GatewayContract } from "./PaymentProvider.ts"

export const payments: GatewayContract = {
  *"a payment that is begun twice, also at once, is begun once"([gateway, provider]) {
    const first = yield* gateway.begin(newPayment("twice"))
    assert.deepEqual(yield* gateway.begin(newPayment("twice")), first)
    const all = yield* Effect.forEach(Array.from({ length: 8 }), () => gateway.begin(newPayment("twice")), atOnce)
    for (const one of all) assert.deepEqual(one, first)
    assert.equal((yield* provider.made).payments, 1)
    const other = yield* gateway.begin(newPayment("other"))
    assert.notEqual(other.reference, first.reference)
  },

  *"a payment is pending until the payer pays, then authorized, then captured as a whole"(subject) {
    const [gateway, provider] = subject
    const known = yield* begun(subject, "life")
    assert.deepEqual(yield* gateway.standing(known), pending)
    yield* provider.approve(known.reference)
    assert.deepEqual(yield* gateway.standing(known), authorized)
    assert.deepEqual(yield* gateway.capture(known), whole)
    assert.deepEqual(yield* gateway.standing(known), whole)
  },

  *"a payment that is captured twice, also at once, is captured once"(subject) {
    const [gateway, provider] = subject
    const known = yield* begun(subject, "captured")
    yield* provider.approve(known.reference)
    const all = yield* Effect.forEach(Array.from({ length: 8 }), () => gateway.capture(known), atOnce)
    assert.deepEqual(
      all,
      all.map(() => whole)
    )
    assert.deepEqual(yield* gateway.capture(known), whole)
    assert.equal((yield* provider.made).captures, 1)
  },

  *"a payment that nobody has paid is not captured"(subject) {
    const [gateway, provider] = subject
    const known = yield* begun(subject, "unpaid")
    assert.deepEqual(yield* gateway.capture(known), pending)
    assert.equal((yield* provider.made).captures, 0)
  },

  *"what the payer needs is told again until the payment is captured, where the gateway can tell it"([gateway, provider]) {
    if (gateway.next === undefined) return
    const payment = newPayment("again")
    const { next, reference } = yield* gateway.begin(payment)
    assert.deepEqual(yield* gateway.next({ ...payment, reference }), next)
    assert.equal(yield* outcome(gateway.next({ ...payment, paymentId: "pay_another", reference })), "GatewayRefused")
    yield* provider.approve(reference)
    yield* gateway.capture({ ...payment, reference })
    assert.equal(yield* gateway.next({ ...payment, reference }), undefined)
  },

  *"a payment that was declined says why, and can be paid by other means"(subject) {
    const [gateway, provider] = subject
    const known = yield* begun(subject, "declined")
    yield* provider.decline(known.reference)
    const { captured, reason, status } = yield* gateway.capture(known)
    assert.equal(captured, 0)
    assert(status === "pending" || status === "authorized")
    assert.match(reason ?? "", /^[A-Z].{5,}/u)
    yield* provider.approve(known.reference)
    assert.deepEqual(yield* gateway.capture(known), whole)
  },

  *"a payment that was called off has failed, says why, and is not captured"(subject) {
    const [gateway, provider] = subject
    for (const isPaid of [false, true]) {
      const known = yield* begun(subject, `off-${isPaid}`)
      if (isPaid) yield* provider.approve(known.reference)
      yield* provider.cancel(known.reference)
      for (const standing of [yield* gateway.standing(known), yield* gateway.capture(known)]) {
        assert.deepEqual({ ...standing, reason: null }, { ...pending, status: "failed" })
        assert.match(standing.reason ?? "", /^[A-Z].{5,}/u)
      }
    }
    assert.equal((yield* provider.made).captures, 0)
  },

  *"a reference is of one payment only"(subject) {
    const [gateway, provider] = subject
    const known = yield* begun(subject, "mine")
    yield* provider.approve(known.reference)
    const wrong = { ...known, paymentId: "pay_another" }
    assert.equal(yield* outcome(gateway.standing(wrong)), "GatewayRefused")
    assert.equal(yield* outcome(gateway.capture(wrong)), "GatewayRefused")
    yield* gateway.capture(known)
    assert.equal(yield* outcome(gateway.refund(wrong, { refundId: "refund", minor: 1 })), "GatewayRefused")
    assert.deepEqual(yield* provider.made, { payments: 1, captures: 1, refunds: 0 })
  },

  *"an amount stays the same in each currency, also without decimals"(subject) {
    const [gateway] = subject
    for (const currency of ["USD", "EUR", "JPY"]) {
      const known = yield* captured(subject, currency, { minor: AMOUNT.minor, currency })
      assert.equal((yield* gateway.standing(known)).captured, AMOUNT.minor)
    }
  }
}
