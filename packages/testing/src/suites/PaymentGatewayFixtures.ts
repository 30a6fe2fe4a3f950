/** Payments of the contract of payment gateways. */
import assert from "node:assert/strict"
import type { PaymentGateway } from "@millrace/core"
import { Effect } from "effect"
import type { GatewayContract } from "./PaymentProvider.ts"

type Subject = Parameters<GatewayContract[string]>[0]
type Known = PaymentGateway.Known
type Standing = PaymentGateway.Standing

export const AMOUNT: PaymentGateway.Amount = { minor: 2_500, currency: "USD" }

export const newPayment = (id: string, amount = AMOUNT): PaymentGateway.NewPayment => ({
  paymentId: `pay_${id}`,
  amount,
  description: "25,000 credits"
})

/** A payment that was begun. */
export const begun = Effect.fnUntraced(function* ([gateway]: Subject, id: string, amount = AMOUNT) {
  const payment = newPayment(id, amount)
  const { reference } = yield* gateway.begin(payment)
  return { paymentId: payment.paymentId, reference } satisfies Known
})

/** A payment that was captured. */
export const captured = Effect.fnUntraced(function* (subject: Subject, id: string, amount = AMOUNT) {
  const [gateway, provider] = subject
  const known = yield* begun(subject, id, amount)
  yield* provider.approve(known.reference)
  assert.equal((yield* gateway.capture(known)).status, "captured")
  return known
})

const NOTHING: Standing = { status: "pending", reason: null, captured: 0, refunds: [], disputes: [] }

export const pending = NOTHING
export const authorized: Standing = { ...NOTHING, status: "authorized" }
export const whole: Standing = { ...NOTHING, status: "captured", captured: AMOUNT.minor }

/** The tag of its failure, or `success`. */
export const outcome = <A, E extends { readonly _tag: string }, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<string, never, R> =>
  Effect.match(effect, { onFailure: (error) => error._tag, onSuccess: () => "success" })

export const sum = (all: ReadonlyArray<{ readonly minor: number }>): number => all.reduce((total, { minor }) => total + minor, 0)

const RANK = { pending: 0, authorized: 1, captured: 2, failed: 2 }

const DISPUTE_RANK = { open: 0, lost: 1, won: 2 }

/** Fails unless the later standing has all of the earlier one. */
export const assertGrew = (before: Standing, after: Standing): void => {
  assert(RANK[after.status] >= RANK[before.status], `${before.status} became ${after.status}`)
  if (before.status === "captured" || before.status === "failed") assert.equal(after.status, before.status)
  assert(after.captured >= before.captured)
  for (const refund of before.refunds) {
    const now = after.refunds.filter(({ reference }) => reference === refund.reference)
    assert.deepEqual(now, [{ ...refund, status: refund.status === "failed" ? "failed" : now[0]?.status }])
  }
  for (const { minor, reference, status } of before.disputes) {
    const now = after.disputes.filter((dispute) => dispute.reference === reference)
    assert.deepEqual(now, [{ reference, minor, status: now[0]?.status }])
    assert(DISPUTE_RANK[now[0]?.status ?? "open"] >= DISPUTE_RANK[status], `a dispute that was ${status} became ${now[0]?.status}`)
  }
}
