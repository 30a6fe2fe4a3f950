/** The operations of coupons: search them, submit one or report on it, ask for a shop. */
import { Clock, Effect, Schema } from "effect"
import { getDomain } from "tldts"
import type { Coupon } from "../coupons/CouponStore.ts"
import { Coupons, type Found, type Ranked } from "../coupons/Coupons.ts"
import { PriceObservations } from "../prices/PriceObservations.ts"
import * as PriceSeries from "../prices/PriceSeries.ts"
import { identityOf } from "../prices/ProductIdentity.ts"
import { Timestamp } from "../Timestamp.ts"
import * as Operation from "../work/Operation.ts"
import { InvalidInput, TooManySubmissions, UpstreamUnavailable } from "../work/OperationError.ts"
import { domainName } from "./Dns.ts"

const LONGEST_DOMAIN = 255
const HIGHEST_PRICE = 1_000_000_000_000
/** The most coupons of an answer. */
const MOST_SHOWN = 50
/** Seconds after which an account may have room for another pending coupon: operators decide within days. */
const RETRY_PENDING = 3_600

// input

const text = (maximum: number) => Schema.String.check(Schema.isMaxCodePoints(maximum))
/** Text that others read. */
const isPlain = Schema.makeFilter(
  (given: string) => !/[\p{Cc}\p{Cs}]/u.test(given) || "expected text without line breaks and control characters"
)
const plain = (maximum: number) => text(maximum).check(isPlain)
const code = Schema.String.check(
  Schema.isMinLength(1),
  Schema.isMaxCodePoints(64),
  isPlain,
  Schema.makeFilter((given: string) => given.trim() !== "" || "expected a code such as SAVE20")
)
const price = Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: HIGHEST_PRICE }))

/** The domain of a shop as its stream has it: without `www.`. Undefined for what is no domain of a shop, and for one of a registry (`co.uk`). */
export const shopDomain = (given: string): string | undefined => {
  const name = domainName(given, LONGEST_DOMAIN)?.replace(/^www\.(?=[^.]+\.)/u, "")
  return name?.includes(".") === true && getDomain(name) !== null ? name : undefined
}

const domainIn = (given: string): Effect.Effect<string, InvalidInput> => {
  const domain = shopDomain(given)
  return domain === undefined
    ? Effect.fail(
        new InvalidInput({ field: "domain", message: `${JSON.stringify(given)} is not the domain of a shop such as "example.com"` })
      )
    : Effect.succeed(domain)
}

const domainOfUrl = (given: string): Effect.Effect<string, InvalidInput> => {
  const url = URL.parse(given)
  const domain = url?.protocol === "http:" || url?.protocol === "https:" ? shopDomain(url.hostname) : undefined
  return domain === undefined
    ? Effect.fail(new InvalidInput({ field: "url", message: 'url is not an address in a shop such as "https://shop.example.com/p/7"' }))
    : Effect.succeed(domain)
}

interface Place {
  readonly domain?: string | undefined
  readonly url?: string | undefined
}

/** The domain of the shop that is asked for; both fields are checked. */
const askedDomain = Effect.fnUntraced(function* ({ domain, url }: Place) {
  const ofUrl = url === undefined ? undefined : yield* domainOfUrl(url)
  return domain === undefined ? ofUrl : yield* domainIn(domain)
})

const unavailable = ({ _tag: reason }: { readonly _tag: string }) =>
  new UpstreamUnavailable({ upstream: "coupons", reason, isolated: true })

// search

const FoundCoupon = Schema.Struct({
  code: Schema.String,
  description: Schema.String,
  discount_text: Schema.String,
  /** From 0 to 1: the lower bound of the share of accounts for which it works, with a confidence of 95%. Old reports count less. */
  rank: Schema.Finite,
  /** Accounts, beside the one that submitted it, for which it worked when they last tried. */
  success_count: Schema.Int,
  /** Percent that it saved the last time that somebody told; null if nobody did. */
  last_discount: Schema.NullOr(Schema.Int),
  /** Null if it does not end. */
  expires_at: Schema.NullOr(Timestamp),
  /** Who submitted it: `community`. */
  source: Schema.String,
  /** Of the shop. */
  domain: Schema.String,
  coupon_id: Schema.String
})

const CouponResult = Schema.Struct({
  /** Null where coupons of several shops were asked for, or no shop was found. */
  domain: Schema.NullOr(Schema.String),
  store_name: Schema.NullOr(Schema.String),
  /** All that can be used, also those beyond the ones shown. */
  total_coupons: Schema.Int,
  cashback: Schema.Struct({ active: Schema.Boolean, min_percent: Schema.Finite, max_percent: Schema.Finite }),
  affiliate_url: Schema.NullOr(Schema.String),
  coupons: Schema.Array(FoundCoupon)
})

const shownCoupon = ({ code, couponId, description, discountText, domain, expiresAt, rank, reports }: Ranked): typeof FoundCoupon.Type => ({
  code,
  description,
  discount_text: discountText,
  rank: Math.round(rank * 10_000) / 10_000,
  success_count: reports.filter(({ own, worked }) => worked && !own).length,
  last_discount: reports.findLast(({ discount, worked }) => worked && discount !== null)?.discount ?? null,
  expires_at: expiresAt,
  source: "community",
  domain,
  coupon_id: couponId
})

