/**
 * A local server with the part of PayPal's API that payments need: access tokens, orders, captures, refunds, disputes and webhooks. What a
 * payer, PayPal or an operator does is a method of it. It refuses a field that the published API does not have.
 */
import { createHmac, randomBytes } from "node:crypto"
import type { PaymentGateway } from "@millrace/core"
import type { Received } from "../shared/LocalService.ts"
import { FaultyServer, type Reply, reply } from "./FaultyServer.ts"
import {
  CREATED,
  capturedOf,
  captureOf,
  eventOf,
  link,
  problem,
  refundOf,
  type WireCapture,
  type WireDispute,
  type WireMoney,
  type WireOrder,
  type WireOrderRequest,
  type WireRefund,
  type WireRefundRequest,
  type WireUnit
} from "./PayPalObjects.ts"

export const CLIENT_ID = "local-client-id"
export const CLIENT_SECRET = "local-client-secret-000000000000000000"
export const WEBHOOK_ID = "8PT597110X687430LKGECATA"

const ORDER: ReadonlyArray<keyof WireOrderRequest> = ["intent", "purchase_units", "payment_source"]
const UNIT: ReadonlyArray<string> = ["custom_id", "invoice_id", "description", "amount"] satisfies ReadonlyArray<keyof WireUnit>
const REFUND: ReadonlyArray<keyof WireRefundRequest> = ["amount", "custom_id"]

const unprocessable = (issue: string): Reply => reply(problem("UNPROCESSABLE_ENTITY", issue), 422)
const invalid = (issue: string): Reply => reply(problem("INVALID_REQUEST", issue), 400)
const missing = (): Reply => reply(problem("RESOURCE_NOT_FOUND", "INVALID_RESOURCE_ID"), 404)

const ZERO_DECIMAL = new Set(["HUF", "JPY", "TWD"])
const isMoney = ({ currency_code, value }: WireMoney): boolean =>
  (ZERO_DECIMAL.has(currency_code) ? /^[1-9]\d*$/u : /^\d+\.\d{2}$/u).test(value) && Number(value) > 0

const hundredths = ({ value }: WireMoney): number => Math.round(Number(value) * 100)

export class PayPalServer {
  readonly server = new FaultyServer((request) => this.#answer(request))
  /** The seconds that a new access token lives. */
  lifetime = 32_400
  readonly tokens = new Set<string>()
  issued = 0
  captures = 0
  readonly orders = new Map<string, WireOrder>()
  readonly disputes: Array<WireDispute> = []
  /** What the next captures meet: an issue that refuses them, or a status other than `COMPLETED`. */
  outcomes: Array<{ readonly issue: string } | { readonly status: NonNullable<WireCapture["status"]>; readonly reason?: "ECHECK" }> = []
  #refunds = 0
  #events: Array<object> = []
  readonly #replies = new Map<string, Reply>()
  readonly #signing = randomBytes(32)

  get refunds(): number {
    return this.#refunds
  }

  #answer(request: Received): Reply {
    const { body, headers, method } = request
    const url = new URL(request.path, "http://paypal")
    if (url.pathname === "/v1/oauth2/token") return this.#token(request)
    const token = headers.authorization?.replace(/^Bearer /u, "") ?? ""
    if (!this.tokens.has(token)) return reply({ error: "invalid_token", error_description: `Token signature of ${token} failed` }, 401)
    if (method === "GET") return this.#get(url)
    if (headers["content-type"] !== "application/json") return reply(problem("UNSUPPORTED_MEDIA_TYPE", "MEDIA_TYPE"), 415)
    const json = JSON.parse(body)
    if (url.pathname === "/v1/notifications/verify-webhook-signature") return this.#verify(json, body)
    // An answer under an id is repeated, unless it was an error
    const key = headers["paypal-request-id"]
    const known = this.#replies.get(`${url.pathname} ${key}`)
    if (key !== undefined && known !== undefined) return { ...known, status: 200 }
    const answer = structuredClone(this.#post(url.pathname, json))
    if (key !== undefined && answer.status < 400) this.#replies.set(`${url.pathname} ${key}`, answer)
    return answer
  }

  /** PayPal removes request ids after some hours or weeks. */
  forgetKeys(): void {
    this.#replies.clear()
  }

  #token({ body, headers }: Received): Reply {
    const basic = `Basic ${Buffer.from(`${CLIENT_ID}:${CLIENT_SECRET}`).toString("base64")}`
    if (headers.authorization !== basic || new URLSearchParams(body).get("grant_type") !== "client_credentials")
      return reply({ error: "invalid_client", error_description: `Client Authentication failed: ${headers.authorization}` }, 401)
    const token = `A21AALocal${++this.issued}Token00000000`
    this.tokens.add(token)
    return reply({ scope: "", access_token: token, token_type: "Bearer", app_id: "APP-1", expires_in: this.lifetime, nonce: CREATED })
  }

