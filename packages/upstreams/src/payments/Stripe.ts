/** `PaymentGateway` on Stripe: PaymentIntents that are captured by hand, their refunds and disputes, and signed webhooks. */
import { PaymentGateway } from "@millrace/core"
import { Clock, Effect, Layer, Redacted, Schema } from "effect"
import { FetchHttpClient } from "effect/http"
import StripeApi from "stripe"
import * as Amounts from "./Amounts.ts"
import * as StripeClient from "./StripeClient.ts"
import { GATEWAY, refused, unavailable } from "./StripeClient.ts"
import { Dispute, Intent, meansOf, Refund, standingOf } from "./StripeStanding.ts"

const { NoticeForged } = PaymentGateway
type Known = PaymentGateway.Known

export interface Options extends StripeClient.Options {
  /** The signing secrets of the webhook endpoint: `whsec_...`. Several while one replaces another. */
  readonly webhookSecrets: ReadonlyArray<Redacted.Redacted>
}

/** How old a notice may be, in seconds. Stripe signs it anew each time it sends it. */
const TOLERANCE = 300

/** The most refunds, and the most disputes, of a payment that are read. */
const MOST = 10_000

/**
 * A gateway with the key of a Stripe account. Time limits are 30 seconds by default, for each request, and replies at most 4 MiB. A payment is
 * begun again under its idempotency key, which Stripe keeps for a day at least.
 */
export const layer = (options: Options): Layer.Layer<PaymentGateway.PaymentGateway> =>
  Layer.effect(
    PaymentGateway.PaymentGateway,
    Effect.map(StripeClient.make(options), (call) => {
      const payments = paymentsOf(call)
      return PaymentGateway.PaymentGateway.of({
        name: GATEWAY,
        begin: beginning(call),
        standing: Effect.fn("Stripe.standing")(function* (known: Known) {
          return yield* payments.standing(yield* payments.intent(known))
        }),
        next: Effect.fn("Stripe.next")(function* (known: Known) {
          const { client_secret: clientSecret, status } = yield* payments.intent(known)
          return clientSecret === null || !WAITING.has(status) ? undefined : { _tag: "ClientSecret" as const, clientSecret }
        }),
        capture: capturing(call, payments),
        refund: refunding(call, payments),
        notice: reading(options.webhookSecrets)
      })
    })
  ).pipe(Layer.provide(FetchHttpClient.layer))

const decoder = <A>(shape: Schema.Decoder<A>) => {
  const decode = Schema.decodeUnknownEffect(shape)
  return (reply: unknown) => Effect.mapError(decode(reply), () => unavailable("its reply is malformed"))
}

/** The payer has to act. */
const WAITING: ReadonlySet<string> = new Set(["requires_payment_method", "requires_confirmation", "requires_action"])

const decodeIntent = decoder(Intent)
const decodeRefunds = decoder(Schema.Array(Refund))
const decodeDisputes = decoder(Schema.Array(Dispute))

const decodeCustomer = decoder(Schema.Struct({ id: Schema.String }))

/**
 * How a PaymentIntent of a subscription differs. The first has a customer of its own, whose means are stored. Later ones are confirmed at once
 * with these, while the payer is away: https://docs.stripe.com/payments/save-during-payment
 */
const recurringOf = Effect.fnUntraced(function* (call: StripeClient.Call, { paymentId, recurring }: PaymentGateway.NewPayment) {
  if (recurring === undefined) return {}
  if (recurring.agreement === undefined) {
    const created = call((stripe) =>
      stripe.customers.create({ metadata: { payment_id: paymentId } }, { idempotencyKey: `${paymentId}/customer` })
    )
    const { id: customer } = yield* Effect.flatMap(created, decodeCustomer)
    return { customer, setup_future_usage: "off_session" as const }
  }
  const means = meansOf(recurring.agreement)
  if (means === undefined) return yield* refused("this is no agreement with a payer")
  const automatic_payment_methods = { enabled: true, allow_redirects: "never" as const }
  return { ...means, automatic_payment_methods, off_session: true, confirm: true, capture_method: "automatic" as const }
})

/** Means that are declined while the payer is away, or that ask for 3-D Secure, are a refusal: the payer pays the next payment. */
const beginning = (call: StripeClient.Call) =>
  Effect.fn("Stripe.begin")(function* (payment: PaymentGateway.NewPayment) {
    const { amount, description, paymentId } = payment
    const units = Amounts.toStripe(amount)
    if (units === undefined) return yield* refused(`it takes no such amount of ${amount.currency}`)
    const recurring = yield* recurringOf(call, payment)
    const reply = yield* call((stripe) =>
      stripe.paymentIntents.create(
        {
          amount: units,
          currency: amount.currency.toLowerCase(),
          capture_method: "manual",
          automatic_payment_methods: { enabled: true },
          description,
          metadata: { payment_id: paymentId },
          ...recurring
        },
        { idempotencyKey: paymentId }
      )
    )
    const { client_secret: clientSecret, id: reference } = yield* decodeIntent(reply)
    if (clientSecret === null) return yield* unavailable("its reply has no client secret")
    return { reference, next: { _tag: "ClientSecret" as const, clientSecret } }
  })