const shown = ({ coupons, domain, shop }: Found): typeof CouponResult.Type => ({
  domain: domain ?? null,
  store_name: shop?.name ?? domain ?? null,
  total_coupons: coupons.length,
  cashback: {
    active: shop?.cashback != null,
    min_percent: shop?.cashback?.minPercent ?? 0,
    max_percent: shop?.cashback?.maxPercent ?? 0
  },
  affiliate_url: shop?.affiliateUrl ?? null,
  coupons: coupons.slice(0, MOST_SHOWN).map(shownCoupon)
})

const EXAMPLE = {
  code: "SAVE20",
  description: "20% off shoes",
  discount_text: "20% off",
  rank: 0.7225,
  success_count: 10,
  last_discount: 20,
  expires_at: Date.UTC(2026, 11, 31),
  source: "community",
  domain: "shop.example.com",
  coupon_id: "cpn_0xPq6fTt1cVtUgk0mT5mJw7s2b"
}

/** Notes what a caller says that the product at a page costs, in that caller's own history. The search does not depend on it. */
const note = Effect.fnUntraced(function* (accountId: string, url: string | undefined, price: number | undefined) {
  const identity = url === undefined ? undefined : identityOf({ url })
  const claimed = price === undefined ? undefined : PriceSeries.priceOf(price)
  if (identity === undefined || claimed === undefined) return
  const noted = PriceObservations.use(({ claim }) => claim(accountId, identity, claimed))
  yield* Effect.catchCause(noted, (cause) => Effect.logWarning("A price that a caller claimed was not noted", cause))
})

export const search = Operation.make("coupons.search", {
  summary: "Search coupons",
  description:
    "The shop is that of `domain`, or of `url`, or the one whose name or domain has the words of `store`; a domain without coupons is " +
    "answered by the nearest one above it that has some. Without a shop, the coupons of all shops are searched for the words of " +
    "`product_name` and `order`; with one, coupons that mention them come first. `price` times `quantity` is the sum of the order: " +
    "coupons that need more are left out. With `url`, `price` is noted in your own price history. With `shop_username`, coupons for that " +
    `seller of a marketplace are among the answers. At most ${MOST_SHOWN} coupons are shown, the best first: by \`rank\`, then the newest. Expired coupons are gone.`,
  price: 0.5,
  route: {
    method: "GET",
    path: "/coupons",
    query: {
      /** A page of the shop. */
      url: Schema.optionalKey(text(2048)),
      /** Of one piece, in the shop's currency. */
      price: Schema.optionalKey(price),
      /** Pieces: 1 by default. */
      quantity: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1000 }))),
      product_name: Schema.optionalKey(text(500)),
      /** The seller, at a marketplace. */
      shop_username: Schema.optionalKey(text(255)),
      /** The names of other products in the order. */
      order: Schema.optionalKey(Schema.Array(text(500)).check(Schema.isMaxLength(30))),
      domain: Schema.optionalKey(text(LONGEST_DOMAIN)),
      /** Words of the shop's name. */
      store: Schema.optionalKey(text(255))
    }
  },
  success: CouponResult,
  local: true,
  check: (input) => Effect.asVoid(askedDomain(input)),
  run: Effect.fnUntraced(function* ({ order = [], price, product_name, quantity = 1, shop_username, store, ...place }, { accountId }) {
    const domain = yield* askedDomain(place)
    const query = {
      domain,
      store,
      products: [...(product_name === undefined ? [] : [product_name]), ...order],
      shopUsername: shop_username,
      total: price === undefined ? undefined : price * quantity
    }
    const found = yield* Effect.mapError(
      Coupons.use((coupons) => coupons.search(query)),
      unavailable
    )
    yield* note(accountId, place.url, price)
    return { data: shown(found) }
  }),
  example: {
    input: { domain: "shop.example.com", product_name: "Running shoes", price: 80 },
    data: {
      domain: "shop.example.com",
      store_name: "The Example Shop",
      total_coupons: 1,
      cashback: { active: false, min_percent: 0, max_percent: 0 },
      affiliate_url: null,
      coupons: [EXAMPLE]
    }
  }
})

// submissions

const contributing = <A, E extends { readonly _tag: string }>(effect: Effect.Effect<A, E, Coupons>) =>
  Effect.mapError(effect, (error: { readonly _tag: string; readonly limit?: number; readonly retryAfter?: number }) =>
    error.limit === undefined
      ? unavailable(error)
      : new TooManySubmissions({ limit: error.limit, retryAfter: error.retryAfter ?? RETRY_PENDING })
  )

