/** The operation that compares prices, on streams in memory. */
import { EventStore, MemoryEventStore, MemoryStateStore, TextIndex } from "@millrace/event-sourcing"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect, test } from "vitest"
import * as PriceCompare from "../../src/operations/PriceCompare.ts"
import { Offers } from "../../src/prices/Offers.ts"
import { type Observation, PriceObservations } from "../../src/prices/PriceObservations.ts"
import { MasterKey } from "../../src/vault/MasterKey.ts"
import { Vault } from "../../src/vault/Vault.ts"

const layer = Layer.mergeAll(PriceObservations.layer, Offers.layer).pipe(
  Layer.provide(Vault.layer),
  Layer.provideMerge(Layer.mergeAll(MemoryEventStore.layer, MemoryStateStore.layer, Layer.orDie(MasterKey.layer("7a".repeat(32))))),
  Layer.provideMerge(TestClock.layer())
)

const AT = Date.parse("2026-01-20T12:00:00Z")

const run = <A, E>(body: Effect.Effect<A, E, Layer.Success<typeof layer>>) =>
  Effect.runPromise(Effect.provide(Effect.andThen(TestClock.setTime(AT), body), layer))

type Asked = Parameters<typeof PriceCompare.compare.run>[0]

const caller = { accountId: "acc_1", requestId: "req", reservationId: "res" }
const compare = (asked: Asked) =>
  Effect.gen(function* () {
    yield* Offers.use(({ caughtUp }) => caughtUp)
    return (yield* PriceCompare.compare.run(asked, caller)).data
  })

const offered = (shop: string, title: string, price: string, currency: string | null): Observation => {
  const url = `https://${shop}/products/mug`
  return { names: [{ url }], price, currency, offer: { title, url } }
}
const record = (...all: ReadonlyArray<Observation>) => PriceObservations.use((prices) => prices.record(all))

describe("a comparison", () => {
  test("tells the offers with their currencies, and the exact difference to the caller's price", () =>
    run(
      Effect.gen(function* () {
        yield* record(offered("shop.example.com", "Stoneware mug", "19.9", "EUR"), offered("www.other.example.org", "Mug", "20.01", null))
        expect(yield* compare({ name: "Mug stoneware", price: 20.1 })).toEqual({
          ...{ query: "Mug stoneware", price: 20.1, currencies: ["EUR", null], same_currency: false, total_matches: 2 },
          items: [
            {
              ...{ title: "Stoneware mug", shop: "shop.example.com", url: "https://shop.example.com/products/mug" },
              ...{ price: 19.9, currency: "EUR", observed_at: AT, similarity: 1, difference: -0.2 }
            },
            {
              ...{ title: "Mug", shop: "other.example.org", url: "https://www.other.example.org/products/mug" },
              ...{ price: 20.01, currency: null, observed_at: AT, similarity: 0.6667, difference: -0.09 }
            }
          ]
        })
        const without = yield* compare({ name: "mug", limit: 1 })
        expect(without).toMatchObject({ price: null, total_matches: 1, items: [{ title: "Mug", difference: null }] })
      })
    ))

  test.each<[ReadonlyArray<string | null>, boolean]>([
    [["EUR"], true],
    [["EUR", "EUR"], true],
    [["EUR", "USD"], false],
    [["EUR", null], false],
    [[null, null], false],
    [[], false]
  ])("of offers in %j says whether they are known to be in one currency: %s", (currencies, is) =>
    run(
      Effect.gen(function* () {
        yield* record(...currencies.map((currency, i) => offered(`shop${i}.example.com`, "Mug", "5", currency)))
        expect(yield* compare({ name: "mug" })).toMatchObject({ same_currency: is, total_matches: currencies.length })
      })
    )
  )

  test("writes nothing", () =>
    run(
      Effect.gen(function* () {
        yield* record(offered("shop.example.com", "Mug", "5", "EUR"))
        const { head } = yield* EventStore.EventStore
        const before = yield* head
        yield* compare({ name: "mug", price: 0.01 })
        expect(yield* head).toBe(before)
      })
    ))

  test("is not billed while the index does not answer", () =>
    run(
      Effect.gen(function* () {
        const error = yield* Effect.flip(PriceCompare.compare.run({ name: "mug" }, caller))
        expect(error).toMatchObject({ _tag: "UpstreamUnavailable", isolated: true })
      }).pipe(
        Effect.provide(
          Layer.fresh(Offers.layer).pipe(
            Layer.provide(
              Layer.succeed(TextIndex.TextIndex, {
                open: () => Effect.fail(new TextIndex.TextIndexUnavailable({ reason: "its file is broken" }))
              })
            )
          )
        )
      )
    ))
})

describe("bad input", () => {
  const refusal = (asked: Asked) =>
    run(
      Effect.map(
        Effect.flip(PriceCompare.compare.check(asked, { accountId: "acc_1", requestId: "req" })),
        (error) => "field" in error && error.field
      )
    )

  test.each<[Asked, string]>([
    [{ name: "!?!" }, "name"],
    [{ name: "   " }, "name"],
    [{ name: "mug", price: 0.0000001 }, "price"]
  ])("%j names the field %s", async (asked, field) => expect(await refusal(asked)).toBe(field))
})
