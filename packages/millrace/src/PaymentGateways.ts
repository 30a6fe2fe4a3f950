/** What takes payments, by its name. Keys come from the environment, so that they stand in no list of processes. */
import { ManualGateway, type PaymentGateway } from "@millrace/core"
import type { EventStore } from "@millrace/event-sourcing"
import { Config, Effect, Layer, Option, Redacted } from "effect"
import { type CommandFailed, fail } from "./Failure.ts"

/** What can take payments. */
export const NAMES = ["manual", "stripe", "paypal"] as const
export type Name = (typeof NAMES)[number]

export interface Settings {
  /** With manual payments: what the payer reads. */
  readonly instruction: Option.Option<string>
  /** Where people reach this server. Payers come back there from PayPal. */
  readonly publicUrl: Option.Option<URL>
}

type Taking = Layer.Layer<PaymentGateway.PaymentGateway, unknown, EventStore.EventStore>
type Made = Effect.Effect<Taking, CommandFailed | Config.ConfigError>

const given = (variable: string) =>
  Effect.map(
    Config.Redacted(variable).pipe(Config.option),
    Option.filter((value) => Redacted.value(value) !== "")
  )

const needed = (gateway: Name, variable: string, what: string) =>
  Effect.flatMap(
    given(variable),
    Option.match({
      onNone: () => fail(`payments by ${gateway} need ${variable}, ${what}`),
      onSome: (value) => Effect.succeed(value)
    })
  )

/** The address of the gateway, where it is not that of its live API. */
const addressBy = (variable: string) =>
  Effect.flatMap(
    given(variable),
    Option.match({
      onNone: () => Effect.succeed({}),
      onSome: (text) => {
        const url = URL.parse(Redacted.value(text))
        return url === null || !/^https?:$/u.test(url.protocol)
          ? fail(`${variable} must be an address such as https://api.example.com`)
          : Effect.succeed({ baseUrl: url })
      }
    })
  )

const loaded = Effect.promise(() => import("@millrace/upstreams/payments"))

const stripe: Made = Effect.gen(function* () {
  const apiKey = yield* needed("stripe", "MILLRACE_STRIPE_KEY", "a secret or a restricted key")
  const secrets = yield* needed(
    "stripe",
    "MILLRACE_STRIPE_WEBHOOK_SECRET",
    "the signing secret of its webhook; several, separated by commas"
  )
  const webhookSecrets = Redacted.value(secrets)
    .split(",")
    .map((secret) => Redacted.make(secret.trim()))
  const address = yield* addressBy("MILLRACE_STRIPE_URL")
  const { Stripe } = yield* loaded
  return Stripe.layer({ apiKey, webhookSecrets, ...address })
})

const paypal = ({ publicUrl }: Settings): Made =>
  Effect.gen(function* () {
    const clientId = yield* needed("paypal", "MILLRACE_PAYPAL_CLIENT_ID", "the client id of a REST app")
    const clientSecret = yield* needed("paypal", "MILLRACE_PAYPAL_CLIENT_SECRET", "the secret of a REST app")
    const webhookId = yield* needed("paypal", "MILLRACE_PAYPAL_WEBHOOK_ID", "the id of the webhook that is registered for this host")
    const address = yield* addressBy("MILLRACE_PAYPAL_URL")
    if (Option.isNone(publicUrl)) return yield* fail("payments by paypal need --public-url or MILLRACE_PUBLIC_URL: payers come back there")
    const { PayPal } = yield* loaded
    const ids = { clientId: Redacted.value(clientId), webhookId: Redacted.value(webhookId) }
    return PayPal.layer({ ...ids, clientSecret, returnUrl: publicUrl.value, ...address })
  })

/** Finds what a gateway needs. Fails with a sentence that names the setting which is missing. */
export const make = (name: Name, settings: Settings): Made => {
  switch (name) {
    case "manual":
      return Effect.succeed(
        ManualGateway.gateway(Option.match(settings.instruction, { onNone: () => ({}), onSome: (instruction) => ({ instruction }) }))
      )
    case "stripe":
      return stripe
    case "paypal":
      return paypal(settings)
  }
}

/** A gateway. Fails with a sentence that names the setting which is missing. */
export const layer = (name: Name, settings: Settings): Taking => Layer.unwrap(make(name, settings))
