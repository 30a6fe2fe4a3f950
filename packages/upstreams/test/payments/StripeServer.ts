/**
 * A local server with the part of Stripe's API that payments need: PaymentIntents, refunds, disputes, idempotency keys, and signed webhooks.
 * What a payer, a bank or an operator does is a method of it. It refuses a parameter that the published API does not have.
 */
import type { PaymentGateway } from "@millrace/core"
import Stripe from "stripe"
import type { Received } from "../shared/LocalService.ts"
import { FaultyServer, type Reply, reply } from "./FaultyServer.ts"
import { disputeOf, errorOf, eventOf, intentOf, movementOf, refundOf } from "./StripeObjects.ts"

export const API_KEY = "sk_test_51Local0000000000000000000000000000key"
export const WEBHOOK_SECRET = "whsec_0000000000000000000000000000current"
export const VERSION = "2026-10-28.endive"

type Form = ReadonlyMap<string, string>

const CREATE: ReadonlyArray<keyof Stripe.PaymentIntentCreateParams> = [
  "amount",
  "currency",
  "capture_method",
  "automatic_payment_methods",
  "description",
  "metadata",
  "customer",
  "setup_future_usage",
  "payment_method",
  "off_session",
  "confirm"
]
const CUSTOMER: ReadonlyArray<keyof Stripe.CustomerCreateParams> = ["metadata"]
const REFUND: ReadonlyArray<keyof Stripe.RefundCreateParams> = ["payment_intent", "amount", "metadata"]
const LIST: ReadonlyArray<keyof Stripe.RefundListParams & keyof Stripe.DisputeListParams> = ["payment_intent", "limit", "starting_after"]

const invalid = (code: string, message = code): Reply => reply(errorOf("invalid_request_error", code, message), 400)

export class StripeServer {
  readonly server = new FaultyServer((request) => this.#answer(request))
  /** The clock that signs webhooks, in seconds. */
  now = () => Math.floor(Date.now() / 1_000)
  captures = 0
  /** The events that were not fetched yet. */
  #events: Array<object> = []
  readonly intents = new Map<string, Stripe.PaymentIntent>()
  /** The means that are stored, by customer. */
  readonly customers = new Map<string, Set<string>>()
  /** Why the bank declines payments of payers who are away; it takes them while this is undefined. */
  awayDeclines: "authentication_required" | "card_declined" | undefined
  readonly refunds: Array<Stripe.Refund> = []
  readonly disputes: Array<Stripe.Dispute> = []
  readonly #replies = new Map<string, { readonly request: string; readonly reply: Reply }>()

  #answer({ body, headers, method, path }: Received): Reply {
    if (headers.authorization !== `Bearer ${API_KEY}`)
      return reply(
        errorOf("authentication_error" as "api_error", "api_key_invalid", `Invalid API Key provided: ${headers.authorization}`),
        401
      )
    if (headers["stripe-version"] !== VERSION) return invalid("api_version_invalid")
    const url = new URL(path, "http://stripe")
    const form: Form = new Map(new URLSearchParams(method === "POST" ? body : url.search))
    if (method === "GET") return this.#get(url.pathname, form)
    if (headers["content-type"] !== "application/x-www-form-urlencoded") return invalid("content_type_invalid")
    return this.#once(headers["idempotency-key"], `${url.pathname}\n${body}`, () => this.#post(url.pathname, form))
  }