export const requestStore = Operation.make("coupons.requestStore", {
  summary: "Ask for the coupons of a shop",
  description: "The operators of this host see which shops are asked for, and how often. An account counts once for each shop.",
  price: 0,
  route: { method: "POST", path: "/coupons/request-store", body: { domain: text(LONGEST_DOMAIN) } },
  success: Schema.Struct({
    domain: Schema.String,
    status: Schema.Literal("requested"),
    /** Accounts that asked for it. */
    requests: Schema.Int
  }),
  local: true,
  check: ({ domain }) => Effect.asVoid(domainIn(domain)),
  run: Effect.fnUntraced(function* (input, { accountId }) {
    const domain = yield* domainIn(input.domain)
    const requests = yield* contributing(Coupons.use((coupons) => coupons.request(accountId, domain)))
    return { data: { domain, status: "requested" as const, requests } }
  }),
  example: { input: { domain: "shop.example.com" }, data: { domain: "shop.example.com", status: "requested", requests: 3 } }
})

const percent = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 100 }))
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,3})?Z$/u
const time = Schema.String.check(Schema.makeFilter((given: string) => TIME.test(given) || "expected a time such as 2026-01-31T00:00:00Z"))

/** When a submitted coupon ends, which is in the future. */
const endOf = Effect.fnUntraced(function* (given: string | undefined) {
  if (given === undefined) return null
  const end = Date.parse(given)
  if (Number.isNaN(end) || !new Date(end).toISOString().startsWith(given.slice(0, 19)))
    return yield* new InvalidInput({ field: "expires_at", message: "expires_at is no time such as 2026-01-31T00:00:00Z" })
  if (end <= (yield* Clock.currentTimeMillis)) return yield* new InvalidInput({ field: "expires_at", message: "the time has passed" })
  return end
})

interface Outcome {
  readonly worked?: boolean | undefined
  readonly discount?: number | undefined
}

const isContrary = ({ discount, worked }: Outcome): boolean => worked === false && discount !== undefined

const submittedOf = ({ code, couponId, description, discountText, domain, expiresAt, status }: Coupon, isDuplicate: boolean) => ({
  coupon_id: couponId,
  domain,
  code,
  description,
  discount_text: discountText,
  expires_at: expiresAt,
  status,
  duplicate: isDuplicate
})

export const submit = Operation.make("coupons.submit", {
  summary: "Submit a coupon, or report whether one worked",
  description:
    "A new coupon is `pending` until an operator, or the policy of this host, accepts or rejects it. Codes are compared without spaces and in " +
    "upper case: one that is there already is answered as it is, with `duplicate`, and what is said of it is not changed. With `worked`, or " +
    "with `discount` where it worked, the account reports what happened when it tried the coupon; its newest report counts, and that of the " +
    "account that submitted the coupon counts a quarter. Who submits is shown to nobody.",
  price: 0,
  route: {
    method: "POST",
    path: "/coupons/submit",
    body: {
      domain: text(LONGEST_DOMAIN),
      code,
      description: Schema.optionalKey(plain(500)),
      /** Such as `20% off`. */
      discount_text: Schema.optionalKey(plain(100)),
      /** When it ends. Never, when left out. */
      expires_at: Schema.optionalKey(time),
      /** At a marketplace, the one seller whose goods it is for. */
      shop_username: Schema.optionalKey(plain(255)),
      /** The least sum of an order, in the shop's currency. */
      minimum_order: Schema.optionalKey(price),
      /** Whether it worked for this account. */
      worked: Schema.optionalKey(Schema.Boolean),
      /** Percent that it saved. */
      discount: Schema.optionalKey(percent)
    }
  },
  success: Schema.Struct({
    coupon_id: Schema.String,
    domain: Schema.String,
    code: Schema.String,
    description: Schema.String,
    discount_text: Schema.String,
    expires_at: Schema.NullOr(Timestamp),
    status: Schema.Literals(["pending", "accepted", "rejected"]),
    /** Whether the coupon was there before. */
    duplicate: Schema.Boolean
  }),
  local: true,
  check: Effect.fnUntraced(function* ({ domain, expires_at, ...outcome }) {
    yield* domainIn(domain)
    yield* endOf(expires_at)
    if (isContrary(outcome)) return yield* new InvalidInput({ field: "discount", message: "a coupon that did not work saved nothing" })
  }),
  run: Effect.fnUntraced(function* (input, { accountId }) {
    const { code, description = "", discount, discount_text = "", minimum_order, shop_username } = input
    const submission = {
      domain: yield* domainIn(input.domain),
      code,
      description: description.trim(),
      discountText: discount_text.trim(),
      expiresAt: yield* endOf(input.expires_at),
      shopUsername: shop_username?.trim() || null,
      minimumOrder: minimum_order ?? null,
      worked: input.worked ?? (discount === undefined ? undefined : true),
      discount
    }
    const { coupon, isDuplicate } = yield* contributing(Coupons.use((coupons) => coupons.submit(accountId, submission)))
    return { data: submittedOf(coupon, isDuplicate) }
  }),
  example: {
    input: {
      domain: "shop.example.com",
      code: "SAVE20",
      description: "20% off shoes",
      discount_text: "20% off",
      worked: true,
      discount: 20
    },
    data: {
      coupon_id: EXAMPLE.coupon_id,
      domain: "shop.example.com",
      code: "SAVE20",
      description: "20% off shoes",
      discount_text: "20% off",
      expires_at: null,
      status: "pending",
      duplicate: false
    }
  }
})
