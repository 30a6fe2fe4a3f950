/** Coupons at one host and at several: searched, decided, limited, and anonymous after an erasure. */
import { EventStore, MemoryTextIndex, StateStore, TextIndex } from "@millrace/event-sourcing"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { expect } from "vitest"
import { MOST_A_DAY } from "../../src/coupons/Contributions.ts"
import { lowerBound, OWN_WEIGHT } from "../../src/coupons/CouponRank.ts"
import { Coupons, type CouponsOptions, type Submission } from "../../src/coupons/Coupons.ts"
import { MasterKey } from "../../src/vault/MasterKey.ts"
import { ofAccount, Vault } from "../../src/vault/Vault.ts"
import { logText, type Stores, stores, testing } from "../accounts/Hosts.ts"
import { MASTER, outcome } from "../vault/Vaults.ts"

const DAY = 86_400_000

const host = ({ events, states }: Stores, options: CouponsOptions = {}, texts?: TextIndex.TextIndex["Service"]) =>
  Effect.gen(function* () {
    const base = Layer.mergeAll(
      Layer.succeed(EventStore.EventStore, events),
      Layer.succeed(StateStore.StateStore, states),
      MasterKey.layer(MASTER),
      texts === undefined ? Layer.empty : Layer.succeed(TextIndex.TextIndex, texts)
    )
    const layer = Coupons.layer(options).pipe(Layer.provideMerge(Vault.layer), Layer.provide(base))
    const context = yield* Layer.build(Layer.fresh(layer))
    return yield* Effect.provideContext(Effect.all({ coupons: Coupons, vault: Vault }), context)
  })

const submission = (code: string, more: Partial<Submission> = {}): Submission => ({
  domain: "shop.example.com",
  code,
  description: "",
  discountText: "",
  expiresAt: null,
  shopUsername: null,
  minimumOrder: null,
  ...more
})

const codesOf = ({ coupons }: { readonly coupons: ReadonlyArray<{ readonly code: string }> }) => coupons.map(({ code }) => code)

/** What a search finds, once it has everything. */
const search = ({ coupons }: { readonly coupons: Coupons["Service"] }, query: Parameters<Coupons["Service"]["search"]>[0]) =>
  Effect.andThen(coupons.caughtUp, coupons.search(query))

testing(
  "a coupon is found once it is accepted, by its domain, a domain below it, and words of its shop's name",
  Effect.gen(function* () {
    const here = yield* host(yield* stores)
    const { coupon, isDuplicate } = yield* here.coupons.submit("acc_1", submission("save 20"))
    expect([coupon.code, coupon.status, isDuplicate]).toEqual(["SAVE20", "pending", false])
    expect(codesOf(yield* search(here, { domain: "shop.example.com" }))).toEqual([])
    expect((yield* here.coupons.pending()).map(({ couponId }) => couponId)).toEqual([coupon.couponId])
    yield* here.coupons.accept(coupon.couponId)
    expect(yield* here.coupons.pending()).toEqual([])
    yield* here.coupons.describe({ domain: "shop.example.com", name: "Zoë’s Shoes", affiliateUrl: null, cashback: null })
    for (const query of [
      { domain: "shop.example.com" },
      { domain: "checkout.eu.shop.example.com" },
      { store: "zoe’s" },
      { store: "Shop Example" }
    ]) {
      const found = yield* search(here, query)
      expect([found.domain, found.shop?.name, codesOf(found)]).toEqual(["shop.example.com", "Zoë’s Shoes", ["SAVE20"]])
    }
    for (const query of [{ domain: "example.com" }, { domain: "other.example.com" }, { store: "unknown" }, { store: "!" }])
      expect(codesOf(yield* search(here, query))).toEqual([])
    // What is above the domain that somebody registered belongs to others
    const foreign = yield* here.coupons.submit("acc_2", { ...submission("TAKEN"), domain: "co.uk" })
    yield* here.coupons.accept(foreign.coupon.couponId)
    expect(codesOf(yield* search(here, { domain: "co.uk" }))).toEqual(["TAKEN"])
    for (const domain of ["shop.co.uk", "www.shop.co.uk"]) expect(codesOf(yield* search(here, { domain }))).toEqual([])
    yield* here.coupons.reject(coupon.couponId, "It never worked")
    expect(codesOf(yield* search(here, { domain: "shop.example.com" }))).toEqual([])
    expect(yield* outcome(here.coupons.accept("cpn_none"))).toBe("CouponNotFound")
    expect(yield* outcome(here.coupons.accept("shop:shop.example.com"))).toBe("CouponNotFound")
  })
)

