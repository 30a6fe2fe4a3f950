/** What every payment gateway keeps to, kept to by Stripe. */
import { PaymentProvider, paymentGatewaySuite } from "@millrace/testing"
import { Stripe } from "@millrace/upstreams/payments"
import { Effect, Layer, Redacted } from "effect"
import { describe, test } from "vitest"
import { API_KEY, StripeServer, signed, WEBHOOK_SECRET } from "./StripeServer.ts"

const providerOf = (stripe: StripeServer): PaymentProvider["Service"] => ({
  approve: (reference) => Effect.sync(() => stripe.authorize(reference)),
  decline: (reference) => Effect.sync(() => stripe.decline(reference)),
  cancel: (reference) => Effect.sync(() => stripe.cancel(reference)),
  refund: (reference, minor) => Effect.sync(() => void stripe.refund(reference, minor)),
  failRefund: (refund) => Effect.sync(() => stripe.changeRefund(refund, "failed")),
  dispute: (reference, minor) => Effect.sync(() => stripe.dispute(reference, minor)),
  close: (dispute, status) => Effect.sync(() => stripe.changeDispute(dispute, status)),
  notices: Effect.sync(() => stripe.webhooks()),
  forge: ({ body }) => signed(Buffer.from(body).toString(), "whsec_of_somebody_else", stripe.now()),
  made: Effect.sync(() => ({ payments: stripe.intents.size, captures: stripe.captures, refunds: stripe.refunds.length })),
  fail: (faults) => Effect.sync(() => stripe.server.fail(faults)),
  requests: Effect.sync(() => stripe.server.requests),
  secrets: [API_KEY, WEBHOOK_SECRET]
})

const layer = () =>
  Layer.unwrap(
    Effect.gen(function* () {
      const stripe = new StripeServer()
      const gateway = Stripe.layer({
        apiKey: Redacted.make(API_KEY),
        webhookSecrets: [Redacted.make("whsec_of_the_next_month"), Redacted.make(WEBHOOK_SECRET)],
        baseUrl: yield* stripe.server.serve,
        retryDelay: "1 millis"
      })
      return Layer.merge(gateway, Layer.succeed(PaymentProvider, providerOf(stripe)))
    })
  )

paymentGatewaySuite("Stripe", layer, { describe, it: test })
