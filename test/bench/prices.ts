/** The time of a price history with ten thousand observations in the log, and with a million: of one product, and of many. And comparisons. */
import { MasterKey, PriceObservations, ProductIdentity, Vault } from "@millrace/core"
import { MemoryEventStore, MemoryStateStore } from "@millrace/event-sourcing"
import { Effect, Layer } from "effect"
import * as offers from "./offers.ts"

const services = PriceObservations.layer.pipe(
  Layer.provide(Vault.Vault.layer),
  Layer.provideMerge(Layer.mergeAll(MemoryEventStore.layer, MemoryStateStore.layer, Layer.orDie(MasterKey.layer("1f".repeat(32)))))
)

/** Each product is observed this often. */
const EACH = 100
const CALLS = 2_000
const BATCH = 5_000

const urlOf = (product: number): string => `https://shop.example.com/products/${product}`

const median = (times: ReadonlyArray<number>): number => times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? Number.NaN

const measure = (count: number, products: number) =>
  Effect.gen(function* () {
    const prices = yield* PriceObservations
    for (let from = 0; from < count; from += BATCH)
      yield* prices.record(
        Array.from({ length: BATCH }, (_, i) => ({
          names: [{ url: urlOf((from + i) % products) }],
          // Never the same twice
          price: String(from + i),
          currency: "EUR"
        }))
      )
    const times: Array<number> = []
    for (let i = 0; i < CALLS; i++) {
      const identity = ProductIdentity.identityOf({ url: urlOf((i * 7919) % products) }) ?? ""
      const began = performance.now()
      yield* prices.history("acc_1", identity, 120)
      times.push(performance.now() - began)
    }
    return { observations: count, products, "median, ms": Math.round(median(times) * 1000) / 1000 }
  }).pipe(Effect.provide(services))

const histories = () =>
  Effect.runPromise(
    Effect.forEach(
      [
        [10_000, 10_000 / EACH],
        [1_000_000, 1_000_000 / EACH],
        [10_000, 1],
        [1_000_000, 1]
      ] as const,
      ([count, products]) => measure(count, products)
    )
  )

export const run = async () => [...(await histories()), ...(await offers.run())]
