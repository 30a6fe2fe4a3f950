/** The operations that buy credits: a payment is requested, the payer pays it at the gateway, and it is captured. */
import { Effect, Schema, Struct } from "effect"
import { toDecimal as creditsOf } from "../Credits.ts"
import { paymentIdOf } from "../Ids.ts"
import * as Money from "../Money.ts"
import { toDecimal } from "../payments/Amount.ts"
import { Checkout, type NoGateway } from "../payments/Checkout.ts"
import { DEFAULT_PACK, PACKS } from "../payments/Packs.ts"
import { type Order, statusOf } from "../payments/Payment.ts"
import type { Begun } from "../payments/PaymentGateway.ts"
import { Subscriptions } from "../payments/Subscriptions.ts"
import { Timestamp } from "../Timestamp.ts"
import * as Operation from "../work/Operation.ts"
import { NotFound, TooManyPayments, UpstreamNotConfigured, UpstreamUnavailable } from "../work/OperationError.ts"
import { LAST_PAGE, PER_PAGE } from "./CommonLimits.ts"

const UPSTREAM = "payments"

const TopUp = Schema.Struct({
  payment_id: Schema.String,
  /** `refunded`: all the money went back. */
  status: Schema.Literals(["pending", "authorized", "captured", "failed", "refunded"]),
  /** In units of the currency: 10 for ten dollars. */
  amount: Schema.Finite,
  /** ISO 4217. */
  currency: Schema.String,
  /** Credits that it buys. */
  credits: Schema.Finite,
  /** Credits that are given on top, with terms of their own. */
  bonus_credits: Schema.Finite,
  /** What takes the money: `manual`, `stripe` or `paypal`. */
  gateway: Schema.String,
  /** Why it failed. */
  reason: Schema.optionalKey(Schema.String),
  /** For Stripe's own script in the browser of the payer. */
  client_secret: Schema.optionalKey(Schema.String),
  /** Where the payer approves it. */
  approve_url: Schema.optionalKey(Schema.String),
  /** What the payer has to do. */
  instruction: Schema.optionalKey(Schema.String)
})

/** What the payer needs, as it is answered. */
export const nextOf = (
  next: Begun["next"] | undefined
): Partial<Pick<typeof TopUp.Type, "approve_url" | "client_secret" | "instruction">> => {
  switch (next?._tag) {
    case "ClientSecret":
      return { client_secret: next.clientSecret }
    case "ApproveUrl":
      return { approve_url: next.approveUrl }
    case "Instruction":
      return { instruction: next.instruction }
    case undefined:
      return {}
  }
}

const recordOf = (order: Order, next?: Begun["next"]): typeof TopUp.Type => ({
  payment_id: order.paymentId,
  status: statusOf(order),
  amount: toDecimal({ minor: order.amount, currency: order.currency }),
  currency: order.currency,
  credits: creditsOf(order.credits),
  bonus_credits: creditsOf(order.bonus),
  gateway: order.gateway,
  ...(order.reason === undefined ? {} : { reason: order.reason }),
  ...nextOf(next)
})

/** Seconds after which a payment that is not final is worth another look. */
const RETRY_AFTER = 5

/** Seconds after which an account with too many pending payments may look again. They lapse by themselves within hours. */
const RETRY_PENDING = 60

const isFinal = ({ status }: Order): boolean => status === "captured" || status === "failed"

/** Fails where this host takes no payments. */
export const configured = Checkout.use(({ gateway }) =>
  gateway === null ? Effect.fail(new UpstreamNotConfigured({ upstream: UPSTREAM })) : Effect.void
)

/** A gateway or a store that does not answer now. */
export const unavailable = ({ _tag, reason = _tag }: { readonly _tag: string; readonly reason?: string }) =>
  new UpstreamUnavailable({ upstream: UPSTREAM, reason, isolated: true })

/** A gateway that this host does not have. */
export const notConfigured = ({ gateway }: NoGateway) =>
  new UpstreamNotConfigured({ upstream: gateway === null ? UPSTREAM : `payments by ${gateway}` })

const refusalOf = (error: Effect.Error<ReturnType<Checkout["Service"]["buy"]>>) => {
  if (error._tag === "TooManyPending") return new TooManyPayments({ limit: error.limit, retryAfter: RETRY_PENDING })
  return error._tag === "NoGateway" ? notConfigured(error) : unavailable(error)
}

