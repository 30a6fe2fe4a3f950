/**
 * The fields of PayPal's replies that are used. Orders and payments, version 2: https://developer.paypal.com/docs/api/orders/v2/ and
 * https://developer.paypal.com/docs/api/payments/v2/; disputes, version 1: https://developer.paypal.com/docs/api/customer-disputes/v1/
 */
import { Schema } from "effect"

const Money = Schema.Struct({ currency_code: Schema.String, value: Schema.String })

const Link = Schema.Struct({ href: Schema.String, rel: Schema.String })

const Links = Schema.optionalKey(Schema.Array(Link))

export const Token = Schema.Struct({
  access_token: Schema.String.check(Schema.isMinLength(1)),
  /** Seconds. */
  expires_in: Schema.Finite
})

export const Refund = Schema.Struct({
  id: Schema.String,
  status: Schema.Literals(["CANCELLED", "FAILED", "PENDING", "COMPLETED"]),
  amount: Money,
  custom_id: Schema.optionalKey(Schema.String)
})

export const Capture = Schema.Struct({
  id: Schema.String,
  status: Schema.Literals(["COMPLETED", "DECLINED", "PARTIALLY_REFUNDED", "PENDING", "REFUNDED", "FAILED"]),
  status_details: Schema.optionalKey(Schema.Struct({ reason: Schema.optionalKey(Schema.String) })),
  amount: Money
})

/** A capture by itself names its order. */
export const CaptureOfOrder = Schema.Struct({
  supplementary_data: Schema.optionalKey(
    Schema.Struct({ related_ids: Schema.optionalKey(Schema.Struct({ order_id: Schema.optionalKey(Schema.String) })) })
  )
})

export const Order = Schema.Struct({
  id: Schema.String,
  status: Schema.Literals(["CREATED", "SAVED", "APPROVED", "VOIDED", "COMPLETED", "PAYER_ACTION_REQUIRED"]),
  purchase_units: Schema.Array(
    Schema.Struct({
      custom_id: Schema.optionalKey(Schema.String),
      amount: Money,
      payments: Schema.optionalKey(
        Schema.Struct({
          captures: Schema.optionalKey(Schema.Array(Capture)),
          refunds: Schema.optionalKey(Schema.Array(Refund))
        })
      )
    })
  ).check(Schema.isMinLength(1)),
  links: Links
})

/** A new order. A reply that repeats an earlier one may have its id, status and links alone. */
export const NewOrder = Schema.Struct({ id: Schema.String, links: Links })

const ListedDispute = Schema.Struct({ dispute_id: Schema.String })

/** A page of a list. An empty list may lack its items, but has links. */
export const Disputes = Schema.Union([
  Schema.Struct({ items: Schema.Array(ListedDispute), links: Links }),
  Schema.Struct({ links: Schema.Array(Link) })
])

export const Dispute = Schema.Struct({
  dispute_id: Schema.String,
  status: Schema.String,
  dispute_life_cycle_stage: Schema.optionalKey(Schema.String),
  dispute_amount: Schema.optionalKey(Money),
  dispute_outcome: Schema.optionalKey(Schema.Struct({ outcome_code: Schema.optionalKey(Schema.String) })),
  /** What the dispute took from the host or gave to it (`SELLER`), and from or to others. */
  money_movements: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({
        affected_party: Schema.optionalKey(Schema.String),
        amount: Schema.optionalKey(Money),
        type: Schema.optionalKey(Schema.String)
      })
    )
  )
})

export const Problem = Schema.Struct({
  name: Schema.optionalKey(Schema.String),
  details: Schema.optionalKey(Schema.Array(Schema.Struct({ issue: Schema.optionalKey(Schema.String) })))
})

export const Verification = Schema.Struct({ verification_status: Schema.Literals(["SUCCESS", "FAILURE"]) })

/** An event of a webhook, whose resource is an order, a capture, a refund or a dispute. */
export const Event = Schema.Struct({
  event_type: Schema.String,
  resource: Schema.Struct({
    id: Schema.optionalKey(Schema.String),
    ...CaptureOfOrder.fields,
    links: Links,
    disputed_transactions: Schema.optionalKey(Schema.Array(Schema.Struct({ seller_transaction_id: Schema.optionalKey(Schema.String) })))
  })
})

export type Order = typeof Order.Type
export type Capture = typeof Capture.Type
export type Refund = typeof Refund.Type
export type Dispute = typeof Dispute.Type
export type Event = typeof Event.Type
export type Links = ReadonlyArray<typeof Link.Type> | undefined

/** The address of a link, by its relation. */
export const linkOf = (links: Links, ...rels: ReadonlyArray<string>): string | undefined =>
  rels.flatMap((wanted) => links?.find(({ rel }) => rel === wanted)?.href ?? []).at(0)
