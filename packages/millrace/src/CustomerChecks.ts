/** The checks of `doctor` of what customers meet: sign-up by mail, and payments. What is not set up is told with what it needs. */
import { Config, Duration, Effect, Option, Redacted } from "effect"
import { type Check, check, finding } from "./Check.ts"
import { isSet, set } from "./EnvironmentSettings.ts"
import { fail } from "./Failure.ts"
import * as InvoiceSettings from "./InvoiceSettings.ts"
import * as MailRelaySettings from "./MailRelaySettings.ts"
import * as PaymentGateways from "./PaymentGateways.ts"
import * as PaymentSettings from "./PaymentSettings.ts"
import * as PlanSettings from "./PlanSettings.ts"
import * as PublicUrl from "./PublicUrl.ts"

const publicUrl = set("MILLRACE_PUBLIC_URL", PublicUrl.kind)

// sign-up

const reach = check(
  "public URL",
  Effect.gen(function* () {
    const url = yield* publicUrl
    if (Option.isNone(url))
      return finding("links in mails lead to where the server listens", "set MILLRACE_PUBLIC_URL: where people reach it", true)
    if (url.value.protocol === "https:" || PublicUrl.isLoopback(url.value)) return finding(`links in mails lead to ${url.value.href}`)
    return finding(`${url.value.href} is not https`, "serve it by https: browsers keep no session of it")
  })
)

/** What to do about a relay that did not answer as it must, by nodemailer's code for it. */
const ADVICE: Readonly<Record<string, string>> = {
  EAUTH: "set the name and the password that it knows in MILLRACE_MAIL_RELAY",
  ETLS: "a name and a password need TLS: use a port with STARTTLS, or smtps:",
  EDNS: "is its name right in MILLRACE_MAIL_RELAY?"
}

const OTHERWISE = "does it listen there, and does this machine trust its certificate?"

/** The relay without its name and password. */
const shown = ({ host, protocol }: URL): string => `${protocol}//${host}`

/** How long a relay may take to answer everything. */
const TIME_LIMIT = Duration.seconds(10)

const relay = check(
  "mail relay",
  Effect.gen(function* () {
    const relay = yield* set("MILLRACE_MAIL_RELAY", MailRelaySettings.relayOrPrint)
    const given = yield* set("MILLRACE_MAIL_FROM", MailRelaySettings.sender)
    if (Option.isNone(relay)) {
      const needed = "set MILLRACE_MAIL_RELAY: smtp://name:password@relay.example.com:587, or print to try it out"
      return finding("none: nobody signs up or signs in by mail, and there are no price alerts", needed, true)
    }
    if (relay.value === "print") return finding("mails are printed: who reads the output of the server can sign in")
    const url = relay.value
    const reached = yield* publicUrl
    const sender = Option.getOrElse(given, () => MailRelaySettings.senderAt(reached))
    if (sender.endsWith("@localhost"))
      return finding(`mails would come from ${sender}`, "set MILLRACE_MAIL_FROM, or MILLRACE_PUBLIC_URL: relays and readers refuse it")
    const SmtpRelay = yield* Effect.promise(() => import("@millrace/upstreams/mail-relay"))
    const asked = yield* Effect.result(SmtpRelay.verify({ url, timeLimit: TIME_LIMIT }))
    if (asked._tag === "Failure") {
      const { reason } = asked.failure
      return finding(`${shown(url)} did not answer as a relay must: ${reason}`, ADVICE[reason.split(" ", 1)[0] ?? ""] ?? OTHERWISE)
    }
    const how = url.username === "" ? "without a name" : "by name and password over TLS"
    return finding(`${shown(url)} lets this host in, ${how}; mails come from ${sender}`)
  })
)

// payments

/** A key of Stripe, without showing it. */
const stripeKey = Effect.gen(function* () {
  const key = Redacted.value(yield* Config.Redacted("MILLRACE_STRIPE_KEY"))
  if (!/^[rs]k_/u.test(key)) return yield* fail("MILLRACE_STRIPE_KEY must be a secret (sk_) or a restricted key (rk_)")
  const secrets = Redacted.value(yield* Config.Redacted("MILLRACE_STRIPE_WEBHOOK_SECRET")).split(",")
  if (!secrets.every((secret) => secret.trim().startsWith("whsec_")))
    return yield* fail("MILLRACE_STRIPE_WEBHOOK_SECRET must be the signing secret of its webhook (whsec_)")
  return /^[rs]k_test_/u.test(key) ? "the key is for tests: no money moves" : undefined
})

const payments = check(
  "payments",
  Effect.gen(function* () {
    const name = yield* set("MILLRACE_PAYMENTS", PaymentSettings.gateway)
    yield* set("MILLRACE_TOPUP_BONUS", PaymentSettings.bonuses)
    yield* set("MILLRACE_PAYMENT_TAX", InvoiceSettings.tax)
    yield* set("MILLRACE_INVOICE_SELLER", InvoiceSettings.seller)
    if (Option.isNone(name)) return finding("credits cannot be bought here", "set MILLRACE_PAYMENTS: manual, stripe or paypal", true)
    const instruction = yield* set("MILLRACE_PAYMENT_INSTRUCTION", PaymentSettings.instruction)
    yield* PaymentGateways.make(name.value, { instruction, publicUrl: yield* publicUrl })
    if (name.value === "manual") return finding("operators confirm payments: millrace payments approve")
    const advice = name.value === "stripe" ? yield* stripeKey : undefined
    return finding(`${name.value} has its keys, and the secret of its webhook at /hooks/payments/${name.value}`, advice, true)
  })
)

const plans = check(
  "plans",
  Effect.gen(function* () {
    const plans = yield* set("MILLRACE_PLANS", PlanSettings.plans)
    if (Option.isNone(plans)) return finding("none: nobody subscribes", `set MILLRACE_PLANS: ${PlanSettings.plans.metavar}`, true)
    const names = plans.value.map(({ plan }) => plan).join(", ")
    return (yield* isSet("MILLRACE_PAYMENTS"))
      ? finding(names)
      : finding(`${names}, and nothing takes payments`, "set MILLRACE_PAYMENTS: manual, stripe or paypal")
  })
)

export const checks: Effect.Effect<ReadonlyArray<Check>> = Effect.all([reach, relay, payments, plans])
