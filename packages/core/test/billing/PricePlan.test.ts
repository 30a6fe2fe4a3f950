import { EventStore, MemoryEventStore } from "@millrace/event-sourcing"
import { Effect, Layer, Result, Stream } from "effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { describe, expect, test } from "vitest"
import { arbitraryOf } from "../../../testing/src/Arbitraries.ts"
import { given } from "../../../testing/src/GivenWhenThen.ts"
import {
  EffectiveTooEarly,
  inForce,
  MAX_QUANTITY,
  MAX_UNIT_PRICE,
  ownOf,
  PriceBook,
  PricePlan,
  type PricePlanEvent,
  Prices,
  PriceTooHigh,
  publish,
  publishOwn
} from "../../src/billing/PricePlan.ts"
import * as Credits from "../../src/Credits.ts"
import * as Standard from "../../src/operations/Standard.ts"
import { check } from "../vault/Property.ts"
import { all, range } from "./Bench.ts"

const { of } = Credits
const own = ownOf(Standard.operations)
const published = (version: number, effectiveAt: number, prices: Prices): PricePlanEvent => ({
  _tag: "PricePlanPublished",
  version,
  effectiveAt,
  prices
})

/** Every operation that comes with Millrace, with its endpoint and its cost in credits. */
const TABLES: ReadonlyArray<readonly [key: string, endpoint: string, cost: number]> = [
  ["account.billing", "GET /account/billing", 0],
  ["account.limits", "GET /account/limits", 0],
  ["account.activity", "GET /account/activity", 0],
  ["account.calls", "GET /account/calls", 0],
  ["billing.topUp", "POST /billing/topups", 0],
  ["billing.captureTopUp", "POST /billing/topups/{payment}/capture", 0],
  ["billing.topups", "GET /billing/topups", 0],
  ["billing.subscribe", "POST /billing/subscriptions", 0],
  ["billing.subscriptions", "GET /billing/subscriptions", 0],
  ["billing.cancelSubscription", "DELETE /billing/subscriptions/{subscription}", 0],
  ["billing.invoices", "GET /billing/invoices", 0],
  ["billing.invoice", "GET /billing/invoices/{invoice}", 0],
  ["keys.list", "GET /account/keys", 0],
  ["keys.issue", "POST /account/keys", 0],
  ["keys.revoke", "DELETE /account/keys/{key}", 0],
  ["keys.rotate", "POST /account/keys/{key}/rotate", 0],
  ["catalog.read", "GET /catalog", 0],
  ["catalog.capabilities", "GET /catalog/capabilities", 0],
  ["catalog.capability", "GET /catalog/capabilities/{key}", 0],
  ["catalog.config", "GET /catalog/config", 0],
  ["catalog.groups", "GET /catalog/groups", 0],
  ["coupons.search", "GET /coupons", 0.5],
  ["coupons.requestStore", "POST /coupons/request-store", 0],
  ["coupons.submit", "POST /coupons/submit", 0],
  ["image.generate", "POST /ai/images", 8],
  ["image.edit", "POST /ai/images/edit", 8],
  ["image.read", "GET /ai/images/{job}", 0],
  ["image.cancel", "DELETE /ai/images/{job}", 0],
  ["image.download", "GET /ai/images/{job}/artifact", 0],
  ["speech.synthesize", "POST /audio/tts", 5],
  ["speech.read", "GET /audio/tts/{job}", 0],
  ["speech.cancel", "DELETE /audio/tts/{job}", 0],
  ["speech.download", "GET /audio/tts/{job}/artifact", 0],
  ["speech.voices", "GET /audio/voices", 0],
  ["bin.lookup", "GET /bin/{bin}", 0.5],
  ["dns.resolve", "GET /dns/{domain}", 0.5],
  ["topics.list", "GET /content/prompts/topics", 0.1],
  ["priceAlerts.register", "POST /products/price-alerts", 1],
  ["prices.compare", "POST /products/price-compare", 1],
  ["prices.history", "GET /products/price-history", 0.5],
  ["selectors.find", "GET /products/selectors", 0],
  ["verification.wait", "POST /verify/wait", 5],
  ["grammar.check", "POST /grammar/check", 1],
  ["email.validate", "POST /email/validate", 1],
  ["email.validateBatch", "POST /email/validate-batch, for each address", 0.6],
  ["email.validationJob", "POST /email/validation-jobs, for each address", 0.6],
  ["email.readValidationJob", "GET /email/validation-jobs/{job}", 0],
  ["inbox.create", "POST /temp-mail/inboxes", 1],
  ["inbox.read", "GET /temp-mail/inboxes/{inbox}", 0.1],
  ["inbox.listMessages", "GET /temp-mail/inboxes/{inbox}/messages", 0.1],
  ["inbox.readMessage", "GET /temp-mail/inboxes/{inbox}/messages/{message}", 0.1],
  ["inbox.downloadAttachment", "GET /temp-mail/inboxes/{inbox}/messages/{message}/attachments/{attachment}", 0.1],
  ["inbox.downloadMessage", "GET /temp-mail/inboxes/{inbox}/messages/{message}/raw", 0.1],
  ["inbox.rotate", "POST /temp-mail/inboxes/{inbox}/rotate", 1],
  ["inbox.delete", "DELETE /temp-mail/inboxes/{inbox}", 0],
  ["video.stats", "GET /social/videosite/videos/{id}/stats", 0.5],
  ["video.channelVideos", "GET /social/videosite/channels/{channel}/videos", 0.5],
  ["video.outliers", "GET /social/videosite/channels/{channel}/outliers", 1],
  ["video.search", "GET /social/videosite/search", 0.5],
  ["video.comments", "GET /social/videosite/videos/{id}/comments", 1],
  ["video.about", "GET /social/videosite/channels/{handle}/about", 0.5],
  ["video.playlist", "GET /social/videosite/playlists/{id}", 0.3],
  ["video.tags", "GET /social/videosite/videos/{id}/tags", 0.5],
  ["video.details", "GET /social/videosite/videos/{id}/details", 1],
  ["video.download", "GET /social/videosite/videos/{id}/download", 1],
  ["proxy.locations", "GET /proxy/locations", 0.1],
  ["proxy.createSession", "POST /proxy/sessions", 2],
  ["storeCatalog.read", "GET /ecommerce/storeplatform/catalog", 1.5],
  ["leads.search", "GET /local/mapsearch/leads", 2],
  ["codeHost.user", "GET /social/codehost/users/{username}", 0.5],
  ["codeHost.searchRepositories", "GET /social/codehost/repos", 0.5],
  ["codeHost.activity", "GET /social/codehost/users/{username}/activity", 0.5],
  ["codeHost.repository", "GET /social/codehost/repos/{owner}/{repo}", 0.5]
]

