/** The operation of price histories, on streams in memory. */
import { EventStore, MemoryEventStore, MemoryStateStore } from "@millrace/event-sourcing"
import { Effect, Layer, Stream } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect, test } from "vitest"
import * as PriceHistory from "../../src/operations/PriceHistory.ts"
import { PriceObservations } from "../../src/prices/PriceObservations.ts"
import { MasterKey } from "../../src/vault/MasterKey.ts"
import { Vault } from "../../src/vault/Vault.ts"

const layer = PriceObservations.layer.pipe(
  Layer.provide(Vault.layer),
  Layer.provideMerge(Layer.mergeAll(MemoryEventStore.layer, MemoryStateStore.layer, Layer.orDie(MasterKey.layer("7a".repeat(32))))),
  Layer.provideMerge(TestClock.layer())
)

const run = <A, E>(body: Effect.Effect<A, E, Layer.Success<typeof layer>>) =>
  Effect.runPromise(Effect.provide(Effect.andThen(TestClock.setTime(Date.parse("2026-01-20T12:00:00Z")), body), layer))

type Asked = Parameters<typeof PriceHistory.read.run>[0]

const url = "https://shop.example.com/products/mug"
const names = [{ url }, { sku: "MUG-1", store_id: "example.com" }]

const read = (asked: Asked, accountId = "acc_1") =>
  Effect.map(PriceHistory.read.run(asked, { accountId, requestId: "req", reservationId: "res" }), ({ data }) => data)
const observe = (price: string, currency: string | null = null) =>
  PriceObservations.use(({ record }) => record([{ names, price, currency }]))
const events = Effect.gen(function* () {
  const store = yield* EventStore.EventStore
  const batches = store.subscribe(EventStore.start).pipe(Stream.takeUntil(({ live }) => live))
  return [...(yield* Stream.runCollect(batches))].flatMap(({ events }) => events)
})

describe("the price history", () => {
  test("has a day for each day with a price, under each name of the product", () =>
    run(
      Effect.gen(function* () {
        yield* observe("24.95")
        yield* TestClock.adjust("1 day")
        yield* observe("24.95")
        yield* observe("19.90")
        const history = yield* read({ url: `${url}?utm_source=mail` })
        expect(history).toEqual({
          ...{ variant_id: null, store_id: null, timeframe: 30, current_price: 19.9, lowest_price: 19.9, highest_price: 24.95 },
          ...{ drop_amount: 5.05, drop_percent: 20.24, total_changes: 1, points_count: 2 },
          history: [
            { date: "2026-01-20", low: 24.95, high: 24.95 },
            { date: "2026-01-21", low: 19.9, high: 24.95 }
          ]
        })
        expect((yield* read({ sku: "MUG-1", url })).history).toEqual(history.history)
        yield* TestClock.adjust("29 days")
        expect((yield* read({ url })).history).toHaveLength(1)
        expect((yield* read({ url, timeframe: 60 })).history).toHaveLength(2)
      })
    ))

  test("shows what a caller claims to that caller alone", () =>
    run(
      Effect.gen(function* () {
        yield* observe("20")
        yield* TestClock.adjust("1 second")
        expect(yield* read({ url, price: 0.01 })).toMatchObject({ current_price: 0.01, lowest_price: 0.01, highest_price: 20 })
        expect(yield* read({ url })).toMatchObject({ current_price: 0.01 })
        expect(yield* read({ url }, "acc_2")).toMatchObject({ current_price: 20, lowest_price: 20, points_count: 1 })
      })
    ))

  test("is empty for a product without a price, and is no failure", () =>
    run(
      Effect.gen(function* () {
        expect(yield* read({ asin: "B00EXAMPLE", timeframe: 90 })).toMatchObject({
          ...{ timeframe: 90, current_price: null, lowest_price: null, drop_percent: null, total_changes: 0, points_count: 0, history: [] }
        })
      })
    ))

  test("is written once a day for the same price, and neither names nor accounts are in the log", () =>
    run(
      Effect.gen(function* () {
        for (let i = 0; i < 3; i++) yield* observe("20.00")
        for (let i = 0; i < 3; i++) yield* read({ url, price: 20 })
        const log = yield* events
        expect(log.map(({ type }) => type).sort()).toEqual(["PriceClaimed", "PriceObserved", "PriceObserved"])
        expect(JSON.stringify(log)).not.toMatch(/shop|mug|acc_1/iu)
      })
    ))
})

describe("bad input", () => {
  const refusal = (asked: Asked) =>
    run(
      Effect.map(
        Effect.flip(PriceHistory.read.check(asked, { accountId: "acc_1", requestId: "req" })),
        (error) => "field" in error && error.field
      )
    )

  test.each<[Asked, string]>([
    [{}, "url"],
    [{ store_id: "1" }, "url"],
    [{ variant_id: "1" }, "store_id"],
    [{ url: "shop.example.com/p" }, "url"],
    [{ url: "ftp://shop.example.com/p" }, "url"],
    [{ url, price: 0.0000001 }, "price"]
  ])("%j names the field %s", async (asked, field) => expect(await refusal(asked)).toBe(field))
})
