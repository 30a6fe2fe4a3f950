import type { Decide } from "@millrace/event-sourcing"
import { Result } from "effect"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { given } from "../../../testing/src/GivenWhenThen.ts"
import {
  accept,
  CouponNotFound,
  CouponStore,
  type CouponStoreEvent,
  canonicalCode,
  confirmationsOf,
  couponIdOf,
  describe as describeShop,
  idOf,
  MOST_PENDING,
  reject,
  request,
  type Submission,
  submit,
  TooManyCoupons
} from "../../src/coupons/CouponStore.ts"
import { check } from "../vault/Property.ts"

const DOMAIN = "shop.example.com"
const DAY = 86_400_000

const submission = (code: string, by: string, more: Partial<Submission> = {}): Submission => ({
  couponId: couponIdOf(DOMAIN, code, null),
  domain: DOMAIN,
  code: canonicalCode(code),
  description: "20% off shoes",
  discountText: "20% off",
  expiresAt: null,
  shopUsername: null,
  minimumOrder: null,
  by,
  worked: undefined,
  discount: null,
  ...more
})

const couponId = couponIdOf(DOMAIN, "SAVE20", null)
const submitted = (by = "ada", more: Partial<Submission> = {}, code = "SAVE20"): CouponStoreEvent => {
  const { discount: _, worked: __, ...terms } = submission(code, by, more)
  return { _tag: "CouponSubmitted", ...terms }
}
const outcome = (by: string, worked = true, discount: number | null = null): CouponStoreEvent => ({
  _tag: "CouponOutcomeReported",
  couponId,
  by,
  worked,
  discount
})
const accepted: CouponStoreEvent = { _tag: "CouponAccepted", couponId }
const rejected: CouponStoreEvent = { _tag: "CouponRejected", couponId, reason: "spam" }

describe("a submission", () => {
  test("is pending", () =>
    given(CouponStore, [])
      .when(submit(submission("save 20", "ada"), null))
      .then([submitted()]))

  test("of a code that is there, in any writing, is the same coupon", () => {
    for (const code of ["SAVE20", "save20", " Save 20 ", "ＳＡＶＥ２０"])
      given(CouponStore, [submitted()])
        .when(submit(submission(code, "bob"), null))
        .then([])
    expect(couponIdOf(DOMAIN, "SAVE20", "seller")).not.toBe(couponId)
    expect(couponIdOf(DOMAIN, "SAVE20", "Seller")).toBe(couponIdOf(DOMAIN, "save20", "seller"))
    expect(couponIdOf("example.com", "SAVE20", null)).not.toBe(couponId)
  })

  test("with an outcome reports it once, until the account says something else", () => {
    const worked = submission("SAVE20", "ada", { worked: true, discount: 20 })
    given(CouponStore, [])
      .when(submit(worked, null))
      .then([submitted(), outcome("ada", true, 20)])
    given(CouponStore, [submitted(), outcome("ada", true, 20)])
      .when(submit(worked, null))
      .then([])
    const failed = submission("SAVE20", "ada", { worked: false })
    given(CouponStore, [submitted(), outcome("ada", true, 20)])
      .when(submit(failed, null))
      .then([outcome("ada", false)])
  })

  test("is accepted by a policy after so many confirmations of others", () => {
    const confirm = (by: string) => submit(submission("SAVE20", by, { worked: true }), 2)
    given(CouponStore, [])
      .when(submit(submission("SAVE20", "ada"), 0))
      .then([submitted(), accepted])
    given(CouponStore, [submitted(), outcome("bob")])
      .when(confirm("ada"))
      .then([outcome("ada")])
    given(CouponStore, [submitted(), outcome("bob")])
      .when(confirm("bob"))
      .then([])
    given(CouponStore, [submitted(), outcome("bob")])
      .when(confirm("eve"))
      .then([outcome("eve"), accepted])
    // What an operator rejected, no policy accepts
    given(CouponStore, [submitted(), outcome("bob"), rejected])
      .when(confirm("eve"))
      .then([outcome("eve")])
  })

  test("of an account is refused while too many of its are pending, and another's is not", () => {
    const pending = Array.from({ length: MOST_PENDING }, (_, i) => submitted("ada", {}, `CODE${i}`))
    given(CouponStore, pending)
      .when(submit(submission("MORE", "ada"), null))
      .thenRefused(new TooManyCoupons({ limit: MOST_PENDING }))
    given(CouponStore, pending)
      .when(submit(submission("CODE3", "ada", { worked: true }), null))
      .then([{ ...outcome("ada"), couponId: couponIdOf(DOMAIN, "CODE3", null) } as CouponStoreEvent])
    given(CouponStore, pending)
      .when(submit(submission("SAVE20", "bob"), null))
      .then([submitted("bob")])
  })
})

