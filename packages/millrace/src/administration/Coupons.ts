/** What operators do with coupons. Percent as numbers, times as `Date`s. */
import { CouponOperations, CouponRank, CouponStore, Coupons } from "@millrace/core"
import type { Aggregate } from "@millrace/event-sourcing"
import { Clock, Effect } from "effect"
import { fail } from "../Failure.ts"

/** A coupon as an operator sees it. */
export interface ShownCoupon {
  readonly coupon: string
  readonly domain: string
  readonly code: string
  readonly discount: string
  readonly description: string
  readonly status: CouponStore.Status
  /** Why it was rejected. */
  readonly reason: string | null
  /** The one seller whose goods it is for. */
  readonly seller: string | null
  /** Accounts beside the submitter for which it worked. */
  readonly confirmations: number
  /** From 0 to 1. */
  readonly rank: number
  readonly submittedAt: Date
  readonly expiresAt: Date | null
}

/** A shop that accounts asked for. */
export interface ShownRequest {
  readonly domain: string
  /** Accounts that asked. */
  readonly requests: number
}

/** What operators say of a shop; what is left out is said no more. */
export interface ShopDescription {
  readonly name?: string | undefined
  /** An address by https. */
  readonly affiliateUrl?: string | undefined
  /** Percent, from 0 to 100. */
  readonly cashback?: { readonly minPercent: number; readonly maxPercent: number } | undefined
}

const shownOf = (coupon: CouponStore.Coupon, now: number): ShownCoupon => ({
  coupon: coupon.couponId,
  domain: coupon.domain,
  code: coupon.code,
  discount: coupon.discountText,
  description: coupon.description,
  status: coupon.status,
  reason: coupon.reason,
  seller: coupon.shopUsername,
  confirmations: CouponStore.confirmationsOf(coupon),
  rank: Math.round(CouponRank.rankOf(coupon.reports, now) * 10_000) / 10_000,
  submittedAt: new Date(coupon.submittedAt),
  expiresAt: coupon.expiresAt === null ? null : new Date(coupon.expiresAt)
})

const shown = (coupon: CouponStore.Coupon) => Effect.map(Clock.currentTimeMillis, (now) => shownOf(coupon, now))

/** Coupons that wait for a decision and have not expired, those that others confirm first. */
export const pending = (limit: number) =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const found = yield* Coupons.use((coupons) => coupons.pending(limit))
    return found.filter((coupon) => !CouponStore.isExpired(coupon, now)).map((coupon) => shownOf(coupon, now))
  })

/** Shops that accounts asked for and that have no coupons, the most wanted first. */
export const requests = (limit: number) =>
  Effect.map(
    Coupons.use((coupons) => coupons.requested(limit)),
    (shops) => shops.map(({ domain, requests }): ShownRequest => ({ domain, requests }))
  )

/** Shows a coupon to everybody. Accepting again changes nothing. */
export const accept = (coupon: string, metadata: Aggregate.Metadata) =>
  Effect.flatMap(
    Coupons.use((coupons) => coupons.accept(coupon, metadata)),
    shown
  )

/** Shows a coupon to nobody. Rejecting again changes nothing. */
export const reject = (coupon: string, reason: string, metadata: Aggregate.Metadata) =>
  Effect.flatMap(
    Coupons.use((coupons) => coupons.reject(coupon, reason, metadata)),
    shown
  )

/** Says what a shop is called, and what it gives. */
export const describe = (
  given: string,
  { affiliateUrl = null, cashback = null, name = null }: Nullable<ShopDescription>,
  metadata: Aggregate.Metadata
) =>
  Effect.gen(function* () {
    const domain = CouponOperations.shopDomain(given)
    if (domain === undefined) return yield* fail(`${given} is not the domain of a shop, such as example.com`)
    const description = { domain, name, affiliateUrl, cashback }
    yield* Coupons.use((coupons) => coupons.describe(description, metadata))
    return description
  })

type Nullable<A> = { readonly [Field in keyof A]: A[Field] | null }