  /** The first answer under a key is repeated: https://docs.stripe.com/api/idempotent_requests */
  #once(key: string | ReadonlyArray<string> | undefined, request: string, act: () => Reply): Reply {
    const known = this.#replies.get(String(key))
    if (known !== undefined)
      return known.request === request ? known.reply : reply(errorOf("idempotency_error", "idempotency_key_in_use", "another request"), 400)
    const answer = structuredClone(act())
    if (key !== undefined) this.#replies.set(String(key), { request, reply: answer })
    return answer
  }

  /** Stripe removes idempotency keys after a day. */
  forgetKeys(): void {
    this.#replies.clear()
  }

  #post(path: string, form: Form): Reply {
    if (path === "/v1/payment_intents") return checked(form, CREATE) ?? this.#create(form)
    if (path === "/v1/customers") return checked(form, CUSTOMER) ?? this.#customer()
    if (path === "/v1/refunds") return checked(form, REFUND) ?? this.#giveBack(form)
    const [, id] = /^\/v1\/payment_intents\/(pi_\w+)\/capture$/u.exec(path) ?? []
    return id === undefined ? unknownPath(path) : (checked(form, []) ?? this.#capture(id))
  }

  #get(path: string, form: Form): Reply {
    if (path === "/v1/refunds") return checked(form, LIST) ?? page(this.refunds, path, form)
    if (path === "/v1/disputes") return checked(form, LIST) ?? page(this.disputes, path, form)
    const [, id = ""] = /^\/v1\/payment_intents\/(pi_\w+)$/u.exec(path) ?? []
    const intent = this.intents.get(id)
    return intent === undefined
      ? reply(errorOf("invalid_request_error", "resource_missing", `No such payment_intent: '${id}'`), 404)
      : reply(intent)
  }

  #create(form: Form): Reply {
    const amount = Number(form.get("amount"))
    if (!Number.isSafeInteger(amount) || amount < 50) return invalid("amount_too_small")
    const currency = form.get("currency") ?? ""
    if (!/^[a-z]{3}$/u.test(currency)) return invalid("currency_invalid")
    const isConfirmed = form.get("confirm") === "true"
    if (form.get("capture_method") !== (isConfirmed ? "automatic" : "manual") || form.get("automatic_payment_methods[enabled]") !== "true")
      return invalid("parameter_missing")
    const customer = form.get("customer")
    if (customer !== undefined && !this.customers.has(customer)) return invalid("resource_missing")
    const id = `pi_${this.intents.size + 1}Local`
    const metadata = { payment_id: form.get("metadata[payment_id]") ?? "" }
    const intent = intentOf({ id, amount, currency, description: form.get("description") ?? null, metadata, capture_method: "manual" })
    const usage = form.get("setup_future_usage") === "off_session" ? ("off_session" as const) : null
    this.intents.set(id, { ...intent, customer: customer ?? null, setup_future_usage: usage })
    return isConfirmed ? this.#confirm(id, form) : reply(this.intent(id))
  }

  #customer(): Reply {
    const id = `cus_${this.customers.size + 1}Local`
    this.customers.set(id, new Set())
    return reply({ id, object: "customer" })
  }

  /** A payment of a payer who is away: https://docs.stripe.com/api/payment_intents/create#create_payment_intent-off_session */
  #confirm(id: string, form: Form): Reply {
    const means = form.get("payment_method") ?? ""
    const isStored = this.customers.get(form.get("customer") ?? "")?.has(means) === true
    if (form.get("off_session") !== "true" || form.get("automatic_payment_methods[allow_redirects]") !== "never" || !isStored)
      return invalid("parameter_missing")
    if (this.awayDeclines !== undefined) {
      this.decline(id)
      return reply(errorOf("card_error", this.awayDeclines, "Your card was declined."), 402)
    }
    const fields = { payment_method: means, amount_received: this.intent(id).amount, latest_charge: `ch_${id.slice(3)}` }
    this.change(id, { ...fields, status: "succeeded" }, "payment_intent.succeeded")
    return reply(this.intent(id))
  }

  #capture(id: string): Reply {
    const intent = this.intents.get(id)
    if (intent?.status !== "requires_capture") return invalid("payment_intent_unexpected_state")
    this.captures++
    this.change(id, { status: "succeeded", amount_received: intent.amount, amount_capturable: 0 }, "payment_intent.succeeded")
    return reply(this.intent(id))
  }

  #giveBack(form: Form): Reply {
    const id = form.get("payment_intent") ?? ""
    const intent = this.intents.get(id)
    const amount = Number(form.get("amount"))
    if (intent?.status !== "succeeded") return invalid("payment_intent_unexpected_state")
    if (amount > intent.amount_received - this.refundedOf(id)) return invalid("amount_too_large")
    return reply(this.refund(id, amount, { refund_id: form.get("metadata[refund_id]") ?? "" }))
  }

  refundedOf(id: string): number {
    const made = this.refunds.filter(({ payment_intent, status }) => payment_intent === id && status !== "failed" && status !== "canceled")
    return made.reduce((sum, { amount }) => sum + amount, 0)
  }

  intent(id: string): Stripe.PaymentIntent {
    const intent = this.intents.get(id)
    if (intent === undefined) throw new Error(`There is no ${id}`)
    return intent
  }

  change(id: string, fields: Partial<Stripe.PaymentIntent>, event: Stripe.Event["type"]): void {
    this.intents.set(id, { ...this.intent(id), ...fields })
    this.#send(event, this.intent(id))
  }

  #send(type: Stripe.Event["type"], object: Stripe.PaymentIntent | Stripe.Refund | Stripe.Dispute): void {
    this.#events.push(eventOf(`evt_${this.intents.size}_${this.#events.length}`, type, structuredClone(object)))
  }

  /** The payer's bank asks for 3-D Secure. */
  requireAction(id: string): void {
    const next_action = { type: "use_stripe_sdk", use_stripe_sdk: {} } satisfies Stripe.PaymentIntent.NextAction
    this.change(id, { status: "requires_action", next_action, last_payment_error: null }, "payment_intent.requires_action")
  }

  /** The payer has paid, after 3-D Secure where it was asked for. */
  authorize(id: string): void {
    const { customer, setup_future_usage } = this.intent(id)
    const means = `pm_${id.slice(3)}`
    if (typeof customer === "string" && setup_future_usage === "off_session") this.customers.get(customer)?.add(means)
    const fields = {
      payment_method: means,
      amount_capturable: this.intent(id).amount,
      latest_charge: `ch_${id.slice(3)}`,
      next_action: null,
      last_payment_error: null
    }
    this.change(id, { ...fields, status: "requires_capture" }, "payment_intent.amount_capturable_updated")
  }

  decline(id: string, message = "Your card was declined.", type: Stripe.PaymentIntent.LastPaymentError["type"] = "card_error"): void {
    const error = { type, message, code: "card_declined", decline_code: "generic_decline" } satisfies Stripe.PaymentIntent.LastPaymentError
    this.change(id, { status: "requires_payment_method", next_action: null, last_payment_error: error }, "payment_intent.payment_failed")
  }

  cancel(id: string, cancellation_reason: Stripe.PaymentIntent.CancellationReason = "requested_by_customer"): void {
    this.change(id, { status: "canceled", amount_capturable: 0, cancellation_reason }, "payment_intent.canceled")
  }

  refund(id: string, amount: number, metadata: Stripe.Metadata = {}, status = "succeeded"): Stripe.Refund {
    const fields = { amount, currency: this.intent(id).currency, payment_intent: id, charge: `ch_${id.slice(3)}`, metadata, status }
    const refund = refundOf({ id: `re_${this.refunds.length + 1}`, ...fields })
    this.refunds.push(refund)
    this.#send("refund.created", refund)
    return refund
  }

  changeRefund(id: string, status: string): void {
    const at = this.refunds.findIndex((refund) => refund.id === id)
    const refund = { ...this.#nth(this.refunds, at), status }
    this.refunds[at] = refund
    this.#send(status === "failed" ? "refund.failed" : "refund.updated", refund)
  }

  dispute(id: string, amount: number, fields: Partial<Stripe.Dispute> = {}): string {
    const { currency } = this.intent(id)
    const dispute = disputeOf({
      id: `dp_${this.disputes.length + 1}`,
      amount,
      currency,
      payment_intent: id,
      charge: `ch_${id.slice(3)}`,
      ...fields
    })
    this.disputes.push(dispute)
    this.#send("charge.dispute.created", dispute)
    return dispute.id
  }

  changeDispute(id: string, status: Stripe.Dispute["status"]): void {
    const at = this.disputes.findIndex((dispute) => dispute.id === id)
    const dispute = this.#nth(this.disputes, at)
    const { amount, balance_transactions, currency } = dispute
    const movements = status === "won" ? [...balance_transactions, movementOf(id, amount, currency)] : balance_transactions
    this.disputes[at] = { ...dispute, status, balance_transactions: movements }
    this.#send(status === "won" || status === "lost" ? "charge.dispute.closed" : "charge.dispute.updated", this.#nth(this.disputes, at))
  }

  #nth<A>(all: ReadonlyArray<A>, at: number): A {
    const one = all[at]
    if (one === undefined) throw new Error("There is none")
    return one
  }

  /** The webhooks since the last call. */
  webhooks(secret = WEBHOOK_SECRET): ReadonlyArray<PaymentGateway.Notice> {
    const events = this.#events
    this.#events = []
    return events.map((event) => signed(JSON.stringify(event), secret, this.now()))
  }
}

