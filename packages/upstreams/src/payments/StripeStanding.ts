/** What Stripe says of a PaymentIntent, its refunds and its disputes, as a standing. */
import type { PaymentGateway } from "@millrace/core"
import { Schema } from "effect"
import * as Amounts from "./Amounts.ts"

/** An object by its id, or null. */
const Reference = Schema.NullOr(Schema.Union([Schema.String, Schema.Struct({ id: Schema.String })]))

const idOf = (reference: typeof Reference.Type | undefined): string | undefined =>
  typeof reference === "string" ? reference : reference?.id

/** The fields of a PaymentIntent that are used: https://docs.stripe.com/api/payment_intents/object */
export const Intent = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("payment_intent"),
  status: Schema.Literals([
    "requires_payment_method",
    "requires_confirmation",
    "requires_action",
    "processing",
    "requires_capture",
    "succeeded",
    "canceled"
  ]),
  amount_received: Schema.Int,
  currency: Schema.String,
  client_secret: Schema.NullOr(Schema.String),
  metadata: Schema.Record(Schema.String, Schema.String),
  customer: Schema.optionalKey(Reference),
  payment_method: Schema.optionalKey(Reference),
  last_payment_error: Schema.NullOr(Schema.Struct({ type: Schema.String, message: Schema.optionalKey(Schema.String) })),
  cancellation_reason: Schema.NullOr(Schema.String)
})

/** https://docs.stripe.com/api/refunds/object */
export const Refund = Schema.Struct({
  id: Schema.String,
  amount: Schema.Int,
  status: Schema.NullOr(Schema.String),
  metadata: Schema.NullOr(Schema.Record(Schema.String, Schema.String))
})

/** https://docs.stripe.com/api/disputes/object */
export const Dispute = Schema.Struct({
  id: Schema.String,
  amount: Schema.Int,
  currency: Schema.String,
  status: Schema.String,
  balance_transactions: Schema.Array(Schema.Struct({ amount: Schema.Int }))
})

export type Intent = typeof Intent.Type
export type Refund = typeof Refund.Type
export type Dispute = typeof Dispute.Type

/** Undefined if an amount is not whole in its currency. */
export const standingOf = (
  intent: Intent,
  refunds: ReadonlyArray<Refund>,
  disputes: ReadonlyArray<Dispute>
): PaymentGateway.Standing | undefined => {
  const currency = intent.currency.toUpperCase()
  const status = statusOf(intent)
  const captured = status === "captured" ? Amounts.fromStripe(intent.amount_received, currency) : 0
  if (captured === undefined) return undefined
  const given: Array<PaymentGateway.Refund> = []
  for (const { amount, id, status } of refunds) {
    const minor = Amounts.fromStripe(amount, currency)
    if (minor === undefined) return undefined
    given.push({ reference: id, minor, status: refundStatusOf(status) })
  }
  const taken = disputes.flatMap((dispute) => disputeOf(dispute, currency, captured))
  const agreement = status === "captured" ? agreementOf(intent) : undefined
  return { status, reason: reasonOf(intent), captured, ...(agreement === undefined ? {} : { agreement }), refunds: given, disputes: taken }
}

/** Only payments of subscriptions have a customer: `cus_.../pm_...`. */
const agreementOf = ({ customer, payment_method }: Intent): string | undefined => {
  const [payer, means] = [idOf(customer), idOf(payment_method)]
  return payer === undefined || means === undefined ? undefined : `${payer}/${means}`
}

const AGREEMENT = /^(?<customer>cus_\w+)\/(?<means>pm_\w+)$/u

/** The customer and the payment method of an agreement; undefined if it is none of Stripe's. */
export const meansOf = (agreement: string): { readonly customer: string; readonly payment_method: string } | undefined => {
  const { customer, means } = AGREEMENT.exec(agreement)?.groups ?? {}
  return customer === undefined || means === undefined ? undefined : { customer, payment_method: means }
}

/** The money has left the host's balance, unless the bank did not take it: https://docs.stripe.com/refunds#failed-refunds */
const refundStatusOf = (status: Refund["status"]): PaymentGateway.Refund["status"] => {
  if (status === "failed" || status === "canceled") return "failed"
  return status === "succeeded" ? "succeeded" : "pending"
}

const statusOf = ({ status }: Intent): PaymentGateway.Standing["status"] => {
  switch (status) {
    case "requires_capture":
      return "authorized"
    case "succeeded":
      return "captured"
    case "canceled":
      return "failed"
    default:
      return "pending"
  }
}

/** Stripe's sentences about cards are for their holders; those of other errors are for developers. */
const reasonOf = ({ cancellation_reason, last_payment_error: error, status }: Intent): string | null => {
  if (status === "succeeded" || status === "requires_capture") return null
  if (error !== null) return error.type === "card_error" && error.message ? error.message : "The payment was declined"
  if (status !== "canceled") return null
  return cancellation_reason === "automatic" || cancellation_reason === "expired"
    ? "The payment was not completed in time"
    : "The payment was cancelled"
}

const OPEN: ReadonlySet<string> = new Set(["needs_response", "under_review", "appeal_needs_response", "appeal_under_review"])

/** An inquiry (`warning_...`), or a dispute that was prevented, counts only if money was taken. */
const disputeOf = (dispute: Dispute, currency: string, captured: number): ReadonlyArray<PaymentGateway.Dispute> => {
  const { status } = dispute
  const isTaken = dispute.balance_transactions.reduce((sum, { amount }) => sum + amount, 0) < 0
  const end = status === "won" || status === "lost" ? status : OPEN.has(status) ? "open" : isTaken ? "lost" : undefined
  if (end === undefined) return []
  // A dispute in another currency than the payment's is of the whole payment
  const isComparable = dispute.currency.toUpperCase() === currency
  const minor = (isComparable ? Amounts.fromStripe(dispute.amount, currency) : undefined) ?? captured
  return [{ reference: dispute.id, minor, status: end }]
}
