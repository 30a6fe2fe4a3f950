/** What can happen to a payment. Stream `payment-{hash of the payment's reference}`; money in the smallest unit of its currency. */
import { Schema } from "effect"
import { Credits } from "../Credits.ts"
import { Every } from "../ledger/Periods.ts"
import { Timestamp } from "../Timestamp.ts"

/** An amount of money: whole cents, or whatever the smallest unit is. */
export const Minor = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }))

/** By ISO 4217: `USD`. */
export const Currency = Schema.String.check(Schema.isPattern(/^[A-Z]{3}$/u))

/** What a payment buys. */
export const Purchase = Schema.TaggedUnion({
  /** Credits that never expire. `pack` names it: `10`. */
  Pack: { pack: Schema.String },
  /** A period of a subscription, whose credits expire with it. */
  Period: {
    subscriptionId: Schema.String,
    plan: Schema.String,
    /** From 0. */
    period: Schema.Int,
    from: Timestamp,
    until: Timestamp,
    /** Of a first period, which begins when it is captured: how long it lasts. Until then `from` and `until` are those of the request. */
    every: Schema.optionalKey(Every)
  }
})
export type Purchase = typeof Purchase.Type

/** The tax that a price includes. */
export const Tax = Schema.Struct({
  /** As it stands on an invoice: `VAT`. */
  name: Schema.String,
  /** Hundredths of a percent: 1900 for 19 %. */
  rate: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 10_000 })),
  /** Where it is owed, by ISO 3166: `DE`, `US-CA`. */
  region: Schema.String
})
export type Tax = typeof Tax.Type

/** A line of what is paid. A negative amount is taken off. */
export const Line = Schema.Struct({
  description: Schema.String,
  /** In the smallest unit of the payment's currency. */
  amount: Schema.Int,
  /** The time that it is for. */
  from: Schema.optionalKey(Timestamp),
  until: Schema.optionalKey(Timestamp)
})
export type Line = typeof Line.Type

/** A payment that is repeated: without an agreement the payer makes one with it, and later ones are taken by it without the payer. */
export const Recurring = Schema.Struct({
  /** The gateway's reference of the payer's stored means. It is no card number, and of no use without the host's own key. */
  agreement: Schema.optionalKey(Schema.String)
})
export type Recurring = typeof Recurring.Type

export const PaymentEvent = Schema.TaggedUnion({
  /** A payment made elsewhere bought credits for an account. */
  PaymentClaimed: { accountId: Schema.String, lotId: Schema.String },

  /** A payment is to be made here. */
  PaymentRequested: {
    /** `pay_...`. */
    paymentId: Schema.String,
    accountId: Schema.String,
    /** The gateway that takes the money: `manual`, `stripe`, `paypal`. */
    gateway: Schema.String,
    amount: Minor,
    currency: Currency,
    purchase: Purchase,
    /** What it buys. */
    credits: Credits,
    /** What is given on top; 0 for none. */
    bonus: Credits,
    /** The tax that the amount includes, if any. */
    tax: Schema.optionalKey(Tax),
    /** What the payer and the invoice read: `10,000 credits`. */
    description: Schema.optionalKey(Schema.String),
    /** Who sells, as it stands on the invoice: lines of text. */
    seller: Schema.optionalKey(Schema.String),
    /** What the amount consists of, where that is not one thing. Their sum is the amount. */
    lines: Schema.optionalKey(Schema.Array(Line)),
    recurring: Schema.optionalKey(Recurring),
    /** A payment that is still pending then has failed. */
    expiresAt: Timestamp
  },
  /** The gateway knows the payment, under its own reference. */
  PaymentBegun: { reference: Schema.String },
  PaymentAuthorized: {},
  PaymentCaptured: {
    amount: Minor,
    /** The payer's stored means, by which later payments can be taken. */
    agreement: Schema.optionalKey(Schema.String)
  },
  /** For the payer to read. */
  PaymentFailed: { reason: Schema.String },
  /** The account could not be granted what was paid for: the money goes back. */
  PaymentNotGranted: { reason: Schema.String },
  /** Money went back at the host's will. `reference`: the gateway's id of the refund. */
  PaymentRefunded: { reference: Schema.String, amount: Minor },
  /** A refund did not reach the payer: the host has its money again. */
  PaymentRefundFailed: { reference: Schema.String },
  /** A chargeback was opened: the money went back. `reference`: the gateway's id of the dispute. */
  PaymentDisputed: { reference: Schema.String, amount: Minor },
  /** The host has the disputed money again. */
  PaymentDisputeWon: { reference: Schema.String },
  PaymentDisputeLost: { reference: Schema.String }
})
export type PaymentEvent = typeof PaymentEvent.Type

export type EventOf<Tag extends PaymentEvent["_tag"]> = Extract<PaymentEvent, { readonly _tag: Tag }>
