/** What every payment gateway keeps to, kept to by PayPal. */
import { PaymentProvider, paymentGatewaySuite } from "@millrace/testing"
import { PayPal } from "@millrace/upstreams/payments"
import { Effect, Layer, Redacted } from "effect"
import { describe, test } from "vitest"
import { CLIENT_ID, CLIENT_SECRET, noticeOf, PayPalServer, WEBHOOK_ID } from "./PayPalServer.ts"

const usd = (minor: number) => ({ currency_code: "USD", value: (minor / 100).toFixed(2) })

const providerOf = (paypal: PayPalServer): PaymentProvider["Service"] => ({
  approve: (reference) => Effect.sync(() => paypal.approve(reference)),
  decline: (reference) =>
    Effect.sync(() => {
      paypal.approve(reference)
      paypal.outcomes.push({ issue: "INSTRUMENT_DECLINED" })
    }),
  cancel: (reference) => Effect.sync(() => paypal.void(reference)),
  refund: (reference, minor) => Effect.sync(() => void paypal.refund(reference, usd(minor))),
  failRefund: (refund) => Effect.sync(() => paypal.failRefund(refund)),
  dispute: (reference, minor) => Effect.sync(() => paypal.dispute(reference, usd(minor))),
  close: (dispute, status) =>
    Effect.sync(() =>
      paypal.changeDispute(dispute, {
        status: "RESOLVED",
        dispute_outcome: { outcome_code: status === "won" ? "RESOLVED_SELLER_FAVOUR" : "RESOLVED_BUYER_FAVOUR" }
      })
    ),
  notices: Effect.sync(() => paypal.webhooks()),
  forge: ({ body, headers }) => noticeOf(Buffer.from(body).toString(), headers["paypal-transmission-id"] ?? "", "Zm9yZ2Vk"),
  made: Effect.sync(() => ({ payments: paypal.orders.size, captures: paypal.captures, refunds: paypal.refunds })),
  fail: (faults) => Effect.sync(() => paypal.server.fail(faults)),
  requests: Effect.sync(() => paypal.server.requests),
  secrets: [CLIENT_SECRET, "A21AALocal", Buffer.from(`${CLIENT_ID}:${CLIENT_SECRET}`).toString("base64")]
})

const layer = () =>
  Layer.unwrap(
    Effect.gen(function* () {
      const paypal = new PayPalServer()
      const gateway = PayPal.layer({
        clientId: CLIENT_ID,
        clientSecret: Redacted.make(CLIENT_SECRET),
        webhookId: WEBHOOK_ID,
        returnUrl: new URL("https://example.com/paid?from=paypal"),
        baseUrl: yield* paypal.server.serve,
        retryDelay: "1 millis"
      })
      return Layer.merge(gateway, Layer.succeed(PaymentProvider, providerOf(paypal)))
    })
  )

paymentGatewaySuite("PayPal", layer, { describe, it: test })