describe("the prices of the operations that come with Millrace", () => {
  test.each(TABLES)("%s (%s) costs %f credits", (key, _endpoint, cost) => {
    expect(own[key]).toBe(Math.round(cost * 1000))
  })

  test("are exactly those of the table, and published once", () => {
    expect(Object.keys(own).sort()).toEqual(TABLES.map(([key]) => key).sort())
    given(PricePlan, [])
      .when(publishOwn(own), 1_000)
      .then([{ ...published(1, 1_000, own), own }])
    given(PricePlan, [{ ...published(1, 0, own), own }])
      .when(publishOwn(own), 1_000)
      .then([])
  })

  test("of a log of an earlier release are recorded as those of the code, beside the prices that it has", () => {
    const before = { ...own, "grammar.check": of(7), "video.stats": of(500) }
    given(PricePlan, [published(1, 0, before)])
      .when(publishOwn(own), 1_000)
      .then([{ ...published(2, 1_000, before), own }])
  })
})

describe("the prices that stand in a host's operations", () => {
  const evolve = (plan: PricePlan, events: ReadonlyArray<PricePlanEvent>) =>
    events.reduce((plan, event) => PricePlan.evolve(plan, event, 1_000), plan)
  const decided = (decide: (plan: PricePlan, now: number) => Result.Result<ReadonlyArray<PricePlanEvent>, unknown>, plan: PricePlan) =>
    evolve(plan, Result.getOrThrow(decide(plan, 1_000)))
  const pricesOf = (plan: PricePlan) => plan.at(-1)?.prices ?? {}

  const keys = ["a.b", "c.d"]
  const prices = fc.dictionary(fc.constantFrom(...keys), fc.nat(5).map(of), { minKeys: 1, noNullPrototype: true })
  const step = fc.oneof(
    prices.map((prices) => ({ by: "host", prices }) as const),
    prices.map((prices) => ({ by: "operator", prices }) as const)
  )

  test("count until an operator publishes others, and again once they change", () => {
    const history = fc.array(step, { maxLength: 12 })
    const property = fc.property(history, (steps) => {
      let plan: PricePlan = []
      const own: Record<string, number> = {}
      const expected: Record<string, number> = {}
      for (const { by, prices } of steps) {
        plan = decided(by === "host" ? publishOwn(prices) : publish(prices), plan)
        for (const [key, price] of Object.entries(prices)) {
          if (by === "operator" || expected[key] === undefined || (own[key] !== undefined && own[key] !== price)) expected[key] = price
          if (by === "host") own[key] = price
        }
        expect(pricesOf(plan)).toEqual(expected)
        expect(plan.map(({ version }) => version)).toEqual(range(plan.length).map((i) => i + 1))
        // The same operations publish nothing more
        if (by === "host") expect(Result.getOrThrow(publishOwn(prices)(plan, 2_000))).toEqual([])
      }
    })
    check(property)
  })
})

