/** The replays of shops with their coupons and of prices: what their deciders would never decide, though it can be folded. */
import { CouponStore, PriceSeries, type Product } from "@millrace/core"
import { type Decider, StreamName } from "@millrace/event-sourcing"
import { noAmount } from "./Means.ts"
import { iso, type Replay, type ReportProblem } from "./Report.ts"
import type { RuleName } from "./rules/Catalog.ts"

const WRONG_SHOP = noAmount("a coupon is shown that nobody can use there")
const ASKED_TWICE = noAmount("a shop seems to be wanted by more accounts than it is")
const NOTHING_NEW = noAmount("the history of the product is the same without it")

type Finding = readonly [rule: RuleName, detail: string, stake: ReturnType<typeof noAmount>]

/** Whether a coupon, or what is said of a shop, is in the stream of that shop; and whether a coupon is named after its code. */
const ofShop = (storeId: string, event: CouponStore.CouponStoreEvent): Finding | undefined => {
  if ("domain" in event && CouponStore.idOf(event.domain) !== storeId)
    return ["coupon-is-of-its-shop", `it is of ${event.domain}`, WRONG_SHOP]
  if (event._tag !== "CouponSubmitted") return undefined
  const { code, couponId, domain, shopUsername } = event
  const isNamed = couponId === CouponStore.couponIdOf(domain, code, shopUsername) && code === CouponStore.canonicalCode(code)
  return isNamed ? undefined : ["coupon-is-of-its-shop", `${couponId} is not the id of its code`, WRONG_SHOP]
}

const askedBefore = ({ requestedBy }: CouponStore.CouponStore, event: CouponStore.CouponStoreEvent): Finding | undefined =>
  event._tag === "CouponStoreRequested" && requestedBy.includes(event.by)
    ? ["shop-is-requested-once", `the author ${event.by} asked before`, ASKED_TWICE]
    : undefined

export const beginCoupons = (stream: StreamName.StreamName, report: ReportProblem): Replay => {
  const { codec, evolve, initial } = CouponStore.CouponStore
  const storeId = StreamName.id(stream)
  let store = initial
  return (type, data, at) => {
    const event = codec.decode(type, data)
    const found = ofShop(storeId, event) ?? askedBefore(store, event)
    if (found !== undefined) report(found[0], found[1], () => found[2])
    store = evolve(store, event, at)
  }
}

type PriceEvent = Product.ProductEvent | Product.ClaimEvent

/** The prices that this host read, or that a caller claimed. */
export const beginPrices =
  <Event extends PriceEvent>({ codec, evolve, initial }: Decider<Product.Product, Event>) =>
  (_: StreamName.StreamName, report: ReportProblem): Replay => {
    let series = initial
    return (type, data, at) => {
      const event = codec.decode(type, data)
      if (PriceSeries.isKnown(series, event.price, event._tag === "PriceObserved" ? event.currency : null, at))
        report(
          "price-is-noted-once-a-day" satisfies RuleName,
          `${event.price} was noted at ${iso(series.last?.at ?? at)}`,
          () => NOTHING_NEW
        )
      series = evolve(series, event, at)
    }
  }