testing(
  "coupons are ranked by what accounts report, the submitter's own reports less, and are gone when they expire",
  Effect.gen(function* () {
    const here = yield* host(yield* stores, { acceptAfter: 0 })
    yield* here.coupons.submit("acc_1", submission("OWN", { worked: true, discount: 10 }))
    yield* here.coupons.submit("acc_1", submission("OTHERS"))
    yield* here.coupons.submit("acc_1", submission("SHORT", { expiresAt: DAY, worked: true }))
    for (const account of ["acc_2", "acc_3"]) {
      yield* here.coupons.submit(account, submission("others", { worked: true, discount: 15 }))
      yield* here.coupons.submit(account, submission("SHORT", { worked: true }))
    }
    yield* here.coupons.submit("acc_3", submission("others", { worked: true, discount: 20 }))
    const found = yield* search(here, { domain: "shop.example.com" })
    expect(codesOf(found)).toEqual(["SHORT", "OTHERS", "OWN"])
    expect(found.coupons.map(({ rank }) => rank)).toEqual(
      [2 + OWN_WEIGHT, 2, OWN_WEIGHT].map((successes) => lowerBound({ successes, failures: 0 }))
    )
    yield* TestClock.adjust(DAY - 1)
    expect(codesOf(yield* search(here, { domain: "shop.example.com" }))).toContain("SHORT")
    yield* TestClock.adjust(1)
    expect(codesOf(yield* search(here, { domain: "shop.example.com" }))).toEqual(["OTHERS", "OWN"])
  })
)

testing(
  "what is bought selects among all shops, and orders within one; a seller and a sum leave coupons out",
  Effect.gen(function* () {
    const here = yield* host(yield* stores, { acceptAfter: 0 })
    yield* here.coupons.submit("acc_1", submission("SHOES", { description: "20% off running shoes" }))
    yield* here.coupons.submit("acc_1", submission("ANY", { description: "On everything" }))
    yield* here.coupons.submit("acc_1", submission("BOOKS", { domain: "books.example.com", description: "Books and shoes" }))
    yield* here.coupons.submit("acc_1", submission("SELLER", { shopUsername: "Best-Seller" }))
    yield* here.coupons.submit("acc_1", submission("RICH", { minimumOrder: 100 }))
    expect(codesOf(yield* search(here, { products: ["Running shoes"] }))).toEqual(["SHOES", "BOOKS"])
    expect([...codesOf(yield* search(here, {}))].sort()).toEqual(["ANY", "BOOKS", "RICH", "SHOES"])
    // Neither a shop's name nor what is not accepted is found by words
    yield* here.coupons.describe({ domain: "named.example.com", name: "Running shoes", affiliateUrl: null, cashback: null })
    const [shoes] = (yield* search(here, { products: ["running"] })).coupons
    yield* here.coupons.reject(shoes?.couponId ?? "", "spam")
    expect(codesOf(yield* search(here, { products: ["running shoes"] }))).toEqual(["BOOKS"])
    yield* here.coupons.accept(shoes?.couponId ?? "")
    const shop = { domain: "shop.example.com" }
    expect(codesOf(yield* search(here, { ...shop, products: ["shoes"] }))[0]).toBe("SHOES")
    const sorted = (query: object) => Effect.map(search(here, { ...shop, ...query }), (found) => [...codesOf(found)].sort())
    expect(yield* sorted({})).toEqual(["ANY", "RICH", "SHOES"])
    expect(yield* sorted({ shopUsername: "best-seller" })).toEqual(["ANY", "RICH", "SELLER", "SHOES"])
    expect(yield* sorted({ total: 99.99 })).toEqual(["ANY", "SHOES"])
    expect(yield* sorted({ total: 100 })).toEqual(["ANY", "RICH", "SHOES"])
  })
)

