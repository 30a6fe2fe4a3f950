/** Which account a payment bought credits for: claimed once, for ever. Stream `payment-{hash of the payment's reference}`. */
import { type Decider, type Decision, EventCodec } from "@millrace/event-sourcing"
import { Result, Schema } from "effect"
import { bare, lotIdOfPayment } from "../Ids.ts"

/** The id of a payment's stream: the lot that the payment buys has the same. */
export const idOf = (paymentRef: string): string => bare(lotIdOfPayment(paymentRef))

// events

export const PaymentClaimEvent = Schema.TaggedUnion({ PaymentClaimed: { accountId: Schema.String, lotId: Schema.String } })
export type PaymentClaimEvent = typeof PaymentClaimEvent.Type

// state

export interface PaymentClaim {
  readonly accountId: string | undefined
}

export const PaymentClaim: Decider<PaymentClaim, PaymentClaimEvent> = {
  category: "payment",
  codec: EventCodec.make(PaymentClaimEvent),
  initial: { accountId: undefined },
  // The first claim counts
  evolve: (claim, { accountId }) => (claim.accountId === undefined ? { accountId } : claim)
}

// decisions

/** Claims a payment that nobody has claimed. A claimed payment stays with its account. */
export const claim =
  (accountId: string, lotId: string) =>
  (payment: PaymentClaim): Decision<PaymentClaimEvent> =>
    Result.succeed(payment.accountId === undefined ? [{ _tag: "PaymentClaimed", accountId, lotId }] : [])
