/**
 * Random histories of coupons that accounts submit and report on and that operators decide on, at two processes whose store fails now and
 * then: the log keeps its rules, nothing that was answered is lost, and both processes find what the log says.
 */
import { EventStore, MemoryTextIndex, StateStore, TextIndex } from "@millrace/event-sourcing"
import { Clock, Effect, Exit, Layer, Stream } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect, test } from "vitest"
import * as FaultyEventStore from "../../../testing/src/FaultyEventStore.ts"
import { invariants, type Recorded } from "../../../testing/src/Invariants.ts"
import * as SeededRandom from "../../../testing/src/SeededRandom.ts"
import * as CouponStore from "../../src/coupons/CouponStore.ts"
import { Coupons } from "../../src/coupons/Coupons.ts"
import { MasterKey } from "../../src/vault/MasterKey.ts"
import { Vault } from "../../src/vault/Vault.ts"
import { type Stores, settle, stores, testing } from "../accounts/Hosts.ts"
import { MASTER } from "../vault/Vaults.ts"

const RATES = { before: 0.05, after: 0.05, lost: 0.05 }
const ACCOUNTS = ["acc_1", "acc_2", "acc_3", "acc_4"] as const
const SHOPS = ["shop.example.com", "other.example.org"] as const
const CODES = ["SAVE10", "save 10", "SAVE20", "FREE"] as const
const HOUR = 3_600_000

/** A process over the shared stores, whose own way to the log fails now and then. */
const processOn = (
  { events, states }: Stores,
  random: SeededRandom.SeededRandom,
  texts: TextIndex.TextIndex["Service"],
  acceptAfter: number
) =>
  Effect.gen(function* () {
    const faulty = FaultyEventStore.make(events, { rates: RATES, unavailable: 0.02, random })
    const base = Layer.mergeAll(
      Layer.succeed(EventStore.EventStore, faulty),
      Layer.succeed(StateStore.StateStore, states),
      MasterKey.layer(MASTER),
      Layer.succeed(TextIndex.TextIndex, texts)
    )
    const layer = Coupons.layer({ acceptAfter }).pipe(Layer.provide(Vault.layer), Layer.provide(base))
    const context = yield* Layer.build(Layer.fresh(layer))
    return { faulty, coupons: yield* Effect.provideContext(Coupons, context) }
  })

const live = Effect.fnUntraced(function* (seed: number, shared: Stores, acts: number, met: Set<string>) {
  const random = SeededRandom.make(seed)
  // One index for both, or one for each
  const texts = yield* MemoryTextIndex.make
  const processes = [
    yield* processOn(shared, random.fork("here"), texts, 2),
    yield* processOn(shared, random.fork("there"), seed % 2 === 0 ? texts : yield* MemoryTextIndex.make, 2)
  ] as const
  /** Of answered calls: the coupon that it shows, and the shop that was asked for with how many. */
  const answered = { coupons: new Set<string>(), requests: new Map<string, number>() }
  for (let i = 0; i < acts; i++) {
    if (random.chance(0.2)) yield* TestClock.adjust(random.pick([1, 12, 30] as const) * HOUR)
    const { coupons } = random.pick(processes)
    const [account, domain, code] = [random.pick(ACCOUNTS), random.pick(SHOPS), random.pick(CODES)]
    const couponId = CouponStore.couponIdOf(domain, code, null)
    const drawn = random.below(100)
    if (drawn < 60) {
      const ends = random.chance(0.3) ? (yield* Clock.currentTimeMillis) + random.below(48) * HOUR + HOUR : null
      const said = random.chance(0.7) ? { worked: random.chance(0.7), discount: random.below(3) * 10 } : {}
      const terms = { domain, code, description: "off", discountText: "", expiresAt: ends, shopUsername: null, minimumOrder: null }
      const exit = yield* settle(coupons.submit(account, { ...terms, ...said }))
      met.add(`submitted: ${Exit.isSuccess(exit) ? `duplicate ${exit.value.isDuplicate}` : "failed"}`)
      if (Exit.isSuccess(exit)) answered.coupons.add(couponId)
    } else if (drawn < 80) {
      const accepts = random.chance(0.5)
      const exit = yield* settle(accepts ? coupons.accept(couponId) : coupons.reject(couponId, "it is wrong"))
      if (Exit.isSuccess(exit)) expect(exit.value.status).toBe(accepts ? "accepted" : "rejected")
      met.add(`decided: ${Exit.isSuccess(exit) ? exit.value.status : "failed"}`)
    } else if (drawn < 90) {
      const exit = yield* settle(coupons.request(account, domain))
      if (Exit.isSuccess(exit)) answered.requests.set(domain, exit.value)
      met.add(`requested: ${Exit.isSuccess(exit)}`)
    } else yield* settle(coupons.describe({ domain, name: `The ${drawn}`, affiliateUrl: null, cashback: null }))
  }
  for (const { faulty } of processes) faulty.calm()
  return { answered, processes: processes.map(({ coupons }) => coupons) }
})

