/** What a catalog that was read tells of prices, and where a caller finds it. */
import { MemoryEventStore, MemoryStateStore } from "@millrace/event-sourcing"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import * as PriceHistory from "../../src/operations/PriceHistory.ts"
import { CatalogPrices, observationsOf } from "../../src/prices/CatalogPrices.ts"
import { PriceObservations } from "../../src/prices/PriceObservations.ts"
import { MasterKey } from "../../src/vault/MasterKey.ts"
import { Vault } from "../../src/vault/Vault.ts"

const price = fc.tuple(fc.nat(1_000_000), fc.constantFrom("", ".5", ".50", ".99", ".000001")).map(([whole, part]) => `${whole}${part}`)
const variant = fc.record({
  id: fc.nat(),
  title: fc.constantFrom("Default Title", "Blue", "Gold"),
  price,
  sku: fc.option(fc.constantFrom("", "A-1", "B-2"))
})
const product = fc.record({
  handle: fc.constantFrom("mug", "cup"),
  title: fc.constantFrom("Mug", "Cup"),
  variants: fc.array(variant, { maxLength: 5 })
})

describe("the observations of a catalog", () => {
  test("name each variant by its id, its page and its SKU, and the product by its address at the least of its prices", () => {
    fc.assert(
      fc.property(product, ({ handle, title, variants }) => {
        const all = observationsOf("shop.example.co.uk", [{ handle, title, variants }])
        const byAddress = all.filter(({ names }) => names.some(({ url }) => url?.includes("?") === false))
        expect(all).toHaveLength(variants.length + byAddress.length)
        expect(byAddress).toHaveLength(variants.length === 0 ? 0 : 1)
        const url = `https://shop.example.co.uk/products/${handle}`
        for (const { names, offer, price } of byAddress) {
          expect(names).toEqual([{ url }])
          expect(offer).toEqual({ title, url })
          // An oracle in numbers: these prices have so few digits that none is lost
          expect(Number(price)).toBe(Math.min(...variants.map((variant) => Number(variant.price))))
        }
        for (const [i, { id, sku, title: variant }] of variants.entries()) {
          expect(all[i]?.names).toEqual([
            { variant_id: String(id), store_id: "example.co.uk" },
            { url: `${url}?variant=${id}` },
            ...(sku === null || sku === "" ? [] : [{ sku, store_id: "example.co.uk" }])
          ])
          expect(all[i]?.offer).toEqual(variant === "Default Title" ? undefined : { title, url, variant })
        }
      })
    )
  })
})

const layer = CatalogPrices.layer.pipe(
  Layer.provideMerge(PriceObservations.layer),
  Layer.provide(Vault.layer),
  Layer.provideMerge(Layer.mergeAll(MemoryEventStore.layer, MemoryStateStore.layer, Layer.orDie(MasterKey.layer("7a".repeat(32))))),
  Layer.provideMerge(TestClock.layer())
)

test("whoever asks for a product of a catalog that somebody read finds its price, by each of its names", () =>
  Effect.runPromise(
    Effect.provide(
      Effect.gen(function* () {
        yield* TestClock.setTime(Date.parse("2026-01-20T12:00:00Z"))
        const mug = {
          handle: "mug",
          title: "Mug",
          variants: [
            { id: 8, title: "Gold", price: "24.95", sku: "MUG-1" },
            { id: 9, title: "Blue", price: "19.90", sku: null }
          ]
        }
        yield* CatalogPrices.use(({ read }) => read("shop.example.com", [mug]))
        const asked = [
          [{ variant_id: "8", store_id: "example.com" }, 24.95],
          [{ variant_id: "9", url: "https://shop.example.com/products/mug?variant=9" }, 19.9],
          [{ sku: "MUG-1", store_id: "example.com" }, 24.95],
          [{ url: "https://shop.example.com/products/mug" }, 19.9],
          [{ url: "https://shop.example.com/products/mug?utm_source=x&variant=8" }, 24.95]
        ] as const
        for (const [names, current] of asked) {
          const caller = { accountId: "acc_2", requestId: "req", reservationId: "res" }
          const known = Effect.map(PriceHistory.read.run(names, caller), ({ data }) => data.current_price)
          // It is written behind the answer
          let found = yield* known
          for (let turn = 0; found === null && turn < 1_000; turn++) {
            yield* Effect.yieldNow
            found = yield* known
          }
          expect(found).toBe(current)
        }
      }),
      layer
    )
  ))
