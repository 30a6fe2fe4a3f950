/** Comparisons of prices among ten thousand products, and among 200,000, over the index on SQLite; names of products as shops write them. */
import { join } from "node:path"
import { MasterKey, Offers, PriceObservations, Vault } from "@millrace/core"
import { MemoryEventStore, MemoryStateStore } from "@millrace/event-sourcing"
import { SqliteTextIndex } from "@millrace/event-store-sqlite"
import { Effect, Layer } from "effect"
import * as SeededRandom from "../../packages/testing/src/SeededRandom.ts"
import { median, withFolder } from "./measure.ts"

const CALLS = 1_000
const BATCH = 5_000
/** Offers of an answer. */
const LIMIT = 10

const COLOURS = ["black", "white", "blue", "grey", "red", "green", "silver", "gold", "pink", "brown"]
const COMMON = ["for", "with", "set", "pack", "large", "small", "cotton", "steel", "wireless", "kitchen", "home", "outdoor"]
const THINGS = Array.from({ length: 4_000 }, (_, i) => `thing${i}`)
const BRANDS = Array.from({ length: 2_000 }, (_, i) => `brand${i}`)

/** Few words are in many names, and many in few: a brand, two things, two common words, a colour, a size. */
const nameOf = (random: () => number): string => {
  const pick = (all: ReadonlyArray<string>) => all[Math.floor(random() ** 2 * all.length)]
  return [pick(BRANDS), pick(THINGS), pick(COMMON), pick(COMMON), pick(THINGS), pick(COLOURS), Math.floor(random() * 40)].join(" ")
}

const rounded = (millis: number): number => Math.round(millis * 100) / 100

const fill = (products: number, random: () => number) =>
  Effect.gen(function* () {
    const prices = yield* PriceObservations
    for (let from = 0; from < products; from += BATCH)
      yield* prices.record(
        Array.from({ length: BATCH }, (_, i) => {
          const url = `https://shop${(from + i) % 500}.example.com/products/${from + i}`
          return { names: [{ url }], price: String(from + i), currency: null, offer: { title: nameOf(random), url } }
        })
      )
  }).pipe(Effect.provide(Layer.provide(PriceObservations.layer, Vault.Vault.layer)))

const searched = (products: number, random: () => number) =>
  Effect.gen(function* () {
    const { caughtUp, search, searchStatus } = yield* Offers
    const began = performance.now()
    while (!(yield* searchStatus).caughtUp) yield* Effect.sleep(50)
    yield* caughtUp
    const derived = performance.now() - began
    const times: Array<number> = []
    const before = process.cpuUsage()
    for (let i = 0; i < CALLS; i++) {
      const name = nameOf(random)
      const started = performance.now()
      yield* search(name, LIMIT)
      times.push(performance.now() - started)
    }
    const { system, user } = process.cpuUsage(before)
    return {
      "products compared": products,
      "median, ms": rounded(median(times)),
      "processor each, ms": rounded((system + user) / 1_000 / CALLS),
      "derived from the log, s": Math.round(derived / 1_000)
    }
  })

const measure = (products: number, folder: string) =>
  Effect.gen(function* () {
    const { next: random } = SeededRandom.make(1)
    yield* fill(products, random)
    const index = SqliteTextIndex.layer({ filename: join(folder, `${products}.search.db`) })
    return yield* Effect.provide(searched(products, random), Layer.provide(Offers.layer, index))
  }).pipe(Effect.provide(Layer.mergeAll(MemoryEventStore.layer, MemoryStateStore.layer, Layer.orDie(MasterKey.layer("1f".repeat(32))))))

export const run = () =>
  withFolder((folder) => Effect.runPromise(Effect.forEach([10_000, 200_000], (products) => measure(products, folder))))