interface Line extends Recorded {
  readonly event: CouponStore.CouponStoreEvent
}

const recordedIn = ({ events }: Stores) =>
  Effect.map(Stream.runCollect(events.readAll(EventStore.start)), (log) =>
    log.flatMap(({ data, metadata, revision, stream, type }): ReadonlyArray<Line> => {
      if (!stream.startsWith("couponStore-")) return []
      const { at } = JSON.parse(metadata) as { readonly at: string }
      return [{ stream, revision, event: CouponStore.CouponStore.codec.decode(type, data), at: Date.parse(at) }]
    })
  )

/** What the last decision on each coupon was, by a plain look at the log. */
const standingsIn = (log: ReadonlyArray<Line>) => {
  const standings = new Map<string, { code: string; domain: string; expiresAt: number | null; status: string }>()
  for (const { event } of log) {
    if (event._tag === "CouponSubmitted") {
      const { code, domain, expiresAt } = event
      standings.set(event.couponId, { code, domain, expiresAt, status: event._tag })
    }
    const known = "couponId" in event ? standings.get(event.couponId) : undefined
    if (known !== undefined && (event._tag === "CouponAccepted" || event._tag === "CouponRejected")) known.status = event._tag
  }
  return standings
}

describe("histories of coupons", () => {
  const met = new Set<string>()

  for (let seed = 1; seed <= 8; seed++)
    testing(
      `have no mistake, with seed ${seed}`,
      Effect.gen(function* () {
        const shared = yield* stores
        const { answered, processes } = yield* live(seed, shared, 80, met)
        const log = yield* recordedIn(shared)
        expect(invariants(log)).toEqual([])
        const standings = standingsIn(log)
        for (const couponId of answered.coupons) expect([...standings.keys()]).toContain(couponId)
        const asked = (domain: string) => log.filter(({ event }) => event._tag === "CouponStoreRequested" && event.domain === domain).length
        for (const [domain, count] of answered.requests) expect(asked(domain)).toBeGreaterThanOrEqual(count)
        const now = yield* Clock.currentTimeMillis
        const isLive = ({ expiresAt }: { readonly expiresAt: number | null }) => expiresAt === null || expiresAt > now
        for (const coupons of processes) {
          yield* settle(coupons.caughtUp)
          const pending = yield* Effect.map(coupons.pending(), (all) => all.map(({ couponId }) => couponId).toSorted())
          const expected = [...standings].filter(([, { status }]) => status === "CouponSubmitted").map(([couponId]) => couponId)
          expect(pending).toEqual(expected.toSorted())
          for (const domain of SHOPS) {
            const found = yield* coupons.search({ domain })
            const accepted = [...standings.values()].filter(
              (one) => one.domain === domain && one.status === "CouponAccepted" && isLive(one)
            )
            expect(found.coupons.map(({ code }) => code).toSorted()).toEqual(accepted.map(({ code }) => code).toSorted())
            met.add(`found: ${found.coupons.length > 0}`)
          }
        }
      })
    )

  test("meet everything that can happen", () => {
    for (const what of ["duplicate true", "duplicate false", "failed"]) expect([...met]).toContain(`submitted: ${what}`)
    for (const what of ["accepted", "rejected", "failed"]) expect([...met]).toContain(`decided: ${what}`)
    for (const what of ["requested: true", "found: true", "found: false"]) expect([...met]).toContain(what)
  })
})
