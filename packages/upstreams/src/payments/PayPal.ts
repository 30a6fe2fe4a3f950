/**
 * `PaymentGateway` on PayPal Orders, version 2: an order with the intent `CAPTURE`, which its payer approves and this host captures, its
 * refunds and disputes, and verified webhooks.
 */
import { PaymentGateway } from "@millrace/core"
import { Effect, Layer, type Schema } from "effect"
import { FetchHttpClient, HttpClientRequest } from "effect/http"
import * as Amounts from "./Amounts.ts"
import * as PayPalClient from "./PayPalClient.ts"
import { asRefused, GATEWAY, type Refusal, refused, unavailable } from "./PayPalClient.ts"
import * as Model from "./PayPalModel.ts"
import * as PayPalNotices from "./PayPalNotices.ts"
import { captureOf, FORGOTTEN, refundsOf, standingOf } from "./PayPalStanding.ts"

type Known = PaymentGateway.Known
type Standing = PaymentGateway.Standing

export interface Options extends PayPalClient.Options {
  /** The id of the webhook that is registered for this host. */
  readonly webhookId: string
  /** Where the payer goes after approving, and after giving up. `payment` is added to their queries. */
  readonly returnUrl: URL
  readonly cancelUrl?: URL
  /** The name that the payer sees; that of the PayPal account by default. */
  readonly brandName?: string
}

/** A gateway with the app of a PayPal account. Time limits are 30 seconds by default, for each request, and replies at most 4 MiB. */
export const layer = (options: Options): Layer.Layer<PaymentGateway.PaymentGateway> =>
  Layer.effect(
    PaymentGateway.PaymentGateway,
    Effect.map(PayPalClient.make(options), (client) => {
      const orders = ordersOf(client)
      return PaymentGateway.PaymentGateway.of({
        name: GATEWAY,
        begin: beginning(client, options),
        standing: Effect.fn("PayPal.standing")(function* (known: Known) {
          const order = yield* orders.find(known)
          return order === undefined ? FORGOTTEN : yield* orders.standing(order)
        }),
        next: Effect.fn("PayPal.next")(function* (known: Known) {
          const order = yield* orders.find(known)
          const approveUrl = order !== undefined && WAITING.has(order.status) ? approvalOf(order.links) : undefined
          return approveUrl === undefined ? undefined : { _tag: "ApproveUrl" as const, approveUrl }
        }),
        capture: capturing(client, orders),
        refund: refunding(client, orders),
        notice: PayPalNotices.make(client, options.webhookId)
      })
    })
  ).pipe(Layer.provide(FetchHttpClient.layer))

/** The payer has to act. */
const WAITING: ReadonlySet<string> = new Set(["CREATED", "PAYER_ACTION_REQUIRED"])

const approvalOf = (links: Model.Links): string | undefined => Model.linkOf(links, "payer-action", "approve")

/** Asks for the whole object, instead of its id and status. */
const represented = HttpClientRequest.setHeader("prefer", "return=representation")

const withPayment = (url: URL, paymentId: string): string => {
  const address = new URL(url)
  address.searchParams.set("payment", paymentId)
  return address.href
}

/** PayPal repeats its answer to a request with the same `PayPal-Request-Id`, for six hours: longer than an order lives that nobody approved. */
const beginning = ({ ask, at }: PayPalClient.PayPalClient, { brandName, cancelUrl, returnUrl }: Options) =>
  Effect.fn("PayPal.begin")(function* ({ amount, description, paymentId }: PaymentGateway.NewPayment) {
    const value = Amounts.toPayPal(amount)
    if (value === undefined) return yield* refused(`it takes no such amount of ${amount.currency}`)
    const experience_context = {
      ...(brandName === undefined ? {} : { brand_name: brandName }),
      return_url: withPayment(returnUrl, paymentId),
      cancel_url: withPayment(cancelUrl ?? returnUrl, paymentId),
      shipping_preference: "NO_SHIPPING",
      user_action: "PAY_NOW"
    }
    const unit = {
      custom_id: paymentId,
      // PayPal takes money once for each invoice
      invoice_id: paymentId,
      // PayPal's limit of a description
      description: description.slice(0, 127),
      amount: { currency_code: amount.currency, value }
    }
    const request = HttpClientRequest.post(at("v2/checkout/orders")).pipe(
      represented,
      HttpClientRequest.setHeader("paypal-request-id", paymentId),
      HttpClientRequest.bodyJsonUnsafe({ intent: "CAPTURE", purchase_units: [unit], payment_source: { paypal: { experience_context } } })
    )
    const { id: reference, links } = yield* asRefused(ask(request, Model.NewOrder))
    const approveUrl = approvalOf(links)
    if (approveUrl === undefined || !PayPalNotices.ID.test(reference)) return yield* unavailable("its reply is malformed")
    return { reference, next: { _tag: "ApproveUrl" as const, approveUrl } }
  })

interface Orders extends ReturnType<typeof ordersOf> {}

