/**
 * Random histories of prices that two processes read and callers claim, over a store that fails now and then: nothing that was recorded is
 * lost, nothing is shown that nobody noted, and both processes find the same offers.
 */
import { EventStore, MemoryTextIndex, StateStore, TextIndex } from "@millrace/event-sourcing"
import { Clock, Effect, Exit, Layer, Stream } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect, test } from "vitest"
import * as FaultyEventStore from "../../../testing/src/FaultyEventStore.ts"
import { invariants, type Recorded } from "../../../testing/src/Invariants.ts"
import * as SeededRandom from "../../../testing/src/SeededRandom.ts"
import { Offers } from "../../src/prices/Offers.ts"
import { PriceObservations } from "../../src/prices/PriceObservations.ts"
import { dayOf } from "../../src/prices/PriceSeries.ts"
import * as Product from "../../src/prices/Product.ts"
import { identityOf } from "../../src/prices/ProductIdentity.ts"
import { MasterKey } from "../../src/vault/MasterKey.ts"
import { Vault } from "../../src/vault/Vault.ts"
import { type Stores, settle, stores, testing } from "../accounts/Hosts.ts"
import { MASTER } from "../vault/Vaults.ts"

const RATES = { before: 0.05, after: 0.05, lost: 0.05 }
const PRODUCTS = ["mug", "cup", "bowl"] as const
/** `host`: what the host read, for everybody. */
const SPEAKERS = ["host", "acc_1", "acc_2"] as const
const HOUR = 3_600_000

const urlOf = (product: string) => `https://shop.example.com/products/${product}`
const identitiesOf = (product: string) =>
  [{ url: urlOf(product) }, { sku: product, store_id: "example.com" }].map((names) => identityOf(names) ?? "")

/** A process over the shared stores, whose own way to the log fails now and then. */
const processOn = ({ events, states }: Stores, random: SeededRandom.SeededRandom, texts: TextIndex.TextIndex["Service"]) =>
  Effect.gen(function* () {
    const faulty = FaultyEventStore.make(events, { rates: RATES, unavailable: 0.02, random })
    const base = Layer.mergeAll(
      Layer.succeed(EventStore.EventStore, faulty),
      Layer.succeed(StateStore.StateStore, states),
      MasterKey.layer(MASTER),
      Layer.succeed(TextIndex.TextIndex, texts)
    )
    const layer = Layer.mergeAll(PriceObservations.layer, Offers.layer).pipe(Layer.provide(Vault.layer), Layer.provide(base))
    const context = yield* Layer.build(Layer.fresh(layer))
    return { faulty, ...(yield* Effect.provideContext(Effect.all({ prices: PriceObservations, offers: Offers }), context)) }
  })

/** A price that somebody noted, or tried to. */
interface Noted {
  readonly product: (typeof PRODUCTS)[number]
  readonly by: (typeof SPEAKERS)[number]
  readonly price: string
  readonly day: number
  readonly isSure: boolean
}

const live = Effect.fnUntraced(function* (seed: number, shared: Stores, acts: number) {
  const random = SeededRandom.make(seed)
  // One index for both, or one for each
  const texts = yield* MemoryTextIndex.make
  const here = yield* processOn(shared, random.fork("here"), texts)
  const there = yield* processOn(shared, random.fork("there"), seed % 2 === 0 ? texts : yield* MemoryTextIndex.make)
  const processes = [here, there] as const
  const noted: Array<Noted> = []
  for (let i = 0; i < acts; i++) {
    if (random.chance(0.25)) yield* TestClock.adjust(random.pick([1, 5, 12, 30, 24 * 119] as const) * HOUR)
    const { prices } = random.pick(processes)
    const [product, by] = [random.pick(PRODUCTS), random.pick(SPEAKERS)]
    // Whose price it is can be seen by it
    const price = `${SPEAKERS.indexOf(by)}.${random.below(4)}`
    const [url = "", ...others] = identitiesOf(product)
    const sold = { names: [{ url: urlOf(product) }, { sku: product, store_id: "example.com" }], price, currency: "EUR" }
    const act =
      by === "host"
        ? prices.record([{ ...sold, offer: { title: `A ${product}`, url: urlOf(product) } }])
        : Effect.forEach([url, ...others], (identity) => prices.claim(by, identity, price), { discard: true })
    const before = dayOf(yield* Clock.currentTimeMillis)
    const exit = yield* settle<unknown, unknown>(act)
    const day = dayOf(yield* Clock.currentTimeMillis)
    // What was tried over midnight may be of either day
    if (day !== before) noted.push({ product, by, price, day: before, isSure: false })
    noted.push({ product, by, price, day, isSure: Exit.isSuccess(exit) && day === before })
  }
  for (const { faulty } of processes) faulty.calm()
  return { noted, processes }
})

const recordedIn = ({ events }: Stores) =>
  Effect.map(Stream.runCollect(events.readAll(EventStore.start)), (log) =>
    log.map(({ data, metadata, revision, stream, type }): Recorded => {
      const { codec } = stream.startsWith("product-") ? Product.Product : Product.PriceClaims
      const { at } = JSON.parse(metadata) as { readonly at: string }
      return { stream, revision, event: codec.decode(type, data), at: Date.parse(at) }
    })
  )

describe("histories of prices", () => {
  const met = new Set<string>()

  for (let seed = 1; seed <= 8; seed++)
    testing(
      `have every price that was noted, and no other, with seed ${seed}`,
      Effect.gen(function* () {
        const shared = yield* stores
        const { noted, processes } = yield* live(seed, shared, 60)
        expect(invariants(yield* recordedIn(shared))).toEqual([])
        for (const { isSure } of noted) met.add(isSure ? "recorded" : "in doubt")
        const now = yield* Clock.currentTimeMillis
        for (const product of PRODUCTS)
          for (const account of ["acc_1", "acc_2", "acc_3"])
            for (const identity of identitiesOf(product))
              for (const { prices } of processes) {
                const { days } = yield* prices.history(account, identity, 120)
                const told = noted.filter((one) => one.product === product && (one.by === "host" || one.by === account))
                for (const { day, high, low } of days)
                  for (const price of [low, high]) expect(told.some((one) => one.day === day && one.price === price)).toBe(true)
                for (const { day, isSure, price } of told) {
                  if (!isSure || day <= dayOf(now) - 120) continue
                  const range = days.find((one) => one.day === day)
                  expect([product, account, day, Number(price) >= Number(range?.low), Number(price) <= Number(range?.high)]).toEqual([
                    product,
                    account,
                    day,
                    true,
                    true
                  ])
                }
              }
        for (const product of PRODUCTS) {
          const found = []
          for (const { offers } of processes) {
            yield* settle(offers.caughtUp)
            found.push(yield* offers.search(product, 20))
          }
          expect(found[0]).toEqual(found[1])
          const told = noted.filter((one) => one.product === product && one.by === "host" && one.day > dayOf(now) - 120)
          const last = told.findLastIndex(({ isSure }) => isSure)
          // The newest, or one after it of which nobody knows whether it was recorded
          const possible = told.slice(Math.max(0, last)).map(({ price }) => price)
          for (const { price } of found[0] ?? []) expect(possible).toContain(price)
          expect(found[0]?.length).toBeLessThanOrEqual(1)
          if (last >= 0) expect(found[0]).toHaveLength(1)
          met.add(`found ${found[0]?.length}`)
        }
      })
    )

  test("meet everything that can happen", () => {
    for (const what of ["recorded", "in doubt", "found 0", "found 1"]) expect([...met]).toContain(what)
  })
})