export const topUp = Operation.make("billing.topUp", {
  summary: "Buy a pack of credits",
  description:
    "A pack costs as many US dollars as its name says and brings 1,000 credits for each; `10` by default. The answer has what the payer needs: " +
    "`client_secret` for Stripe's own script, `approve_url` to send the payer to, or an `instruction`. Capture the payment when it is approved. " +
    "A payment that nobody approves in time fails. An account has at most 20 pending payments at a time. With an `Idempotency-Key`, a call that is sent again returns the same payment.",
  price: 0,
  local: true,
  route: { method: "POST", path: "/billing/topups", body: { pack: Schema.optionalKey(Schema.Literals(PACKS)) } },
  success: TopUp,
  secret: ["client_secret"],
  configured,
  check: () => configured,
  run: Effect.fnUntraced(function* ({ pack = DEFAULT_PACK }, { accountId, requestId, reservationId }) {
    const checkout = yield* Checkout
    const offer = checkout.offer(pack)
    const description = Money.text(offer.credits, yield* Money.Current)
    const terms = { paymentId: paymentIdOf(reservationId), accountId, description, ...offer }
    const { next, order } = yield* checkout.buy(terms, { $correlationId: requestId }).pipe(Effect.mapError(refusalOf))
    return { data: recordOf(order, next) }
  }),
  example: {
    input: { pack: "25" },
    data: {
      payment_id: "pay_01M7YKD46JCP6VGMKADN3JSPJP",
      status: "pending",
      amount: 25,
      currency: "USD",
      credits: 25_000,
      bonus_credits: 0,
      gateway: "manual",
      instruction: "Pay 25.00 USD to the operator of this host, and give pay_01M7YKD46JCP6VGMKADN3JSPJP as the reference."
    }
  },
  links: [{ operation: "billing.captureTopUp", parameters: { payment: "/payment_id" } }]
})

const Listed = Schema.Struct({
  ...Struct.omit(TopUp.fields, ["client_secret", "approve_url", "instruction"]),
  /** Of a period of a subscription: its plan. */
  plan: Schema.optionalKey(Schema.String),
  requested_at: Timestamp,
  /** When it fails, if it is still pending then. */
  expires_at: Timestamp
})

export const list = Operation.make("billing.topups", {
  summary: "List the payments of the account",
  description:
    "The newest comes first. `open=true` leaves out what was captured or has failed. Capturing a payment again tells what its payer needs to go on.",
  price: 0,
  local: true,
  route: {
    method: "GET",
    path: "/billing/topups",
    query: {
      open: Schema.optionalKey(Schema.Literals(["true", "false"])),
      page: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: LAST_PAGE }))),
      /** 25 by default. */
      per_page: Schema.optionalKey(Schema.Int.check(Schema.isBetween(PER_PAGE)))
    }
  },
  success: Schema.Struct({ topups: Schema.Array(Listed) }),
  configured,
  check: () => configured,
  run: Effect.fnUntraced(function* ({ open = "false", page = 1, per_page = PER_PAGE.default }, { accountId }) {
    const { orders, total } = yield* Effect.mapError(
      Checkout.use((checkout) => checkout.page(accountId, { isOpen: open === "true", page, perPage: per_page })),
      (error) => (error._tag === "NoGateway" ? notConfigured(error) : unavailable(error))
    )
    const topups = orders.map(({ order, requestedAt }) => ({
      ...recordOf(order),
      ...(order.purchase._tag === "Period" ? { plan: order.purchase.plan } : {}),
      requested_at: requestedAt,
      expires_at: order.expiresAt
    }))
    return { data: { topups }, page: { number: page, size: per_page, total } }
  }),
  example: {
    input: { open: "true" },
    data: {
      topups: [
        {
          payment_id: "pay_01M7YKD46JCP6VGMKADN3JSPJP",
          status: "pending",
          amount: 25,
          currency: "USD",
          credits: 25_000,
          bonus_credits: 0,
          gateway: "manual",
          requested_at: Date.UTC(2026, 10, 21, 12),
          expires_at: Date.UTC(2026, 10, 22, 12)
        }
      ]
    }
  },
  links: [{ operation: "billing.captureTopUp", parameters: { payment: "/topups/0/payment_id" } }]
})

const payment = Schema.String.check(Schema.isMinLength(1), Schema.isMaxCodePoints(100))

export const captureTopUp = Operation.make("billing.captureTopUp", {
  summary: "Capture a payment",
  description:
    "Takes the money of a payment that the payer has approved, and grants its credits at once. Capturing again changes nothing and answers how " +
    "the payment stands, so it may be sent again whatever was heard. A payment that is not approved yet stays `pending`, and the answer has again " +
    "what the payer needs.",
  price: 0,
  local: true,
  route: { method: "POST", path: "/billing/topups/:payment/capture", params: { payment } },
  success: TopUp,
  secret: ["client_secret"],
  configured,
  check: () => configured,
  run: Effect.fnUntraced(function* ({ payment }, { accountId }) {
    const order = yield* Effect.mapError(
      Checkout.use((checkout) => checkout.capture(accountId, payment)),
      (error) => {
        if (error._tag === "PaymentNotFound") return new NotFound({ resource: "payment" })
        return error._tag === "NoGateway" ? notConfigured(error) : unavailable(error)
      }
    )
    // A period of a subscription begins at once; if that fails, the upkeep of subscriptions does it
    yield* Effect.ignore(Subscriptions.use(({ note }) => note(payment)))
    const next = yield* Checkout.use((checkout) => checkout.next(order))
    return { data: recordOf(order, next), ...(isFinal(order) ? {} : { retryAfter: RETRY_AFTER }) }
  }),
  example: {
    input: { payment: "pay_01M7YKD46JCP6VGMKADN3JSPJP" },
    data: {
      payment_id: "pay_01M7YKD46JCP6VGMKADN3JSPJP",
      status: "captured",
      amount: 25,
      currency: "USD",
      credits: 25_000,
      bonus_credits: 0,
      gateway: "manual"
    }
  }
})
