/** The settings of payments: what takes the money, and what is given on top. */
import {
  Checkout,
  type CheckoutOptions,
  Credits,
  ManualGateway,
  Packs,
  type Payment,
  type PaymentGateway,
  type Payments,
  type Plans,
  type SubscriptionOptions
} from "@millrace/core"
import type { EventStore, StateStore } from "@millrace/event-sourcing"
import { type Hook, PaymentHooks } from "@millrace/http"
import { Config, Duration, Effect, Layer, Option } from "effect"
import * as InvoiceSettings from "./InvoiceSettings.ts"
import * as PaymentGateways from "./PaymentGateways.ts"
import * as PlanSettings from "./PlanSettings.ts"
import * as Setting from "./Setting.ts"

export { NAMES as GATEWAYS, type Name } from "./PaymentGateways.ts"

const BONUS = /^(?<pack>\d+)=(?<credits>[\d.]+)$/u

/** `50=5000,100=15000`: credits on top of a pack, by its price in dollars. */
const bonusesOf = (text: string): CheckoutOptions["bonuses"] | undefined => {
  const bonuses: Partial<Record<Packs.Pack, Credits.Credits>> = {}
  for (const item of text.split(",")) {
    const { credits = "", pack: name } = BONUS.exec(item.trim())?.groups ?? {}
    const pack = Packs.PACKS.find((pack) => pack === name)
    const amount = Credits.parse(credits)
    if (pack === undefined || amount === undefined || pack in bonuses) return undefined
    bonuses[pack] = amount
  }
  return bonuses
}

export const gateway: Setting.Kind<PaymentGateways.Name> = {
  metavar: PaymentGateways.NAMES.join("|"),
  parse: Setting.oneOf(PaymentGateways.NAMES),
  expected: PaymentGateways.NAMES.join(", ")
}

export const bonuses: Setting.Kind<NonNullable<CheckoutOptions["bonuses"]>> = {
  metavar: "pack=credits",
  parse: bonusesOf,
  expected: "packs and credits such as 50=5000,100=15000"
}

export const instruction: Setting.Kind<string> = { metavar: "text", parse: Setting.text, expected: "a text" }

const days = Setting.whole("days", "days", 1, 90)
const hours = Setting.whole("hours", "hours", 1, 8_760)

export const flags = {
  payments: Setting.optional(
    "payments",
    "What takes payments of credits: manual, which operators confirm; stripe, with MILLRACE_STRIPE_KEY and MILLRACE_STRIPE_WEBHOOK_SECRET; or paypal, with MILLRACE_PAYPAL_CLIENT_ID, MILLRACE_PAYPAL_CLIENT_SECRET and MILLRACE_PAYPAL_WEBHOOK_ID. None when left out",
    gateway
  ),
  paymentInstruction: Setting.optional(
    "payment-instruction",
    "With manual payments: what the payer reads. {amount}, {currency} and {payment} stand for those of the payment",
    instruction
  ),
  paymentLifetime: Setting.optional("payment-lifetime", "Hours after which a payment that nobody paid has failed; 24 when left out", hours),
  topupBonus: Setting.optional(
    "topup-bonus",
    "Credits that are given on top of packs, such as 50=5000,100=15000; none when left out",
    bonuses
  ),
  plans: Setting.optional(
    "plans",
    'The plans of subscriptions: a file, or JSON such as {"standard":{"price":20,"credits":25000,"period":"month"}}; none when left out',
    PlanSettings.plans
  ),
  paymentTax: Setting.optional(
    "payment-tax",
    "The tax that prices include, as it stands on invoices: name, rate and region, such as VAT 19% DE; none when left out",
    InvoiceSettings.tax
  ),
  invoiceSeller: Setting.optional(
    "invoice-seller",
    "Who sells, as it stands on invoices, such as Mill Ltd\\n1 Mill Lane\\nVAT ID GB123456789; nothing when left out",
    InvoiceSettings.seller
  ),
  subscriptionGrace: Setting.optional(
    "subscription-grace",
    "Days that a subscription goes on whose next period is not paid; 7 when left out",
    days
  )
}