describe("the prices of new operations, where later versions are announced", () => {
  const keys = ["a", "b", "c"]
  const prices = fc.dictionary(fc.constantFrom(...keys), fc.nat(3).map(of), { minKeys: 1, noNullPrototype: true })
  const step = fc.record({ by: fc.constantFrom("host", "operator"), wait: fc.nat(3), ahead: fc.nat(4), prices })
  /** From when on which prices are in force: what is expected of a plan, without its versions. */
  type Timeline = ReadonlyArray<{ readonly from: number; readonly prices: Prices }>
  const at = (timeline: Timeline, now: number): Prices => timeline.findLast(({ from }) => from <= now)?.prices ?? {}

  test("are in force at once and stay, and what is announced comes into force with them", () => {
    const property = fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
      let [plan, now]: [PricePlan, number] = [[], 0]
      let timeline: Timeline = []
      const known: Record<string, number> = {}
      for (const { by, prices, wait, ahead } of steps) {
        now += wait
        const earliest = Math.max(now, plan.at(-1)?.effectiveAt ?? 0)
        const decision = by === "host" ? publishOwn(prices)(plan, now) : publish(prices, earliest + ahead)(plan, now)
        const events = Result.getOrThrow<ReadonlyArray<PricePlanEvent>, unknown>(decision)
        const before = plan
        for (const event of events) plan = PricePlan.evolve(plan, event, now)
        if (by === "operator") {
          if (events.length > 0) timeline = [...timeline, { from: earliest + ahead, prices: { ...timeline.at(-1)?.prices, ...prices } }]
        } else {
          const withOwn = (list: Prices): Prices => {
            const takesEffect = ([key, price]: [string, number]) => list[key] === undefined || (known[key] ?? price) !== price
            return { ...list, ...Object.fromEntries(Object.entries(prices).filter(takesEffect)) }
          }
          const later = timeline.filter(({ from }) => from > now)
          const earlier = timeline.filter(({ from }) => from <= now)
          timeline = [
            ...earlier,
            ...[{ from: now, prices: at(timeline, now) }, ...later].map((list) => ({ ...list, prices: withOwn(list.prices) }))
          ]
          Object.assign(known, prices)
          // The same operations publish nothing more
          expect(Result.getOrThrow(publishOwn(prices)(plan, now))).toEqual([])
        }
        for (const instant of range(80)) {
          const list = inForce(plan, instant)
          expect(list?.prices ?? {}).toEqual(at(timeline, instant))
          if (instant < now) expect(list).toBe(inForce(before, instant))
          if (by === "host" && instant >= now) expect(Object.keys(list?.prices ?? {})).toEqual(expect.arrayContaining(Object.keys(prices)))
        }
        expect(plan.map(({ version }) => version)).toEqual(range(plan.length).map((i) => i + 1))
      }
    })
    check(property)
  })
})

