/** The search over offers: against a plain oracle, at several hosts, and what is no part of it. */
import { EventStore, MemoryTextIndex, StateStore, TextIndex } from "@millrace/event-sourcing"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { expect, test } from "vitest"
import { type Found, Offers } from "../../src/prices/Offers.ts"
import { type Observation, PriceObservations } from "../../src/prices/PriceObservations.ts"
import { identityOf } from "../../src/prices/ProductIdentity.ts"
import { similarity } from "../../src/prices/TitleSimilarity.ts"
import { MasterKey } from "../../src/vault/MasterKey.ts"
import { Vault } from "../../src/vault/Vault.ts"
import { type Stores, stores, testing } from "../accounts/Hosts.ts"
import { MASTER } from "../vault/Vaults.ts"

const DAY = 86_400_000

/** Opens a process; its index is its own unless one is given. */
const host = ({ events, states }: Stores, texts?: TextIndex.TextIndex["Service"]) =>
  Effect.gen(function* () {
    const base = Layer.mergeAll(
      Layer.succeed(EventStore.EventStore, events),
      Layer.succeed(StateStore.StateStore, states),
      MasterKey.layer(MASTER),
      texts === undefined ? Layer.empty : Layer.succeed(TextIndex.TextIndex, texts)
    )
    const layer = Layer.mergeAll(PriceObservations.layer, Offers.layer).pipe(Layer.provide(Vault.layer), Layer.provide(base))
    const context = yield* Layer.build(Layer.fresh(layer))
    return yield* Effect.provideContext(Effect.all({ prices: PriceObservations, offers: Offers }), context)
  })
type Host = Effect.Success<ReturnType<typeof host>>

const pageOf = (product: string): string => `https://shop.example.com/products/${product}`

const observation = (product: string, title: string, price: string, variant?: string): Observation => ({
  names: variant === undefined ? [{ url: pageOf(product) }] : [{ variant_id: variant, url: pageOf(product) }],
  ...{ price, currency: "EUR" },
  offer: { title, url: pageOf(product), ...(variant === undefined ? {} : { variant }) }
})

/** What a search finds, once it has everything. */
const search = ({ offers }: Host, name: string, limit = 20) => Effect.andThen(offers.caughtUp, offers.search(name, limit))
const shown = (found: ReadonlyArray<Found>) => found.map(({ price, title }) => `${title}: ${price}`)

testing(
  "an offer is found by the words of its name at the newest price, wherever it was read, and again by a host that lost its index",
  Effect.gen(function* () {
    const log = yield* stores
    const shared = yield* MemoryTextIndex.make
    const [one, two] = [yield* host(log, shared), yield* host(log, shared)]
    yield* one.prices.record([observation("mug", "Stoneware Mug", "24.95"), observation("bowl", "Stoneware bowl", "12")])
    yield* TestClock.adjust("1 day")
    yield* two.prices.record([observation("mug", "Stoneware Múg", "19.90")])
    for (const each of [one, two, yield* host(log)])
      expect(yield* search(each, "MUG, stoneware")).toEqual([
        {
          ...{ title: "Stoneware Múg", shop: "shop.example.com", url: pageOf("mug"), price: "19.90", currency: "EUR", observedAt: DAY },
          similarity: 1
        },
        {
          ...{ title: "Stoneware bowl", shop: "shop.example.com", url: pageOf("bowl"), price: "12", currency: "EUR", observedAt: 0 },
          similarity: 0.5
        }
      ])
    expect(shown(yield* search(one, "stoneware", 1))).toHaveLength(1)
    expect(yield* search(one, "spoon")).toEqual([])
  })
)

testing(
  "a product of several names and variants is one offer, of the variant that is named like the question",
  Effect.gen(function* () {
    const here = yield* host(yield* stores)
    const gold = observation("mug", "Mug", "24.95", "Gold")
    yield* here.prices.record([
      { ...gold, names: [...gold.names, { sku: "MUG-1", store_id: "example.com" }] },
      observation("mug", "Mug", "19.90", "Blue"),
      observation("mug", "Mug", "19.90"),
      { ...observation("mug", "Mug", "19.95"), offer: { title: "Mug", url: `http://www.shop.example.com/products/mug?utm_source=feed` } }
    ])
    for (const [name, expected] of [
      ["mug gold", "Mug - Gold: 24.95"],
      ["gold", "Mug - Gold: 24.95"],
      ["blue mug", "Mug - Blue: 19.90"]
    ] as const)
      expect(shown(yield* search(here, name))).toEqual([expected])
    expect(yield* search(here, "mug")).toMatchObject([{ title: "Mug" }])
  })
)