export interface Settings {
  readonly payments: Option.Option<PaymentGateways.Name>
  readonly paymentInstruction: Option.Option<string>
  readonly paymentLifetime: Option.Option<number>
  readonly topupBonus: Option.Option<NonNullable<CheckoutOptions["bonuses"]>>
  readonly plans: Option.Option<ReadonlyArray<Plans.Plan>>
  readonly subscriptionGrace: Option.Option<number>
  readonly paymentTax: Option.Option<Payment.Tax>
  readonly invoiceSeller: Option.Option<string>
  /** Where people reach this server. */
  readonly publicUrl: Option.Option<URL>
}

/** No payments are taken. */
export const NONE: Settings = {
  payments: Option.none(),
  paymentInstruction: Option.none(),
  paymentLifetime: Option.none(),
  topupBonus: Option.none(),
  plans: Option.none(),
  subscriptionGrace: Option.none(),
  paymentTax: Option.none(),
  invoiceSeller: Option.none(),
  publicUrl: Option.none()
}

/** What a host gives on top, its plans, what its invoices say, and how long it waits for the money. */
export const terms = (settings: Settings): CheckoutOptions & SubscriptionOptions => ({
  ...given("plans", settings.plans),
  ...given("grace", Option.map(settings.subscriptionGrace, Duration.days)),
  ...given("bonuses", settings.topupBonus),
  ...given("lifetime", Option.map(settings.paymentLifetime, Duration.hours)),
  ...given("tax", settings.paymentTax),
  ...given("seller", settings.invoiceSeller)
})

const given = <Key extends string, A>(key: Key, value: Option.Option<A>): { readonly [K in Key]?: A } =>
  Option.match(value, { onNone: () => ({}), onSome: (value) => ({ [key]: value }) as { readonly [K in Key]: A } })

/**
 * The gateway, if there is one, and what operators do with manual payments, which is there in any case: a host may still have some of an
 * earlier time.
 */
export const taking = ({
  paymentInstruction: instruction,
  payments,
  publicUrl
}: Settings): Layer.Layer<PaymentGateway.PaymentGateway | ManualGateway.ManualPayments, unknown, EventStore.EventStore> => {
  const gateway = Option.match(payments, {
    onNone: () => Layer.empty as Layer.Layer<never> as Layer.Layer<PaymentGateway.PaymentGateway>,
    onSome: (name) => PaymentGateways.layer(name, { instruction, publicUrl })
  })
  return Layer.merge(gateway, ManualGateway.operators)
}

/** The hooks for the OpenAPI document: manual payments have none. */
export const hooked = ({ payments }: Settings): ReadonlyArray<Hook> => Option.toArray(payments).filter((name) => name !== "manual")

/** Where gateways tell what happened. Empty without payments. */
export const hooks = ({ payments }: Settings) => (Option.isNone(payments) ? Layer.empty : PaymentHooks.layer)

/** The gateway that the environment names, and else manual payments: for commands without these flags. */
const byEnvironment = Effect.gen(function* () {
  const payments = yield* Config.String("MILLRACE_PAYMENTS").pipe(Config.option)
  const publicUrl = yield* Config.String("MILLRACE_PUBLIC_URL").pipe(Config.option)
  return {
    ...NONE,
    payments: Option.orElse(Option.flatMapNullishOr(payments, gateway.parse), () => Option.some("manual" as const)),
    publicUrl: Option.flatMapNullishOr(publicUrl, (text) => URL.parse(text))
  }
})

/** For commands: the checkout of the gateway that the environment names. */
export const administering: Layer.Layer<
  Checkout | ManualGateway.ManualPayments,
  unknown,
  Payments | EventStore.EventStore | StateStore.StateStore
> = Checkout.layer().pipe(Layer.provideMerge(Layer.unwrap(Effect.map(byEnvironment, taking))))
