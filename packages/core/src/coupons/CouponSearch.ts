/** The search over coupons: a document for each coupon and for each shop, derived from the streams of the shops. */
import { EventHandlers, type TextIndex, type TextProjection } from "@millrace/event-sourcing"
import { Schema } from "effect"
import { HALF_LIFE, OWN_WEIGHT } from "./CouponRank.ts"
import { type Coupon, type CouponEvent, CouponStore, type CouponStoreEvent, Description, evolveCoupon, idOf, Terms } from "./CouponStore.ts"

/** A shop in the search. */
const Shop = Schema.Struct({ ...Description, requests: Schema.Int })
export type Shop = typeof Shop.Type

const Report = Schema.Struct({
  by: Schema.String,
  worked: Schema.Boolean,
  discount: Schema.NullOr(Schema.Int),
  at: Schema.Int,
  own: Schema.Boolean
})

const StoredCoupon: Schema.Codec<Coupon, unknown> = Schema.Struct({
  ...Terms,
  expiresAt: Schema.NullOr(Schema.Int),
  by: Schema.String,
  submittedAt: Schema.Int,
  status: Schema.Literals(["pending", "accepted", "rejected"]),
  reason: Schema.NullOr(Schema.String),
  reports: Schema.Array(Report)
})

const decodeCoupon = Schema.decodeUnknownSync(StoredCoupon)
const decodeShop = Schema.decodeUnknownSync(Shop)

export const couponOf = ({ value }: TextIndex.Document): Coupon => decodeCoupon(JSON.parse(value))
export const shopOf = ({ value }: TextIndex.Document): Shop => decodeShop(JSON.parse(value))

export const isCoupon = ({ id }: TextIndex.Document): boolean => id.startsWith("cpn_")

/** The id of a shop's document, by the id of its stream. */
export const shopId = (storeId: string): string => `shop:${storeId}`

/** The keys of documents. */
export const KEYS = {
  /** Accepted coupons. */
  live: "live",
  pending: "pending",
  /** Shops with an accepted coupon, or that operators described. */
  shop: "shop",
  /** Shops that accounts asked for, and that have neither. */
  requested: "requested",
  /** Coupons of a shop. */
  of: (domain: string) => `of:${domain}`
} as const

/**
 * Orders coupons by their weight of successes. All reports decay alike, so the order of these sums is the same at every time, and the
 * logarithm of the sum at 1970 is a fixed number. Only the best of many candidates are ranked exactly.
 */
const weightOf = ({ reports }: Coupon): number => {
  const logs = reports.filter(({ worked }) => worked).map(({ at, own }) => at / HALF_LIFE + (own ? Math.log2(OWN_WEIGHT) : 0))
  if (logs.length === 0) return 0
  const most = Math.max(...logs)
  return most + Math.log2(logs.reduce((sum, log) => sum + 2 ** (log - most), 0))
}

const documentOfCoupon = (coupon: Coupon): TextIndex.Document => {
  const { code, couponId, description, discountText, domain, status } = coupon
  const ofDomain = KEYS.of(domain)
  return {
    id: couponId,
    // What nobody may find has no words, so that a search by words needs no key: one that all documents have makes it ten times slower
    text: status === "accepted" ? [code, discountText, description, domain].join(" ") : "",
    keys: status === "accepted" ? [KEYS.live, ofDomain] : status === "pending" ? [KEYS.pending] : [],
    weight: weightOf(coupon),
    value: JSON.stringify(coupon)
  }
}

const documentOfShop = (shop: Shop, isServed: boolean): TextIndex.Document => ({
  id: shopId(idOf(shop.domain)),
  text: [shop.name ?? "", shop.domain].join(" "),
  keys: isServed ? [KEYS.shop] : [KEYS.requested],
  weight: shop.requests,
  value: JSON.stringify(shop)
})

const changeShop = (documents: TextProjection.Documents, domain: string, change: (shop: Shop) => Shop, serves = false): void => {
  const id = shopId(idOf(domain))
  const before = documents.get(id)
  const isServed = serves || before?.keys.includes(KEYS.shop) === true
  const shop = before === undefined ? { domain, name: null, affiliateUrl: null, cashback: null, requests: 0 } : shopOf(before)
  documents.set(id, documentOfShop(change(shop), isServed))
}

const changeCoupon = (event: CouponEvent, { at }: EventHandlers.Origin, documents: TextProjection.Documents): void => {
  const before = documents.get(event.couponId)
  const coupon = evolveCoupon(before && couponOf(before), event, at)
  documents.set(event.couponId, documentOfCoupon(coupon))
  if (event._tag === "CouponAccepted") changeShop(documents, coupon.domain, (shop) => shop, true)
}

type Touched = ReadonlyArray<string>
type Evolves = [documents: TextProjection.Documents]

const ofStore = (_: unknown, { id }: EventHandlers.Origin): Touched => [shopId(id)]
const ofCoupon = ({ couponId }: { readonly couponId: string }, { id }: EventHandlers.Origin): Touched => [couponId, shopId(id)]

const touches = EventHandlers.of<CouponStoreEvent, [], Touched>(CouponStore, {
  CouponStoreRequested: ofStore,
  CouponStoreDescribed: ofStore,
  CouponSubmitted: ofCoupon,
  CouponAccepted: ofCoupon,
  CouponRejected: ofCoupon,
  CouponOutcomeReported: ofCoupon
})

const evolves = EventHandlers.of<CouponStoreEvent, Evolves, void>(CouponStore, {
  CouponStoreRequested: ({ domain }, _, documents) => changeShop(documents, domain, (shop) => ({ ...shop, requests: shop.requests + 1 })),
  CouponStoreDescribed: ({ _tag: _, ...described }, __, documents) =>
    changeShop(documents, described.domain, (shop) => ({ ...shop, ...described }), true),
  CouponSubmitted: changeCoupon,
  CouponAccepted: changeCoupon,
  CouponRejected: changeCoupon,
  CouponOutcomeReported: changeCoupon
})

export const definition: TextProjection.Definition = {
  name: "coupons",
  version: 2,
  categories: touches.categories,
  types: touches.types,
  touches: (event) => touches.dispatch(event) ?? [],
  evolve: (event, documents) => evolves.dispatch(event, documents)
}
