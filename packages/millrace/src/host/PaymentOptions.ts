/** How a host takes payments: the options, and the settings that follow from these. */
import { Credits, Packs, type PaymentGateway } from "@millrace/core"
import type { EventStore } from "@millrace/event-sourcing"
import { Layer, Option } from "effect"
import * as InvoiceSettings from "../InvoiceSettings.ts"
import * as PaymentSettings from "../PaymentSettings.ts"
import * as PlanSettings from "../PlanSettings.ts"
import * as Given from "./Given.ts"

export interface PaymentOptions {
  /**
   * `manual`: operators approve payments when the money is there. `stripe` and `paypal` take their keys from the environment, as `serve` does.
   * Or a layer: one of `@millrace/upstreams/payments` with keys of the host's own, or another gateway.
   */
  readonly gateway: PaymentSettings.Name | Layer.Layer<PaymentGateway.PaymentGateway, unknown, EventStore.EventStore>
  /** With manual payments: what the payer reads. `{amount}`, `{currency}` and `{payment}` stand for those of the payment. */
  readonly instruction?: string
  /** With PayPal: where payers come back to. */
  readonly publicUrl?: string
  /** Hours after which a payment that nobody paid has failed: 24 by default. */
  readonly lifetime?: number
  /** Credits on top of packs, by their price in dollars, such as `{ 50: 5000 }`: none by default. */
  readonly bonus?: Readonly<Partial<Record<Packs.Pack, number>>>
  /** Plans of subscriptions by their name: none by default. The first is that of a subscription that names none. */
  readonly plans?: Readonly<Record<string, PlanSettings.PlanOptions>>
  /** Days that a subscription goes on whose next period is not paid: 7 by default. */
  readonly subscriptionGrace?: number
  /** The tax that prices include, such as `{ name: "VAT", rate: 19, region: "DE" }`: none by default. */
  readonly tax?: InvoiceSettings.TaxOptions
  /** Who sells, as it stands on invoices: lines of text, at most 500 characters. Nothing by default. */
  readonly seller?: string
}

const credits = Given.rule(
  "a number of credits, at least 0, with at most three decimals",
  (value) => typeof value === "number" && Credits.parse(String(value)) !== undefined
)

export const PAYMENTS = Given.within(
  "payments",
  {
    gateway: Given.rule(
      `${PaymentSettings.GATEWAYS.map((name) => JSON.stringify(name)).join(" or ")}, or a layer`,
      (value) => PaymentSettings.GATEWAYS.some((name) => name === value) || Layer.isLayer(value)
    ),
    instruction: Given.text("a text"),
    publicUrl: Given.rule("an address such as https://app.example.com", (value) => typeof value === "string" && URL.canParse(value)),
    lifetime: Given.rule("hours, a number above 0", (value) => Given.isNumber(0)(value) && value !== 0),
    plans: Given.rule(PlanSettings.EXPECTED, (value) => PlanSettings.plansOf(value) !== undefined),
    subscriptionGrace: Given.rule("days, a whole number from 1", Given.isInt(1)),
    tax: Given.rule(InvoiceSettings.EXPECTED, (value) => InvoiceSettings.taxOf(value) !== undefined),
    seller: Given.rule(
      InvoiceSettings.seller.expected,
      (value) => typeof value === "string" && InvoiceSettings.parseSeller(value) !== undefined
    ),
    bonus: Given.within("payments.bonus", Object.fromEntries(Packs.PACKS.map((pack) => [pack, credits])))
  },
  Given.needing("gateway")
)

export const settingsOf = (payments: PaymentOptions | undefined): PaymentSettings.Settings =>
  payments === undefined
    ? PaymentSettings.NONE
    : {
        payments: typeof payments.gateway === "string" ? Option.some(payments.gateway) : Option.none(),
        paymentInstruction: Option.fromUndefinedOr(payments.instruction),
        paymentLifetime: Option.fromUndefinedOr(payments.lifetime),
        publicUrl: Option.flatMapNullishOr(Option.fromUndefinedOr(payments.publicUrl), (text) => URL.parse(text)),
        plans: Option.flatMapNullishOr(Option.fromUndefinedOr(payments.plans), PlanSettings.plansOf),
        subscriptionGrace: Option.fromUndefinedOr(payments.subscriptionGrace),
        paymentTax: Option.flatMapNullishOr(Option.fromUndefinedOr(payments.tax), InvoiceSettings.taxOf),
        invoiceSeller: Option.flatMapNullishOr(Option.fromUndefinedOr(payments.seller), InvoiceSettings.parseSeller),
        topupBonus: Option.map(Option.fromUndefinedOr(payments.bonus), bonusesOf)
      }

const bonusesOf = (bonus: NonNullable<PaymentOptions["bonus"]>) =>
  Object.fromEntries(Object.entries(bonus).map(([pack, amount]) => [pack, Credits.parse(String(amount)) ?? Credits.zero]))
