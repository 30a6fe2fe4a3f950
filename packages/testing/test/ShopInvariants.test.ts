/** The invariants of coupons and prices: they pass correct logs, and name the rule that a wrong log breaks. */
import { CouponStore, Product } from "@millrace/core"
import { describe, expect, test } from "vitest"
import { type CheckedEvent, invariants, type Recorded } from "../src/Invariants.ts"

const on =
  (stream: string) =>
  (event: CheckedEvent, at = 0): Recorded => ({ stream, event, at })

const broken = (events: ReadonlyArray<Recorded>) => [...new Set(invariants(events).map(({ rule }) => rule))]

type Cases = ReadonlyArray<readonly [what: string, rule: string, events: ReadonlyArray<Recorded>]>

describe("the invariants of coupons", () => {
  const shop = on("couponStore-shop.example.com")
  const domain = "shop.example.com"
  const submitted = (
    code: string,
    { at = 0, by = "ada", ...more }: { readonly at?: number; readonly by?: string; readonly [field: string]: unknown } = {}
  ) => {
    const couponId = CouponStore.couponIdOf(domain, code, null)
    const terms = { couponId, domain, code, description: "", discountText: "", expiresAt: null, shopUsername: null, minimumOrder: null }
    return shop({ _tag: "CouponSubmitted", ...terms, by, ...more }, at)
  }
  const couponId = CouponStore.couponIdOf(domain, "SAVE20", null)
  const accepted = shop({ _tag: "CouponAccepted", couponId }, 1)
  const rejected = shop({ _tag: "CouponRejected", couponId, reason: "" }, 1)
  const reported = (at: number, worked = true) => shop({ _tag: "CouponOutcomeReported", couponId, by: "bob", worked, discount: null }, at)
  const requested = (by: string) => shop({ _tag: "CouponStoreRequested", domain, by })
  const coupon = submitted("SAVE20")
  const DAY = 86_400_000

  test("pass a coupon that is reported on, decided twice, and submitted again after its end", () => {
    const short = submitted("SAVE20", { expiresAt: 5 })
    expect(broken([requested("ada"), requested("bob"), short, reported(1), accepted, rejected, submitted("SAVE20", { at: 5 })])).toEqual([])
    expect(broken([coupon, reported(1), reported(2, false), reported(3), reported(3 + DAY)])).toEqual([])
    expect(broken(Array.from({ length: 20 }, (_, i) => submitted(`CODE${i}`, { by: `author ${i % 2}` })))).toEqual([])
    expect(broken([shop({ _tag: "CouponStoreDescribed", domain, name: null, affiliateUrl: null, cashback: null })])).toEqual([])
  })

  const COUPON = "a coupon is of its shop and named after its code, is submitted once until it expires, and each decision changes it"
  const REPORT = "a report is of a coupon that has not expired, and says what its account did not say on that day"
  const LIMIT = "an account has ten pending coupons at a shop, and a shop two thousand, at most"
  const CASES: Cases = [
    ["a coupon in the stream of another shop", COUPON, [submitted("SAVE20", { domain: "other.example.com" })]],
    ["a coupon that is named after another code", COUPON, [submitted("SAVE20", { couponId: "cpn_other" })]],
    ["a code in lower case", COUPON, [submitted("save20")]],
    ["a coupon that is submitted twice", COUPON, [coupon, coupon]],
    ["a coupon that is submitted again before its end", COUPON, [submitted("SAVE20", { expiresAt: 5 }), submitted("SAVE20", { at: 4 })]],
    ["a decision on nothing", COUPON, [accepted]],
    ["a coupon that is accepted twice", COUPON, [coupon, accepted, accepted]],
    ["a coupon that is rejected twice", COUPON, [coupon, rejected, rejected]],
    ["a report on nothing", COUPON, [reported(1)]],
    ["a report that is repeated on the same day", REPORT, [coupon, reported(1), reported(DAY)]],
    ["a report on a coupon that is over", REPORT, [submitted("SAVE20", { expiresAt: 5 }), reported(5)]],
    ["an eleventh pending coupon", LIMIT, Array.from({ length: 11 }, (_, i) => submitted(`CODE${i}`))],
    ["too many coupons of a shop", LIMIT, Array.from({ length: 2_001 }, (_, i) => submitted(`CODE${i}`, { by: `author ${i}` }))],
    ["a shop that is asked for twice", "an account asks for a shop once", [requested("ada"), requested("ada")]],
    [
      "a request in the stream of another shop",
      COUPON,
      [on("couponStore-other.example.com")({ _tag: "CouponStoreRequested", domain, by: "a" })]
    ]
  ]
  test.each(CASES)("report %s", (_, rule, events) => expect(broken(events)).toEqual([rule]))
})

describe("the invariants of prices", () => {
  const product = on(`product-${Product.idOf("mug")}`)
  const claims = on(`priceClaims-${Product.idOf("claim")}`)
  const observed = (price: string, at = 0, more: object = {}) => product({ _tag: "PriceObserved", price, currency: "EUR", ...more }, at)
  const offered = (offer: object) => observed("1", 0, { offer: { title: "Mug", url: "https://shop.example.com/products/mug", ...offer } })
  const claimed = (price: string, at = 0) => claims({ _tag: "PriceClaimed", price }, at)
  const DAY = 86_400_000

  test("pass prices that change, come again on another day or in another currency, and offers", () => {
    expect(broken([observed("1"), observed("2", 1), observed("1", 2), observed("1", DAY), claimed("1"), claimed("1", DAY)])).toEqual([])
    expect(broken([observed("1"), observed("1", 1, { currency: null }), observed("999999999999999.999999", 2)])).toEqual([])
    expect(broken([offered({})])).toEqual([])
    expect(broken([offered({ variant: "Blue", url: "http://shop.example.com/" })])).toEqual([])
  })

  const PRICE = "a price is an exact decimal, and the same one is noted once a day"
  const OFFER = "an offer has a title of one line, and an address of the web"
  const CASES: Cases = [
    ["the same price twice on a day", PRICE, [observed("1"), observed("1", DAY - 1)]],
    ["the same price with other zeros", PRICE, [observed("01.50"), observed("1.5", 1)]],
    ["the same claim twice on a day", PRICE, [claimed("1"), claimed("1.0", 1)]],
    ["a price below zero", PRICE, [observed("-1")]],
    ["a price that is no decimal", PRICE, [claimed("1e3")]],
    ["a stream that is not named by a hash", PRICE, [on("product-mug")({ _tag: "PriceObserved", price: "1", currency: null })]],
    ["an offer without a title", OFFER, [offered({ title: "" })]],
    ["an offer of two lines", OFFER, [offered({ title: "Mug\nCup" })]],
    ["an offer with blanks around its variant", OFFER, [offered({ variant: " Blue" })]],
    ["an offer at no address", OFFER, [offered({ url: "mug" })]],
    ["an offer that runs a script", OFFER, [offered({ url: "javascript:alert(1)" })]],
    ["an offer with credentials", OFFER, [offered({ url: "https://user:password@shop.example.com/" })]]
  ]
  test.each(CASES)("report %s", (_, rule, events) => expect(broken(events)).toEqual([rule]))
})