describe("publishing", () => {
  const first = published(1, 1_000, { a: of(10), b: of(20) })

  test("increments the version and keeps the prices that are not named", () => {
    given(PricePlan, [first])
      .when(publish({ b: of(21), c: of(30) }), 2_000)
      .then([published(2, 2_000, { a: of(10), b: of(21), c: of(30) })])
      .thenState([
        { version: 1, effectiveAt: 1_000, prices: { a: of(10), b: of(20) } },
        { version: 2, effectiveAt: 2_000, prices: { a: of(10), b: of(21), c: of(30) } }
      ])
  })

  test("decides nothing if no price changes", () => {
    given(PricePlan, [first])
      .when(publish({ b: of(20) }), 2_000)
      .then([])
    given(PricePlan, [first]).when(publish({}), 2_000).then([])
  })

  test("may take effect later, but not in the past nor before the version that it follows", () => {
    given(PricePlan, [first])
      .when(publish({ a: of(11) }, 5_000), 2_000)
      .then([published(2, 5_000, { a: of(11), b: of(20) })])
    given(PricePlan, [first])
      .when(publish({ a: of(11) }, 1_999), 2_000)
      .thenRefused(new EffectiveTooEarly({ earliest: 2_000 }))
    const ahead = published(2, 5_000, { a: of(11), b: of(20) })
    given(PricePlan, [first, ahead])
      .when(publish({ a: of(12) }, 4_999), 2_000)
      .thenRefused(new EffectiveTooEarly({ earliest: 5_000 }))
    given(PricePlan, [first, ahead])
      .when(publish({ a: of(12) }), 2_000)
      .then([published(3, 5_000, { a: of(12), b: of(20) })])
  })

  test("refuses a price at which a call could cost more than the largest amount", () => {
    const most = published(2, 2_000, { a: MAX_UNIT_PRICE, b: of(20) })
    given(PricePlan, [first])
      .when(publish({ a: MAX_UNIT_PRICE }), 2_000)
      .then([most])
    given(PricePlan, [first])
      .when(publish({ b: of(30), a: of(MAX_UNIT_PRICE + 1) }), 2_000)
      .thenRefused(new PriceTooHigh({ operation: "a", limit: MAX_UNIT_PRICE }))
    expect(of(MAX_UNIT_PRICE * MAX_QUANTITY)).toBe(Credits.MAXIMUM)
    expect(() => of((MAX_UNIT_PRICE + 1) * MAX_QUANTITY)).toThrow()
    given(PricePlan, [])
      .when(publishOwn({ a: of(MAX_UNIT_PRICE + 1) }), 2_000)
      .thenRefused(new PriceTooHigh({ operation: "a", limit: MAX_UNIT_PRICE }))
    // A version that an earlier release published stays
    given(PricePlan, [published(1, 1_000, { a: of(MAX_UNIT_PRICE + 1) })])
      .when(publish({ b: of(1) }), 2_000)
      .then([published(2, 2_000, { a: of(MAX_UNIT_PRICE + 1), b: of(1) })])
  })

  test("versions increase by one, times never go back, and the newest effective version is in force", () => {
    const step = fc.record({
      wait: fc.nat(1_000),
      ahead: fc.option(fc.nat(3_000)),
      changes: fc.oneof(arbitraryOf(Prices, { size: 3 }), fc.dictionary(fc.constantFrom("a", "b"), fc.nat(5).map(of)))
    })
    check(
      fc.property(fc.array(step, { maxLength: 20 }), fc.nat(30_000), (steps, at) => {
        let plan = PricePlan.initial
        let now = 0
        const written: Array<PricePlanEvent> = []
        for (const { wait, ahead, changes } of steps) {
          now += wait
          const decision = publish(changes, ahead === null ? undefined : now + ahead)(plan, now)
          if (Object.values(changes).some((price) => price > MAX_UNIT_PRICE)) {
            expect(Result.isFailure(decision)).toBe(true)
            continue
          }
          if (Result.isFailure(decision)) {
            expect(plan.at(-1)?.effectiveAt).toBeGreaterThan(now + (ahead ?? 0))
            continue
          }
          for (const event of decision.success) {
            written.push(event)
            plan = PricePlan.evolve(plan, event, now)
          }
          for (const [operation, price] of Object.entries(changes)) expect(plan.at(-1)?.prices[operation]).toBe(price)
        }
        expect(plan.map(({ version }) => version)).toEqual(range(plan.length).map((i) => i + 1))
        expect(plan.map(({ effectiveAt }) => effectiveAt)).toEqual(plan.map(({ effectiveAt }) => effectiveAt).sort((a, b) => a - b))
        const holding = plan.filter(({ effectiveAt }) => effectiveAt <= at)
        expect(inForce(plan, at)).toBe(holding.at(-1))
        given(PricePlan, written)
          .when(publish({}), at)
          .thenState(plan.length === 0 ? () => {} : plan)
      }),
      200
    )
  })
})

