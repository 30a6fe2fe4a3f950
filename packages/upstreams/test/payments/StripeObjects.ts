/** Objects of Stripe as its API answers with them. The types are the SDK's, so that nothing here compiles that strays from the published API. */
import type Stripe from "stripe"

/** Seconds since the epoch. */
const CREATED = 1_790_000_000

export const intentOf = (
  fields: Pick<Stripe.PaymentIntent, "id" | "amount" | "currency" | "description" | "metadata" | "capture_method">
): Stripe.PaymentIntent => ({
  object: "payment_intent",
  allowed_payment_method_types: null,
  amount_capturable: 0,
  amount_received: 0,
  application: null,
  application_fee_amount: null,
  automatic_payment_methods: { enabled: true },
  canceled_at: null,
  cancellation_reason: null,
  client_secret: `${fields.id}_secret_${Buffer.from(fields.id).toString("hex")}`,
  confirmation_method: "automatic",
  created: CREATED,
  customer: null,
  customer_account: null,
  excluded_payment_method_types: null,
  last_payment_error: null,
  latest_charge: null,
  livemode: false,
  managed_payments: null,
  next_action: null,
  on_behalf_of: null,
  payment_method: null,
  payment_method_configuration_details: null,
  payment_method_options: null,
  payment_method_types: ["card"],
  payment_record: null,
  processing: null,
  receipt_email: null,
  review: null,
  setup_future_usage: null,
  shipping: null,
  source: null,
  statement_descriptor: null,
  statement_descriptor_suffix: null,
  status: "requires_payment_method",
  transfer_group: null,
  ...fields
})

export const refundOf = (
  fields: Pick<Stripe.Refund, "id" | "amount" | "currency" | "payment_intent" | "metadata" | "charge"> & Partial<Stripe.Refund>
): Stripe.Refund => ({
  object: "refund",
  balance_transaction: `txn_${fields.id}`,
  created: CREATED,
  customer: null,
  customer_account: null,
  payment_method: null,
  reason: null,
  receipt_number: null,
  source_transfer_reversal: null,
  status: "succeeded",
  transfer_reversal: null,
  ...fields
})

/** Money that a dispute takes from the host, or gives back to it. */
export const movementOf = (dispute: string, amount: number, currency: string): Stripe.BalanceTransaction => ({
  id: `txn_${dispute}_${amount}`,
  object: "balance_transaction",
  amount,
  available_on: CREATED,
  balance_type: "payments",
  created: CREATED,
  currency,
  description: null,
  exchange_rate: null,
  fee: 1_500,
  fee_details: [],
  net: amount - 1_500,
  reporting_category: amount < 0 ? "dispute" : "dispute_reversal",
  source: dispute,
  status: "available",
  type: "adjustment"
})

/** Evidence that nobody has given. */
const EVIDENCE: Stripe.Dispute.Evidence = {
  access_activity_log: null,
  appeal: {},
  billing_address: null,
  cancellation_policy: null,
  cancellation_policy_disclosure: null,
  cancellation_rebuttal: null,
  customer_communication: null,
  customer_email_address: null,
  customer_name: null,
  customer_purchase_ip: null,
  customer_signature: null,
  duplicate_charge_documentation: null,
  duplicate_charge_explanation: null,
  duplicate_charge_id: null,
  enhanced_evidence: {},
  product_description: null,
  receipt: null,
  refund_policy: null,
  refund_policy_disclosure: null,
  refund_refusal_explanation: null,
  service_date: null,
  service_documentation: null,
  shipping_address: null,
  shipping_carrier: null,
  shipping_date: null,
  shipping_documentation: null,
  shipping_tracking_number: null,
  uncategorized_file: null,
  uncategorized_text: null
}

export const disputeOf = (
  fields: Pick<Stripe.Dispute, "id" | "amount" | "currency" | "payment_intent" | "charge"> & Partial<Stripe.Dispute>
): Stripe.Dispute => ({
  object: "dispute",
  balance_transactions: [movementOf(fields.id, -fields.amount, fields.currency)],
  created: CREATED,
  enhanced_eligibility_types: [],
  evidence: EVIDENCE,
  evidence_details: {
    due_by: null,
    enhanced_eligibility: {},
    has_evidence: false,
    past_due: false,
    submission_count: 0,
    submission_method: "manual"
  },
  intended_submission_method: null,
  is_charge_refundable: false,
  livemode: false,
  metadata: {},
  reason: "fraudulent",
  status: "needs_response",
  ...fields
})

export const errorOf = (type: Stripe.StripeRawError["type"], code: string, message: string): { readonly error: object } => ({
  error: { type, code, message, doc_url: `https://stripe.com/docs/error-codes/${code}` }
})

/** An event of a webhook. `Stripe.Event` is a union of each type with its object; a test makes the pair. */
export const eventOf = (
  id: string,
  type: Stripe.Event["type"],
  object: Stripe.PaymentIntent | Stripe.Refund | Stripe.Dispute
): Pick<Stripe.Event, "id" | "object" | "type" | "created" | "livemode" | "pending_webhooks"> & {
  readonly data: { readonly object: object }
} => ({
  id,
  object: "event",
  type,
  created: CREATED,
  livemode: false,
  pending_webhooks: 1,
  data: { object }
})