describe("an expired coupon", () => {
  const old = submitted("ada", { expiresAt: DAY })

  test("is promised again by a submission, as pending, and keeps its reports", () => {
    given(CouponStore, [old, outcome("bob"), accepted])
      .when(submit(submission("SAVE20", "eve", { expiresAt: 3 * DAY }), null), 2 * DAY)
      .then([submitted("eve", { expiresAt: 3 * DAY })])
      .thenState(({ coupons }) => {
        const [[, coupon] = []] = [...coupons]
        expect(coupon).toMatchObject({ status: "pending", by: "eve" })
        expect(coupon === undefined ? 0 : confirmationsOf(coupon)).toBe(1)
      })
  })

  test("is the same coupon a moment before its end", () => {
    given(CouponStore, [old])
      .when(submit(submission("SAVE20", "eve", { expiresAt: 3 * DAY }), null), DAY - 1)
      .then([])
  })
})

describe("a decision", () => {
  test("is taken once, and can be changed", () => {
    given(CouponStore, [submitted()]).when(accept(couponId)).then([accepted])
    given(CouponStore, [submitted(), accepted]).when(accept(couponId)).then([])
    given(CouponStore, [submitted(), accepted]).when(reject(couponId, "spam")).then([rejected])
    given(CouponStore, [submitted(), rejected]).when(reject(couponId, "other")).then([])
    given(CouponStore, [submitted(), rejected]).when(accept(couponId)).then([accepted])
    given(CouponStore, [submitted()])
      .when(accept("cpn_none"))
      .thenRefused(new CouponNotFound({ couponId: "cpn_none" }))
  })
})

describe("a shop", () => {
  test("is asked for once by each account", () => {
    const requested = (by: string): CouponStoreEvent => ({ _tag: "CouponStoreRequested", domain: DOMAIN, by })
    given(CouponStore, [])
      .when(request(DOMAIN, "ada"))
      .then([requested("ada")])
    given(CouponStore, [requested("ada")])
      .when(request(DOMAIN, "ada"))
      .then([])
    given(CouponStore, [requested("ada")])
      .when(request(DOMAIN, "bob"))
      .then([requested("bob")])
  })

  test("is described anew only if something changed", () => {
    const said = { domain: DOMAIN, name: "The Shop", affiliateUrl: null, cashback: { minPercent: 1, maxPercent: 2.5 } }
    given(CouponStore, [])
      .when(describeShop(said))
      .then([{ _tag: "CouponStoreDescribed", ...said }])
    given(CouponStore, [{ _tag: "CouponStoreDescribed", ...said }])
      .when(describeShop(said))
      .then([])
  })

  test("has a stream for a domain of any length", () => {
    for (const domain of ["example.com", `${"a".repeat(196)}.com`]) expect(idOf(domain)).toBe(domain)
    const [one, other] = ["a", "b"].map((letter) => idOf([...Array.from({ length: 4 }, () => letter.repeat(60)), "example.com"].join(".")))
    expect(one?.length).toBe(44)
    expect(one).not.toBe(other)
  })
})

describe("any commands", () => {
  const author = fc.constantFrom("ada", "bob", "eve")
  const code = fc.constantFrom("A", "B", "a ", "C")
  const command = fc.oneof(
    fc.record({
      kind: fc.constant("submit" as const),
      by: author,
      code,
      worked: fc.option(fc.boolean(), { nil: undefined }),
      days: fc.option(fc.integer({ min: 1, max: 4 })),
      wait: fc.integer({ min: 0, max: 2 })
    }),
    fc.record({ kind: fc.constantFrom("accept" as const, "reject" as const), code }),
    fc.record({ kind: fc.constant("request" as const), by: author })
  )

  test("are events that fold, each decided once, and one report of each account counts", () => {
    check(
      fc.property(fc.array(command, { maxLength: 30 }), fc.constantFrom(null, 0, 1, 2), (commands, acceptAfter) => {
        let [state, now] = [CouponStore.initial, 0]
        const reports = new Map<string, Map<string, boolean>>()
        for (const one of commands) {
          if (one.kind === "submit") now += one.wait * DAY
          const decide: Decide<CouponStore, CouponStoreEvent, TooManyCoupons | CouponNotFound> =
            one.kind === "submit"
              ? submit(
                  submission(one.code, one.by, { worked: one.worked, expiresAt: one.days === null ? null : now + one.days * DAY }),
                  acceptAfter
                )
              : one.kind === "request"
                ? request(DOMAIN, one.by)
                : one.kind === "accept"
                  ? accept(couponIdOf(DOMAIN, one.code, null))
                  : reject(couponIdOf(DOMAIN, one.code, null), "spam")
          const decision = decide(state, now)
          if (Result.isFailure(decision)) continue
          for (const event of decision.success) {
            state = CouponStore.evolve(state, event, now)
            if (event._tag === "CouponOutcomeReported")
              reports.set(event.couponId, (reports.get(event.couponId) ?? new Map()).set(event.by, event.worked))
          }
          // The same command again decides nothing
          const again = decide(state, now)
          if (Result.isSuccess(again)) expect(again.success).toEqual([])
        }
        for (const [id, coupon] of state.coupons)
          expect(new Map(coupon.reports.map(({ by, worked }) => [by, worked]))).toEqual(reports.get(id) ?? new Map())
      }),
      300
    )
  })
})