describe("the price book", () => {
  const testing = (body: Effect.Effect<unknown, unknown, EventStore.EventStore>) =>
    Effect.runPromise(Effect.asVoid(body).pipe(Effect.provide(MemoryEventStore.layer), Effect.provide(TestClock.layer())))
  const book = Effect.flatMap(EventStore.EventStore, (events) =>
    Effect.flatMap(
      Layer.build(Layer.fresh(Layer.provide(PriceBook.layerOf(own), Layer.succeed(EventStore.EventStore, events)))),
      (context) => Effect.provideContext(PriceBook, context)
    )
  )

  test("quotes the price in force at any host, exact to the millisecond", () =>
    testing(
      Effect.scoped(
        Effect.gen(function* () {
          const [here, there] = [yield* book, yield* book]
          expect(yield* here.quote("grammar.check")).toMatchObject({ version: 1, unitPrice: of(1_000) })
          expect({ ...(yield* Effect.flip(here.quote("nobody.knows"))) }).toEqual({ _tag: "NotPriced", operation: "nobody.knows" })
          yield* there.publish({ "grammar.check": of(2_000), "nobody.knows": of(0) }, 500, { actor: "root", reason: "dearer" })
          yield* TestClock.adjust(499)
          expect(yield* here.quote("grammar.check")).toMatchObject({ version: 1, unitPrice: of(1_000) })
          expect(yield* Effect.flip(here.quote("nobody.knows"))).toMatchObject({ _tag: "NotPriced" })
          yield* TestClock.adjust(1)
          for (const each of [here, there]) {
            expect(yield* each.quote("grammar.check")).toMatchObject({ version: 2, unitPrice: of(2_000) })
            expect(yield* each.quote("nobody.knows")).toMatchObject({ version: 2, unitPrice: of(0) })
            expect(yield* each.quote("bin.lookup")).toMatchObject({ version: 2, unitPrice: of(500) })
            expect((yield* each.plan).map(({ version }) => version)).toEqual([1, 2])
          }
          expect(yield* Effect.flip(here.publish({ "bin.lookup": of(1) }, 499))).toMatchObject({ _tag: "EffectiveTooEarly", earliest: 500 })
        })
      )
    ))

  test("is published once by 64 hosts that start at once, and survives them", () =>
    testing(
      Effect.gen(function* () {
        yield* Effect.scoped(Effect.forEach(range(64), () => book, all))
        yield* Effect.scoped(book)
        const events = yield* EventStore.EventStore
        const log = yield* Stream.runCollect(events.readAll(EventStore.start))
        expect(log.map(({ type, stream }) => `${stream} ${type}`)).toEqual(["pricePlan-standard PricePlanPublished"])
      })
    ))
})
