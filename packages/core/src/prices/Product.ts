/**
 * The prices of a product. What this host read itself is in the stream `product-{SHA-256 of its identity}` and counts for everybody. What a
 * caller claims is in `priceClaims-{HMAC of account and identity}` and counts for that caller alone; its log has neither name in clear.
 */
import { hash } from "node:crypto"
import { type Decider, type Decision, EventCodec } from "@millrace/event-sourcing"
import { Result, Schema } from "effect"
import type { Timestamp } from "../Timestamp.ts"
import { Offer } from "./Offer.ts"
import * as PriceSeries from "./PriceSeries.ts"

export const idOf = (identity: string): string => hash("sha256", identity, "base64url")

// events

export const ProductEvent = Schema.TaggedUnion({
  PriceObserved: {
    price: PriceSeries.Price,
    /** ISO 4217; null where the shop did not tell. */
    currency: Schema.NullOr(Schema.String),
    /** For the search by name. It is left out where a price is observed under a further name of the product. */
    offer: Schema.optionalKey(Offer)
  }
})
export type ProductEvent = typeof ProductEvent.Type

/** In the currency of the product. */
export const ClaimEvent = Schema.TaggedUnion({ PriceClaimed: { price: PriceSeries.Price } })
export type ClaimEvent = typeof ClaimEvent.Type

// state

export type Product = PriceSeries.Series

export const Product: Decider<Product, ProductEvent> = {
  category: "product",
  codec: EventCodec.make(ProductEvent),
  initial: PriceSeries.EMPTY,
  evolve: (series, { currency, price }, at) => PriceSeries.add(series, price, currency, at)
}

export const PriceClaims: Decider<Product, ClaimEvent> = {
  category: "priceClaims",
  codec: EventCodec.make(ClaimEvent),
  initial: PriceSeries.EMPTY,
  evolve: (series, { price }, at) => PriceSeries.add(series, price, null, at)
}

// decisions

/** Observes a price. The same price again on the same day decides nothing. */
export const observe =
  (price: string, currency: string | null, offer?: Offer) =>
  (series: Product, now: Timestamp): Decision<ProductEvent> =>
    Result.succeed(
      PriceSeries.isKnown(series, price, currency, now)
        ? []
        : [{ _tag: "PriceObserved", price, currency, ...(offer === undefined ? {} : { offer }) }]
    )

/** Notes a price that a caller claims. The same price again on the same day decides nothing. */
export const claim =
  (price: string) =>
  (series: Product, now: Timestamp): Decision<ClaimEvent> =>
    Result.succeed(PriceSeries.isKnown(series, price, null, now) ? [] : [{ _tag: "PriceClaimed", price }])