testing(
  "offers of 120 days ago are gone, also where they hide those that are not",
  Effect.gen(function* () {
    const here = yield* host(yield* stores)
    // More than the candidates of the first search, and each is a better match
    yield* here.prices.record(Array.from({ length: 150 }, (_, i) => observation(`old-${i}`, "Blue mug", String(i))))
    yield* TestClock.adjust("119 days")
    yield* here.prices.record([observation("new", "Mug of a long name", "7")])
    expect(shown(yield* search(here, "blue mug"))).toHaveLength(20)
    yield* TestClock.adjust("1 day")
    expect(shown(yield* search(here, "blue mug"))).toEqual(["Mug of a long name: 7"])
    yield* TestClock.adjust("119 days")
    expect(yield* search(here, "blue mug")).toEqual([])
  })
)

testing(
  "neither what callers claim nor what names nothing to buy is offered",
  Effect.gen(function* () {
    const here = yield* host(yield* stores)
    yield* here.prices.claim("acc_1", identityOf({ url: pageOf("mug") }) ?? "", "0.01")
    yield* here.prices.record([
      { names: [{ url: pageOf("mug") }], price: "5", currency: null },
      { ...observation("cup", "Mug", "6"), offer: { title: "Mug", url: "javascript:alert(1)" } },
      { names: [], price: "7", currency: null, offer: { title: "Mug", url: pageOf("jug") } }
    ])
    expect(yield* search(here, "mug")).toEqual([])
  })
)

// the oracle

const step = fc.record({
  product: fc.constantFrom("a", "b", "c"),
  title: fc.constantFrom("Mug", "Blue mug", "Tea bowl"),
  variant: fc.option(fc.constantFrom("Blue", "Gold", "Tea"), { nil: undefined }),
  days: fc.constantFrom(0, 1, 59, 119, 120)
})

interface Price {
  readonly title: string
  readonly variant: string | undefined
  readonly price: string
  readonly day: number
}

/** The title, and the similarity, of the best offer of each product. */
const expectedOf = (prices: ReadonlyMap<string, ReadonlyArray<Price>>, name: string, today: number) =>
  [...prices.values()].flatMap((all) => {
    const title = all.at(-1)?.title ?? ""
    const alive = all.filter(({ day }) => day > today - 120)
    const scored = alive.map(({ price, variant }) => ({ price, score: similarity(name, variant ? `${title} ${variant}` : title) }))
    const best = Math.max(0, ...scored.map(({ score }) => score))
    return best === 0 ? [] : [{ best, prices: scored.filter(({ score }) => score === best).map(({ price }) => price) }]
  })

test("the offers are those of a list that has every price, whatever was read when", () =>
  fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 1, maxLength: 12 }),
      fc.constantFrom("mug", "blue mug", "tea", "gold tea bowl"),
      (steps, name) =>
        Effect.gen(function* () {
          const here = yield* host(yield* stores)
          const prices = new Map<string, ReadonlyArray<Price>>()
          let day = 0
          for (const [i, { days, product, title, variant }] of steps.entries()) {
            day += days
            yield* TestClock.adjust(days * DAY)
            // Never the same twice
            const price = String(i + 1)
            yield* here.prices.record([observation(product, title, price, variant)])
            const others = (prices.get(product) ?? []).filter((each) => each.variant !== variant)
            prices.set(product, [...others, { title, variant, price, day }])
          }
          const found = yield* search(here, name)
          const expected = expectedOf(prices, name, day)
          expect(found.map((each) => each.similarity)).toEqual(expected.map(({ best }) => best).toSorted((a, b) => b - a))
          for (const { price, similarity } of found)
            expect(expected.some((each) => each.best === similarity && each.prices.includes(price))).toBe(true)
        }).pipe(Effect.scoped, Effect.provide(TestClock.layer()), Effect.runPromise)
    ),
    { numRuns: 60 }
  ))
