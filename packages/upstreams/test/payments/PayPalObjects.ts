/**
 * Objects of PayPal as its API answers with them. Their types are made from those of the official SDK, so that nothing here compiles that strays
 * from the published API. The SDK has no disputes and no webhooks: their shapes are of
 * https://developer.paypal.com/docs/api/customer-disputes/v1/ and https://developer.paypal.com/docs/api/webhooks/v1/
 */
import type { CapturedPayment, LinkDescription, Order, OrderRequest, OrdersCapture, Refund, RefundRequest } from "@paypal/paypal-server-sdk"

type Snake<Name extends string> = Name extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${Snake<Rest>}`
  : ""

/** An object of the SDK as it is sent: names in snake case, enumerations as their values. */
export type Wire<A> = A extends string
  ? `${A}`
  : A extends ReadonlyArray<infer One>
    ? ReadonlyArray<Wire<One>>
    : A extends object
      ? { readonly [Name in keyof A as Name extends string ? Snake<Name> : never]: Wire<A[Name]> }
      : A

export type WireOrder = Wire<Pick<Order, "id" | "intent" | "status" | "purchaseUnits" | "links" | "createTime">>
export type WireCapture = Wire<OrdersCapture>
export type WireCaptured = Wire<CapturedPayment>
export type WireRefund = Wire<Refund>
export type WireOrderRequest = Wire<Pick<OrderRequest, "intent" | "purchaseUnits" | "paymentSource">>
export type WireRefundRequest = Wire<RefundRequest>
export type WireUnit = NonNullable<WireOrder["purchase_units"]>[number]

export interface WireMoney {
  readonly currency_code: string
  readonly value: string
}

export interface WireDispute {
  readonly dispute_id: string
  readonly create_time: string
  readonly disputed_transactions: ReadonlyArray<{ readonly seller_transaction_id: string; readonly buyer_transaction_id: string }>
  readonly reason: string
  readonly status: "OPEN" | "WAITING_FOR_BUYER_RESPONSE" | "WAITING_FOR_SELLER_RESPONSE" | "UNDER_REVIEW" | "RESOLVED" | "OTHER"
  readonly dispute_amount: WireMoney
  readonly dispute_life_cycle_stage: "INQUIRY" | "CHARGEBACK" | "PRE_ARBITRATION" | "ARBITRATION"
  readonly dispute_outcome?: { readonly outcome_code: string; readonly amount_refunded?: WireMoney }
  readonly money_movements?: ReadonlyArray<{
    readonly affected_party: "SELLER" | "BUYER" | "PAYPAL"
    readonly amount: WireMoney
    readonly type: "DEBIT" | "CREDIT"
    readonly reason: string
  }>
}

export const CREATED = "2026-09-21T10:00:00Z"

export const link = (href: string, rel: string, method: "GET" | "POST" = "GET"): Wire<LinkDescription> => ({ href, rel, method })

/** https://developer.paypal.com/api/rest/responses/ */
export const problem = (name: string, issue: string, links: ReadonlyArray<Wire<LinkDescription>> = []): object => ({
  name,
  message: "The request could not be done.",
  debug_id: "b1d1f06c7246c",
  details: [{ issue, description: issue }],
  links
})

const API = "https://api.sandbox.paypal.com"

export const captureOf = (id: string, unit: WireUnit, status: NonNullable<WireCapture["status"]>): WireCapture => ({
  id,
  status,
  amount: { currency_code: unit.amount?.currency_code ?? "", value: unit.amount?.value ?? "" },
  final_capture: true,
  ...(unit.invoice_id === undefined ? {} : { invoice_id: unit.invoice_id }),
  ...(unit.custom_id === undefined ? {} : { custom_id: unit.custom_id }),
  links: [link(`${API}/v2/payments/captures/${id}`, "self"), link(`${API}/v2/payments/captures/${id}/refund`, "refund", "POST")],
  create_time: CREATED
})

export const capturedOf = (capture: WireCapture, order: string): WireCaptured => ({
  ...capture,
  supplementary_data: { related_ids: { order_id: order } }
})

export const refundOf = (
  id: string,
  capture: string,
  amount: WireMoney,
  customId: string | undefined,
  status: WireRefund["status"]
): WireRefund => ({
  id,
  ...(status === undefined ? {} : { status }),
  amount,
  ...(customId === undefined ? {} : { custom_id: customId }),
  links: [link(`${API}/v2/payments/refunds/${id}`, "self"), link(`${API}/v2/payments/captures/${capture}`, "up")],
  create_time: CREATED
})

/** An event of a webhook. */
export const eventOf = (id: string, event_type: string, resource_type: string, resource: object): object => ({
  id,
  event_version: "1.0",
  create_time: CREATED,
  resource_type,
  event_type,
  summary: `${event_type} happened`,
  resource,
  links: [link(`${API}/v1/notifications/webhooks-events/${id}`, "self")]
})