testing(
  "an account contributes so often a day, at all hosts together",
  Effect.gen(function* () {
    const shared = yield* stores
    const [one, other] = [yield* host(shared), yield* host(shared)]
    const asks = ({ coupons }: typeof one, account: string, domain: string) =>
      outcome(Effect.as(coupons.request(account, domain), "success"))
    const all = yield* Effect.forEach(
      Array.from({ length: MOST_A_DAY + 30 }, (_, i) => i),
      (i) => asks(i % 2 === 0 ? one : other, "acc_1", `shop${i}.example.com`),
      { concurrency: 8 }
    )
    expect(all.filter((one) => one === "success")).toHaveLength(MOST_A_DAY)
    expect(all.filter((one) => one === "DailyLimitReached")).toHaveLength(30)
    expect(yield* asks(one, "acc_2", "shop.example.com")).toBe("success")
    yield* TestClock.adjust(DAY)
    expect(yield* asks(other, "acc_1", "shop.example.com")).toBe("success")
  })
)

testing(
  "of several hosts, each finds what the others wrote, also with an index that they share, or that is new",
  Effect.gen(function* () {
    const shared = yield* stores
    const texts = yield* MemoryTextIndex.make
    const first = yield* host(shared, { acceptAfter: 0 }, texts)
    const second = yield* host(shared, { acceptAfter: 0 }, texts)
    yield* first.coupons.submit("acc_1", submission("ONE"))
    yield* second.coupons.submit("acc_2", submission("TWO"))
    const third = yield* host(shared)
    for (const one of [first, second, third])
      expect([...codesOf(yield* search(one, { domain: "shop.example.com" }))].sort()).toEqual(["ONE", "TWO"])
  })
)

testing(
  "nothing leads from an erased account to what it submitted",
  Effect.gen(function* () {
    const shared = yield* stores
    const here = yield* host(shared, { acceptAfter: 0 })
    const { coupon } = yield* here.coupons.submit("acc_1", submission("SAVE20", { worked: true }))
    yield* here.coupons.request("acc_1", "wanted.example.com")
    const again = yield* (yield* host(shared)).coupons.submit("acc_1", submission("OTHER"))
    expect(again.coupon.by).toBe(coupon.by)
    expect((yield* here.coupons.submit("acc_2", submission("THIRD"))).coupon.by).not.toBe(coupon.by)
    const log = yield* logText(shared)
    expect(log).toContain(coupon.by)
    expect(log).not.toContain("acc_1")
    const entry = yield* shared.states.get("couponAuthors", "acc_1")
    const sealed = Buffer.from(entry?.value ?? []).toString()
    expect(sealed).not.toContain(coupon.by)
    expect(yield* here.vault.open(ofAccount("acc_1"), "coupon.author", sealed)).toBe(coupon.by)
    yield* here.vault.destroy(ofAccount("acc_1"))
    expect(yield* outcome(here.vault.open(ofAccount("acc_1"), "coupon.author", sealed))).toBe("SubjectDestroyed")
    expect(yield* outcome(here.coupons.submit("acc_1", submission("MORE")))).toBe("SubjectDestroyed")
    expect(codesOf(yield* search(here, { domain: "shop.example.com" }))).toContain("SAVE20")
  })
)

testing(
  "shops that accounts ask for are listed until they have coupons",
  Effect.gen(function* () {
    const here = yield* host(yield* stores)
    expect(yield* here.coupons.request("acc_1", "one.example.com")).toBe(1)
    expect(yield* here.coupons.request("acc_1", "one.example.com")).toBe(1)
    expect(yield* here.coupons.request("acc_2", "one.example.com")).toBe(2)
    yield* here.coupons.request("acc_1", "two.example.com")
    const listed = Effect.map(here.coupons.requested(), (shops) => shops.map(({ domain, requests }) => [domain, requests]))
    expect(yield* listed).toEqual([
      ["one.example.com", 2],
      ["two.example.com", 1]
    ])
    const { coupon } = yield* here.coupons.submit("acc_1", submission("A", { domain: "one.example.com" }))
    yield* here.coupons.accept(coupon.couponId)
    expect(yield* listed).toEqual([["two.example.com", 1]])
  })
)