  #post(path: string, json: unknown): Reply {
    if (path === "/v2/checkout/orders") return this.#create(json as WireOrderRequest)
    const [, order] = /^\/v2\/checkout\/orders\/(\w+)\/capture$/u.exec(path) ?? []
    if (order !== undefined) return this.#capture(order)
    const [, capture] = /^\/v2\/payments\/captures\/(\w+)\/refund$/u.exec(path) ?? []
    return capture === undefined ? missing() : this.#giveBack(capture, json as WireRefundRequest)
  }

  #get({ pathname, searchParams }: URL): Reply {
    const [, order] = /^\/v2\/checkout\/orders\/(\w+)$/u.exec(pathname) ?? []
    if (order !== undefined) return this.#found(this.orders.get(order))
    const [, capture] = /^\/v2\/payments\/captures\/(\w+)$/u.exec(pathname) ?? []
    if (capture !== undefined) return this.#capturedReply(capture)
    if (pathname === "/v1/customer/disputes") return this.#listed(searchParams)
    const [, dispute] = /^\/v1\/customer\/disputes\/([\w-]+)$/u.exec(pathname) ?? []
    return this.#found(this.disputes.find(({ dispute_id }) => dispute_id === dispute))
  }

  #found(object: object | undefined): Reply {
    return object === undefined ? missing() : reply(object)
  }

  #capturedReply(id: string): Reply {
    const order = this.orderOf(id)
    const capture = order && capturesIn(order).find((capture) => capture.id === id)
    return this.#found(capture && capturedOf(capture, order?.id ?? ""))
  }

  #create(request: WireOrderRequest): Reply {
    const [unit, ...others] = request.purchase_units
    const unknown = [...Object.keys(request).filter((name) => !ORDER.some((known) => known === name))]
    if (unit === undefined || others.length > 0 || unknown.length > 0) return invalid("MALFORMED_REQUEST_JSON")
    if (Object.keys(unit).some((name) => !UNIT.includes(name))) return invalid("MALFORMED_REQUEST_JSON")
    if (request.intent !== "CAPTURE") return invalid("INVALID_PARAMETER_VALUE")
    if (!isMoney(unit.amount)) return unprocessable("DECIMAL_PRECISION")
    const context = request.payment_source?.paypal?.experience_context
    if (context?.return_url === undefined || context.cancel_url === undefined) return unprocessable("MISSING_REQUIRED_PARAMETER")
    const id = `5O${String(this.orders.size + 1).padStart(13, "0")}NL`
    const { amount, custom_id = "", description = "", invoice_id = "" } = unit
    const order: WireOrder = {
      id,
      intent: "CAPTURE",
      status: "PAYER_ACTION_REQUIRED",
      purchase_units: [{ reference_id: "default", amount, custom_id, description, invoice_id }],
      create_time: CREATED,
      links: [
        link(`https://api.sandbox.paypal.com/v2/checkout/orders/${id}`, "self"),
        link(`https://www.sandbox.paypal.com/checkoutnow?token=${id}`, "payer-action")
      ]
    }
    this.orders.set(id, order)
    return reply(order)
  }

  #capture(id: string): Reply {
    const order = this.orders.get(id)
    const unit = order?.purchase_units?.[0]
    if (order === undefined || unit === undefined) return missing()
    if (order.status === "COMPLETED") return unprocessable("ORDER_ALREADY_CAPTURED")
    if (order.status !== "APPROVED") return unprocessable("ORDER_NOT_APPROVED")
    const outcome = this.outcomes.shift() ?? { status: "COMPLETED" as const }
    if ("issue" in outcome) return reply(problem("UNPROCESSABLE_ENTITY", outcome.issue, order.links), 422)
    this.captures++
    const details = outcome.reason === undefined ? {} : { status_details: { reason: outcome.reason } }
    const capture = { ...captureOf(`2GG${id.slice(2)}`, unit, outcome.status), ...details }
    this.#change(id, { status: "COMPLETED", purchase_units: [{ ...unit, payments: { captures: [capture] } }] })
    this.#sendCapture(capture, id)
    return reply(this.order(id), 201)
  }

  #giveBack(id: string, { amount, custom_id, ...others }: WireRefundRequest): Reply {
    const order = this.orderOf(id)
    if (order === undefined) return missing()
    if (Object.keys(others).some((name) => !REFUND.some((known) => known === name))) return invalid("MALFORMED_REQUEST_JSON")
    if (amount === undefined || !isMoney(amount)) return unprocessable("DECIMAL_PRECISION")
    const made = refundsIn(order).filter(({ status }) => status !== "FAILED" && status !== "CANCELLED")
    const gone = made.reduce((sum, refund) => sum + (refund.amount === undefined ? 0 : hundredths(refund.amount)), 0)
    const whole = capturesIn(order).reduce((sum, capture) => sum + (capture.amount === undefined ? 0 : hundredths(capture.amount)), 0)
    if (gone + hundredths(amount) > whole) return unprocessable("REFUND_AMOUNT_EXCEEDED")
    return reply(this.refund(order.id ?? "", amount, custom_id), 201)
  }

  #listed(query: URLSearchParams): Reply {
    const of = query.get("disputed_transaction_id")
    const size = Number(query.get("page_size") ?? 10)
    if (!(size >= 1 && size <= 50)) return invalid("INVALID_PAGE_SIZE")
    const found = this.disputes.filter((dispute) => dispute.disputed_transactions.some(({ seller_transaction_id: id }) => id === of))
    const start = Number(query.get("next_page_token") ?? 0)
    const items = found.slice(start, start + size).map(({ dispute_outcome: _, money_movements: __, ...summary }) => summary)
    const next = `https://api.sandbox.paypal.com/v1/customer/disputes?page_size=${size}&next_page_token=${start + size}`
    return reply({ items, links: found.length > start + size ? [link(next, "next")] : [] })
  }

  /** Over the bytes of the event as they came: https://developer.paypal.com/api/rest/webhooks/rest/#link-messagesignature */
  #signature(transmission: string, event: string): string {
    return createHmac("sha256", this.#signing).update(`${transmission}|${CREATED}|${WEBHOOK_ID}|${event}`).digest("base64")
  }

  #verify(json: Readonly<Record<string, unknown>>, body: string): Reply {
    const { auth_algo, cert_url, transmission_id, transmission_sig, transmission_time, webhook_id } = json
    if ([auth_algo, cert_url, transmission_id, transmission_sig, transmission_time].some((one) => typeof one !== "string" || one === ""))
      return invalid("VALIDATION_ERROR")
    const event = body.slice(body.indexOf('"webhook_event":') + 16, -1)
    const isSigned = webhook_id === WEBHOOK_ID && transmission_sig === this.#signature(String(transmission_id), event)
    return reply({ verification_status: isSigned ? "SUCCESS" : "FAILURE" })
  }

  order(id: string): WireOrder {
    const order = this.orders.get(id)
    if (order === undefined) throw new Error(`There is no ${id}`)
    return order
  }

  orderOf(capture: string): WireOrder | undefined {
    return [...this.orders.values()].find((order) => capturesIn(order).some(({ id }) => id === capture))
  }

  #change(id: string, fields: Partial<WireOrder>): void {
    this.orders.set(id, { ...this.order(id), ...fields })
  }

  #send(type: string, kind: string, resource: object): void {
    this.#events.push(eventOf(`WH-${this.orders.size}-${this.#events.length}`, type, kind, structuredClone(resource)))
  }

  #sendCapture(capture: WireCapture, order: string): void {
    this.#send(`PAYMENT.CAPTURE.${capture.status}`, "capture", capturedOf(capture, order))
  }

  /** The payer approves the order. */
  approve(id: string): void {
    this.#change(id, { status: "APPROVED" })
    this.#send("CHECKOUT.ORDER.APPROVED", "checkout-order", this.order(id))
  }

  void(id: string): void {
    this.#change(id, { status: "VOIDED" })
    this.#send("CHECKOUT.ORDER.VOIDED", "checkout-order", this.order(id))
  }

  /** PayPal removes an order that was not captured in time. */
  forget(id: string): void {
    this.orders.delete(id)
  }

  /** A capture that was pending comes to its end, or one that had come is held again. */
  changeCapture(
    id: string,
    status: NonNullable<WireCapture["status"]>,
    reason?: NonNullable<WireCapture["status_details"]>["reason"]
  ): void {
    const [unit] = this.order(id).purchase_units ?? []
    const [capture] = unit?.payments?.captures ?? []
    if (unit === undefined || capture === undefined) throw new Error("There is no capture")
    const { status_details: _, ...rest } = capture
    const ended = { ...rest, status, ...(reason === undefined ? {} : { status_details: { reason } }) }
    this.#change(id, { purchase_units: [{ ...unit, payments: { ...unit.payments, captures: [ended] } }] })
    this.#sendCapture(ended, id)
  }

  refund(id: string, amount: WireMoney, customId?: string, status: WireRefund["status"] = "COMPLETED"): WireRefund {
    const [unit] = this.order(id).purchase_units ?? []
    const [capture] = unit?.payments?.captures ?? []
    if (unit === undefined || capture?.id === undefined) throw new Error("There is no capture")
    const refund = refundOf(`1JU${String(++this.#refunds).padStart(14, "0")}`, capture.id, amount, customId, status)
    const refunds = [...(unit.payments?.refunds ?? []), refund]
    const captures = [{ ...capture, status: "PARTIALLY_REFUNDED" as const }]
    this.#change(id, { purchase_units: [{ ...unit, payments: { captures, refunds } }] })
    this.#send("PAYMENT.CAPTURE.REFUNDED", "refund", refund)
    return refund
  }

  /** The payer's bank does not take a refund. */
  failRefund(reference: string): void {
    for (const [id, { purchase_units: [unit] = [] }] of this.orders) {
      const refunds = unit?.payments?.refunds ?? []
      const refund = refunds.find((refund) => refund.id === reference)
      if (unit === undefined || refund === undefined) continue
      const failed = { ...refund, status: "FAILED" as const }
      const all = refunds.map((one) => (one === refund ? failed : one))
      this.#change(id, { purchase_units: [{ ...unit, payments: { ...unit.payments, refunds: all } }] })
      return this.#send("PAYMENT.REFUND.FAILED", "refund", failed)
    }
    throw new Error(`There is no ${reference}`)
  }

  dispute(id: string, amount: WireMoney, fields: Partial<WireDispute> = {}): string {
    const [capture] = capturesIn(this.order(id))
    const dispute: WireDispute = {
      dispute_id: `PP-D-${this.disputes.length + 1}`,
      create_time: CREATED,
      disputed_transactions: [{ seller_transaction_id: capture?.id ?? "", buyer_transaction_id: "3UE00000000000001" }],
      reason: "UNAUTHORISED",
      status: "WAITING_FOR_SELLER_RESPONSE",
      dispute_amount: amount,
      dispute_life_cycle_stage: "CHARGEBACK",
      ...fields
    }
    this.disputes.push(dispute)
    this.#send("CUSTOMER.DISPUTE.CREATED", "dispute", dispute)
    return dispute.dispute_id
  }

  changeDispute(id: string, fields: Partial<WireDispute>): void {
    const at = this.disputes.findIndex(({ dispute_id }) => dispute_id === id)
    const before = this.disputes[at]
    if (before === undefined) throw new Error(`There is no ${id}`)
    const dispute = { ...before, ...fields }
    this.disputes[at] = dispute
    this.#send(dispute.status === "RESOLVED" ? "CUSTOMER.DISPUTE.RESOLVED" : "CUSTOMER.DISPUTE.UPDATED", "dispute", dispute)
  }

  /** The webhooks since the last call. */
  webhooks(): ReadonlyArray<PaymentGateway.Notice> {
    const events = this.#events
    this.#events = []
    return events.map((event) => {
      // PayPal's own spacing, which a parser would lose
      const body = JSON.stringify(event, null, 1)
      const transmission = randomBytes(8).toString("hex")
      return noticeOf(body, transmission, this.#signature(transmission, body))
    })
  }
}

export const noticeOf = (body: string, transmission: string, signature: string): PaymentGateway.Notice => ({
  headers: {
    "content-type": "application/json",
    "paypal-auth-algo": "SHA256withRSA",
    "paypal-cert-url": "https://api.sandbox.paypal.com/v1/notifications/certs/CERT-360caa42-fca2a594",
    "paypal-transmission-id": transmission,
    "paypal-transmission-sig": signature,
    "paypal-transmission-time": CREATED
  },
  body: Buffer.from(body)
})

const capturesIn = ({ purchase_units = [] }: WireOrder): ReadonlyArray<WireCapture> =>
  purchase_units.flatMap(({ payments }) => payments?.captures ?? [])

const refundsIn = ({ purchase_units = [] }: WireOrder): ReadonlyArray<WireRefund> =>
  purchase_units.flatMap(({ payments }) => payments?.refunds ?? [])