interface Payments extends ReturnType<typeof paymentsOf> {}

/** What Stripe knows of payments. */
const paymentsOf = (call: StripeClient.Call) => {
  const refunds = (payment_intent: string) =>
    Effect.flatMap(
      call((stripe) => stripe.refunds.list({ payment_intent, limit: 100 }).autoPagingToArray({ limit: MOST })),
      decodeRefunds
    )
  const disputes = (payment_intent: string) =>
    Effect.flatMap(
      call((stripe) => stripe.disputes.list({ payment_intent, limit: 100 }).autoPagingToArray({ limit: MOST })),
      decodeDisputes
    )
  return {
    refunds,
    /** The PaymentIntent, if it was made for this payment. */
    intent: Effect.fnUntraced(function* ({ paymentId, reference }: Known) {
      const intent = yield* decodeIntent(yield* call((stripe) => stripe.paymentIntents.retrieve(reference)))
      return intent.metadata["payment_id"] === paymentId ? intent : yield* refused("the PaymentIntent is of another payment")
    }),
    standing: Effect.fnUntraced(function* (intent: Intent) {
      const isCaptured = intent.status === "succeeded"
      const [given, taken] = isCaptured ? yield* Effect.all([refunds(intent.id), disputes(intent.id)], { concurrency: 2 }) : [[], []]
      return standingOf(intent, given, taken) ?? (yield* unavailable("an amount in its reply is not whole"))
    })
  }
}

/** A PaymentIntent is captured once, so a second capture is refused; what happened then shows in its standing. */
const capturing = (call: StripeClient.Call, { intent, standing }: Payments) =>
  Effect.fn("Stripe.capture")(function* (known: Known) {
    const before = yield* intent(known)
    if (before.status !== "requires_capture") return yield* standing(before)
    const trouble = yield* call((stripe) => stripe.paymentIntents.capture(known.reference)).pipe(
      Effect.as(undefined),
      Effect.catch((error) => Effect.succeed(error))
    )
    const after = yield* intent(known)
    return trouble !== undefined && after.status === "requires_capture" ? yield* trouble : yield* standing(after)
  })

/** Stripe forgets idempotency keys after some days, so the refund bears its id, and is looked for. */
const refunding = (call: StripeClient.Call, { intent, refunds, standing }: Payments) =>
  Effect.fn("Stripe.refund")(function* (known: Known, { minor, refundId }: { readonly refundId: string; readonly minor: number }) {
    const { currency, id } = yield* intent(known)
    const units = Amounts.toStripe({ minor, currency: currency.toUpperCase() })
    if (units === undefined) return yield* refused(`it gives back no such amount of ${currency.toUpperCase()}`)
    const made = yield* refunds(id)
    if (!made.some(({ metadata }) => metadata?.["refund_id"] === refundId))
      yield* call((stripe) =>
        stripe.refunds.create(
          { payment_intent: id, amount: units, metadata: { refund_id: refundId } },
          { idempotencyKey: `${known.paymentId}/${refundId}` }
        )
      )
    return yield* standing(yield* intent(known))
  })

/** The objects that notices are about: PaymentIntents, and charges, refunds and disputes, which name theirs. */
const NoticeOf = Schema.Struct({
  data: Schema.Struct({
    object: Schema.Struct({
      id: Schema.String,
      object: Schema.String,
      payment_intent: Schema.optionalKey(Schema.NullOr(Schema.Union([Schema.String, Schema.Struct({ id: Schema.String })]))),
      metadata: Schema.optionalKey(Schema.NullOr(Schema.Record(Schema.String, Schema.String)))
    })
  })
})

const decodeNotice = Schema.decodeUnknownEffect(Schema.fromJsonString(NoticeOf))

/** Checks a signature with the library's own function, which compares in constant time. */
const isSigned = (body: Uint8Array, signature: string, secret: Redacted.Redacted, now: number): boolean => {
  try {
    return StripeApi.webhooks.signature?.verifyHeader(body, signature, Redacted.value(secret), TOLERANCE, undefined, now) === true
  } catch {
    return false
  }
}

const reading = (secrets: Options["webhookSecrets"]) =>
  Effect.fn("Stripe.notice")(function* ({ body, headers }: PaymentGateway.Notice) {
    const signature = headers["stripe-signature"]
    if (signature === undefined) return yield* new NoticeForged({ reason: "it has no Stripe-Signature" })
    const now = yield* Clock.currentTimeMillis
    if (!secrets.some((secret) => isSigned(body, signature, secret, now)))
      return yield* new NoticeForged({ reason: "no signature of it is by a secret of this host, and of the last five minutes" })
    return yield* decodeNotice(new TextDecoder().decode(body)).pipe(
      Effect.map(({ data }) => referencesIn(data.object)),
      // An event without such an object is about no payment
      Effect.orElseSucceed(() => [])
    )
  })

const referencesIn = ({ id, metadata, object, payment_intent }: (typeof NoticeOf.Type)["data"]["object"]): ReadonlyArray<string> => {
  if (object === "payment_intent") return metadata?.["payment_id"] === undefined ? [] : [id]
  if (payment_intent == null) return []
  return [typeof payment_intent === "string" ? payment_intent : payment_intent.id]
}
