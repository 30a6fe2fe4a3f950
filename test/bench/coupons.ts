/** Searches among 200,000 coupons of 10,000 shops, over the index on SQLite, and how long the index takes to be derived from the log. */
import { join } from "node:path"
import { CouponStore, Coupons, MasterKey, Vault } from "@millrace/core"
import { Aggregate, MemoryEventStore, MemoryStateStore } from "@millrace/event-sourcing"
import { SqliteTextIndex } from "@millrace/event-store-sqlite"
import { Effect, Layer } from "effect"
import * as SeededRandom from "../../packages/testing/src/SeededRandom.ts"
import { median, withFolder } from "./measure.ts"

const SHOPS = 10_000
const COUPONS_OF_SHOP = 20
const SEARCHES = 2_000

/** Few words are in many coupons and many in few, as in real texts. */
const COMMON = ["off", "save", "free", "shipping", "order", "all", "new", "your", "sale", "code"]
const THINGS = Array.from({ length: 4_000 }, (_, i) => `thing${i}`)

const domainOf = (shop: number) => `shop${shop}.example.com`

/** The words of a coupon, by its number. */
const textOf = (random: () => number): string => {
  const common = Array.from({ length: 4 }, () => COMMON[Math.floor(random() ** 2 * COMMON.length)])
  const things = Array.from({ length: 3 }, () => THINGS[Math.floor(random() ** 2 * THINGS.length)])
  return [...common, ...things].join(" ")
}

/** Each shop's coupons are accepted at once; some are confirmed by other accounts. */
const fill = (random: () => number) =>
  Effect.gen(function* () {
    const shops = yield* Aggregate.make(CouponStore.CouponStore, { idleAfter: "1 hour" })
    const submit = (shop: number, coupon: number, by: string) => {
      const [domain, code] = [domainOf(shop), `CODE${coupon}`]
      const terms = {
        couponId: CouponStore.couponIdOf(domain, code, null),
        domain,
        code,
        shopUsername: null,
        minimumOrder: null,
        expiresAt: null
      }
      const said = { description: textOf(random), discountText: `${coupon}% off`, by, worked: random() < 0.7, discount: coupon }
      return shops.execute(CouponStore.idOf(domain), CouponStore.submit({ ...terms, ...said }, 0))
    }
    yield* Effect.forEach(
      Array.from({ length: SHOPS }, (_, shop) => shop),
      (shop) =>
        Effect.gen(function* () {
          for (let coupon = 0; coupon < COUPONS_OF_SHOP; coupon++) {
            yield* submit(shop, coupon, `author ${coupon % 7}`)
            if (random() < 0.3) yield* submit(shop, coupon, "another")
          }
        }),
      { concurrency: 64, discard: true }
    )
  })

const timed = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    const began = performance.now()
    return Effect.map(effect, () => performance.now() - began)
  })

const percentile = (values: ReadonlyArray<number>, share: number): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length * share)] ?? Number.NaN

const rounded = (millis: number): number => Math.round(millis * 100) / 100

export const run = () =>
  withFolder((folder) => {
    const stores = Layer.mergeAll(MemoryEventStore.layer, MemoryStateStore.layer, Layer.orDie(MasterKey.layer("1f".repeat(32))))
    const { next: random } = SeededRandom.make(1)
    const pick = <A>(all: ReadonlyArray<A>): A | undefined => all[Math.floor(random() * all.length)]
    const shop = () => domainOf(Math.floor(random() * SHOPS))
    const queries = {
      "by domain": () => ({ domain: shop() }),
      "by domain and product": () => ({ domain: shop(), products: [textOf(random)] }),
      "by a word of the shop's name": () => ({ store: `shop${Math.floor(random() * SHOPS)}` }),
      "by product, in all shops": () => ({ products: [`${pick(THINGS)} ${pick(THINGS)}`] })
    }
    return Effect.gen(function* () {
      yield* Effect.scoped(fill(random))
      const services = Coupons.layer().pipe(
        Layer.provide(Vault.Vault.layer),
        Layer.provide(SqliteTextIndex.layer({ filename: join(folder, "search.db") }))
      )
      const coupons = yield* Layer.build(services)
      return yield* Effect.gen(function* () {
        const { caughtUp, search, searchStatus } = yield* Coupons
        const began = performance.now()
        while (!(yield* searchStatus).caughtUp) yield* Effect.sleep(50)
        yield* caughtUp
        const derived = performance.now() - began
        const rows = []
        for (const [kind, query] of Object.entries(queries)) {
          const times: Array<number> = []
          const before = process.cpuUsage()
          for (let i = 0; i < SEARCHES; i++) times.push(yield* timed(search(query())))
          const { system, user } = process.cpuUsage(before)
          rows.push({
            search: kind,
            "median, ms": rounded(median(times)),
            "99%, ms": rounded(percentile(times, 0.99)),
            "processor each, ms": rounded((system + user) / 1_000 / SEARCHES)
          })
        }
        return [...rows, { search: `${SHOPS * COUPONS_OF_SHOP} coupons derived from the log`, "all, s": Math.round(derived / 1_000) }]
      }).pipe(Effect.provideContext(coupons))
    }).pipe(Effect.scoped, Effect.provide(stores), Effect.runPromise)
  })