/** A webhook, signed by the official library. */
export const signed = (payload: string, secret: string, timestamp: number): PaymentGateway.Notice => ({
  headers: {
    "content-type": "application/json",
    "stripe-signature": Stripe.webhooks.generateTestHeaderString({ payload, secret, timestamp })
  },
  body: Buffer.from(payload)
})

/** Refuses parameters that a request does not have. */
const checked = (form: Form, allowed: ReadonlyArray<string>): Reply | undefined => {
  const unknown = [...form.keys()].find((name) => !allowed.includes(name.replace(/\[.*$/u, "")))
  return unknown === undefined ? undefined : invalid("parameter_unknown", `Received unknown parameter: ${unknown}`)
}

const unknownPath = (path: string): Reply =>
  reply(errorOf("invalid_request_error", "url_invalid", `Unrecognized request URL (${path})`), 404)

/** A page of a list, newest first: https://docs.stripe.com/api/pagination */
const page = <A extends { readonly id: string; readonly payment_intent: unknown }>(
  all: ReadonlyArray<A>,
  url: string,
  form: Form
): Reply => {
  const found = all.filter(({ payment_intent }) => payment_intent === form.get("payment_intent")).toReversed()
  const start = found.findIndex(({ id }) => id === form.get("starting_after")) + 1
  const limit = Number(form.get("limit") ?? 10)
  if (!(limit >= 1 && limit <= 100)) return invalid("parameter_invalid_integer")
  const data = found.slice(start, start + limit)
  const list: Omit<Stripe.ApiList<A>, "lastResponse"> = { object: "list", url, has_more: found.length > start + limit, data }
  return reply(list)
}