/** What PayPal knows of orders. */
const ordersOf = (client: PayPalClient.PayPalClient) => {
  const { ask, at } = client
  const get = <A>(path: string, shape: Schema.Decoder<A>) => ask(HttpClientRequest.get(at(path)), shape)

  /** The order, if it was made for this payment. Undefined if PayPal has forgotten it. */
  const find = Effect.fnUntraced(function* ({ paymentId, reference }: Known) {
    if (!PayPalNotices.ID.test(reference)) return yield* refused("this is no id of an order")
    const order = yield* get(`v2/checkout/orders/${reference}`, Model.Order).pipe(
      Effect.catchTag("Refusal", (refusal: Refusal) => (refusal.status === 404 ? Effect.undefined : Effect.fail(refusal))),
      asRefused
    )
    if (order?.purchase_units.some(({ custom_id }) => custom_id !== paymentId)) return yield* refused("the order is of another payment")
    return order
  })

  return {
    find,
    standing: Effect.fnUntraced(function* (
      order: Model.Order
    ): Effect.fn.Return<Standing, PaymentGateway.GatewayUnavailable | PaymentGateway.GatewayRefused> {
      const capture = captureOf(order)
      const disputes = capture === undefined ? [] : yield* asRefused(disputesOf(client, capture.id))
      return standingOf(order, disputes) ?? (yield* unavailable("its order is malformed"))
    })
  }
}

/** The most pages of disputes of a payment that are read. */
const MAX_PAGES = 100

/** The disputes of a capture. Lists have no outcomes, so each dispute is read. */
const disputesOf = ({ ask, at }: PayPalClient.PayPalClient, capture: string) =>
  Effect.gen(function* () {
    const ids: Array<string> = []
    let token: string | undefined
    for (let page = 0; page < MAX_PAGES; page++) {
      const url = at("v1/customer/disputes")
      url.searchParams.set("disputed_transaction_id", capture)
      url.searchParams.set("page_size", "50")
      if (token !== undefined) url.searchParams.set("next_page_token", token)
      const list = yield* ask(HttpClientRequest.get(url), Model.Disputes)
      if ("items" in list) ids.push(...list.items.map(({ dispute_id }) => dispute_id))
      token = nextToken(Model.linkOf(list.links, "next"))
      if (token === undefined) break
    }
    const read = (id: string) => ask(HttpClientRequest.get(at(`v1/customer/disputes/${encodeURIComponent(id)}`)), Model.Dispute)
    return yield* Effect.forEach(ids, read, { concurrency: 4 })
  })

/** Only the token of a link is used, so that a reply cannot lead a request with our token elsewhere. */
const nextToken = (href: string | undefined): string | undefined =>
  href === undefined ? undefined : (URL.parse(href, "https://paypal")?.searchParams.get("next_page_token") ?? undefined)

/** Issues that concern the payer's means: the payer can approve the order again with others. */
const DECLINED: ReadonlySet<string> = new Set([
  "INSTRUMENT_DECLINED",
  "PAYER_ACTION_REQUIRED",
  "TRANSACTION_REFUSED",
  "PAYER_CANNOT_PAY",
  "CARD_EXPIRED",
  "REDIRECT_PAYER_FOR_ALTERNATE_FUNDING"
])

const DECLINE = "PayPal declined these means of payment. Approve the payment again with others"

/** An order is captured once, so a second capture is refused; what happened then shows in its standing. */
const capturing = ({ ask, at }: PayPalClient.PayPalClient, { find, standing }: Orders) =>
  Effect.fn("PayPal.capture")(function* (known: Known) {
    const before = yield* find(known)
    if (before === undefined) return FORGOTTEN
    if (before.status !== "APPROVED") return yield* standing(before)
    const request = HttpClientRequest.post(at(`v2/checkout/orders/${known.reference}/capture`)).pipe(
      represented,
      HttpClientRequest.bodyJsonUnsafe({})
    )
    const trouble = yield* ask(request, Model.NewOrder).pipe(
      Effect.as(undefined),
      Effect.catch((error) => Effect.succeed(error))
    )
    const after = yield* find(known)
    if (after === undefined) return FORGOTTEN
    const now = yield* standing(after)
    if (trouble === undefined || captureOf(after) !== undefined || now.status === "failed") return now
    if (trouble._tag === "GatewayUnavailable") return yield* trouble
    if (DECLINED.has(trouble.issue)) return { ...now, reason: DECLINE }
    return after.status === "APPROVED" ? yield* refused(trouble.issue) : now
  })

/** PayPal forgets request ids after some weeks, so the refund bears its id, and is looked for. */
const refunding = ({ ask, at }: PayPalClient.PayPalClient, { find, standing }: Orders) =>
  Effect.fn("PayPal.refund")(function* (known: Known, { minor, refundId }: { readonly refundId: string; readonly minor: number }) {
    const order = yield* find(known)
    const capture = order === undefined ? undefined : captureOf(order)
    if (order === undefined || capture === undefined) return yield* refused("the payment was not captured")
    const currency = capture.amount.currency_code
    const value = Amounts.toPayPal({ minor, currency })
    if (value === undefined) return yield* refused(`it gives back no such amount of ${currency}`)
    if (refundsOf(order).some(({ custom_id }) => custom_id === refundId)) return yield* standing(order)
    const request = HttpClientRequest.post(at(`v2/payments/captures/${capture.id}/refund`)).pipe(
      HttpClientRequest.setHeader("paypal-request-id", `${known.paymentId}/${refundId}`),
      HttpClientRequest.bodyJsonUnsafe({ amount: { currency_code: currency, value }, custom_id: refundId })
    )
    yield* asRefused(ask(request, Model.NewOrder))
    const after = yield* find(known)
    return yield* standing(after ?? order)
  })
