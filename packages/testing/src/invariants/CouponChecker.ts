/** Checks the events of shops and their coupons, with bookkeeping of its own. */
import { CouponStore } from "@millrace/core"
import type { Report } from "./Rules.ts"

type EventOf<Tag extends CouponStore.CouponStoreEvent["_tag"]> = Extract<CouponStore.CouponStoreEvent, { readonly _tag: Tag }>

interface Entry {
  readonly by: string
  readonly expiresAt: number | null
  status: "CouponSubmitted" | "CouponAccepted" | "CouponRejected"
  /** The newest report of each account. */
  readonly reports: Map<string, { readonly said: string; readonly at: number }>
}

interface Shop {
  readonly requestedBy: Set<string>
  readonly coupons: Map<string, Entry>
}

const DAY = 86_400_000

const isOver = ({ expiresAt }: Entry, at: number): boolean => expiresAt !== null && expiresAt <= at

export class CouponChecker {
  readonly #shops = new Map<string, Shop>()
  readonly #report: Report

  constructor(report: Report) {
    this.#report = report
  }

  enter(storeId: string, event: CouponStore.CouponStoreEvent, at: number): void {
    const shop = this.#shops.get(storeId) ?? { requestedBy: new Set(), coupons: new Map() }
    this.#shops.set(storeId, shop)
    if ("domain" in event && CouponStore.idOf(event.domain) !== storeId) this.#report("coupon", `it is of ${event.domain}`)
    switch (event._tag) {
      case "CouponStoreDescribed":
        return
      case "CouponStoreRequested":
        if (shop.requestedBy.has(event.by)) this.#report("shopRequest", `${event.by} asked before`)
        shop.requestedBy.add(event.by)
        return
      case "CouponSubmitted":
        return this.#submitted(shop, event, at)
    }
    const coupon = shop.coupons.get(event.couponId)
    if (coupon === undefined) return this.#report("coupon", `${event.couponId} was never submitted`)
    if (event._tag === "CouponOutcomeReported") return this.#reported(coupon, event, at)
    if (coupon.status === event._tag) this.#report("coupon", `it was ${event._tag} before`)
    coupon.status = event._tag
  }

  #submitted({ coupons }: Shop, { by, code, couponId, domain, expiresAt, shopUsername }: EventOf<"CouponSubmitted">, at: number): void {
    const before = coupons.get(couponId)
    if (before !== undefined && !isOver(before, at)) this.#report("coupon", `${couponId} was submitted before`)
    if (couponId !== CouponStore.couponIdOf(domain, code, shopUsername)) this.#report("coupon", `${couponId} is not the id of ${code}`)
    if (/[\s\p{Ll}]/u.test(code)) this.#report("coupon", `the code ${JSON.stringify(code)} is not in its canonical form`)
    const others = [...coupons.values()].filter((other) => !isOver(other, at))
    const pending = others.filter((other) => other.by === by && other.status === "CouponSubmitted")
    if (pending.length >= CouponStore.MOST_PENDING) this.#report("couponLimit", `${pending.length} coupons of ${by} are pending`)
    if (others.length >= CouponStore.MOST_COUPONS) this.#report("couponLimit", `the shop has ${others.length} coupons`)
    coupons.set(couponId, { by, expiresAt, status: "CouponSubmitted", reports: before?.reports ?? new Map() })
  }

  #reported(coupon: Entry, { by, discount, worked }: EventOf<"CouponOutcomeReported">, at: number): void {
    const said = JSON.stringify([worked, discount])
    const before = coupon.reports.get(by)
    if (isOver(coupon, at)) this.#report("couponReport", `it ended at ${coupon.expiresAt}`)
    if (before?.said === said && at - before.at < DAY) this.#report("couponReport", `${by} said so at ${before.at}`)
    coupon.reports.set(by, { said, at })
  }
}
