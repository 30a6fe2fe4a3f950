/** The upkeep of accounts under the test clock: periods and expiries of accounts that nobody calls, at hosts that crash. */
import { type AccountEvent, AccountUpkeep, type AccountUpkeepOptions, Decisions, Ledger, Periods } from "@millrace/core"
import { EventStore, MemoryEventStore, MemoryStateStore, StateStore } from "@millrace/event-sourcing"
import { Context, Effect, Exit, Layer, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect, test } from "vitest"
import * as FaultyEventStore from "../../../testing/src/FaultyEventStore.ts"
import { invariants } from "../../../testing/src/Invariants.ts"
import { Account } from "../../src/ledger/Account.ts"
import { credits, opened } from "./Examples.ts"

const HOUR = 3_600_000
const DAY = 24 * HOUR
const SWEEPS = { ttl: "1 hour", poll: "30 minutes", sweepEvery: "4 hours" } as const

interface Stores {
  readonly events: EventStore.EventStore["Service"]
  readonly states: StateStore.StateStore["Service"]
}

/** A process over shared stores. `die`: from now on nothing that it writes arrives, and it ends. */
const host = (shared: Stores, options: AccountUpkeepOptions = {}) =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    let { append } = shared.events
    const events = { ...shared.events, append: (...of: Parameters<typeof append>) => Effect.suspend(() => append(...of)) }
    const stores = Layer.mergeAll(Layer.succeed(EventStore.EventStore, events), Layer.succeed(StateStore.StateStore, shared.states))
    const layer = AccountUpkeep.layer({ ...SWEEPS, ...options }).pipe(Layer.provideMerge(Ledger.layer()), Layer.provide(stores))
    const context = yield* Scope.provide(Layer.build(Layer.fresh(layer)), scope)
    return {
      ledger: Context.get(context, Ledger),
      upkeep: Context.get(context, AccountUpkeep),
      cut: Effect.sync(() => {
        append = FaultyEventStore.make(shared.events, { rates: { before: 1 }, unavailable: 1 }).append
      }),
      close: Scope.close(scope, Exit.void)
    }
  })

const stores = Effect.gen(function* () {
  return { events: yield* MemoryEventStore.make, states: yield* MemoryStateStore.make }
})

const eventsOf = ({ events }: Stores) =>
  Effect.map(Stream.runCollect(events.readAll(EventStore.start)), (log) =>
    log.map(({ data, stream, type, metadata }) => ({
      stream,
      event: Account.codec.decode(type, data),
      at: Date.parse(JSON.parse(metadata).at)
    }))
  )

const grantsOf = (log: ReadonlyArray<{ readonly event: AccountEvent; readonly at: number }>) =>
  log.flatMap(({ at, event }) => (event._tag === "CreditsGranted" && event.recurring ? [[event.recurring.period, at]] : []))

const tagsOf = (log: ReadonlyArray<{ readonly event: AccountEvent }>) => log.map(({ event }) => event._tag)

/** Lets time pass in steps, with turns for what runs in the background. */
const elapse = (millis: number, step = HOUR / 2) =>
  Effect.gen(function* () {
    for (let left = millis; left > 0; left -= step) {
      yield* TestClock.adjust(Math.min(step, left))
      for (let turn = 0; turn < 20; turn++) yield* Effect.yieldNow
    }
  })

const testing = (name: string, body: (shared: Stores) => Effect.Effect<void, unknown, Scope.Scope>) =>
  test(name, () =>
    Effect.gen(function* () {
      const shared = yield* stores
      yield* body(shared)
      expect(invariants(yield* eventsOf(shared))).toEqual([])
    }).pipe(Effect.scoped, Effect.provide(TestClock.layer()), (effect) => Effect.runPromise(effect as Effect.Effect<void>))
  )

const daily = { grantId: "grant_1", amount: credits(100), source: "promotion", every: "day" } as const

describe("a recurring grant of an account that nobody calls", () => {
  testing("grants each period when it begins", (shared) =>
    Effect.gen(function* () {
      const { ledger } = yield* host(shared)
      yield* ledger.execute("acc_1", Decisions.open(opened))
      yield* ledger.execute("acc_1", Decisions.startRecurringGrant({ ...daily, until: 3 * DAY + 1 }))
      yield* elapse(5 * DAY)
      const log = yield* eventsOf(shared)
      expect(grantsOf(log)).toEqual([0, 1, 2, 3].map((n) => [n, n * DAY]))
      expect(tagsOf(log).filter((tag) => tag === "RecurringGrantStopped")).toHaveLength(1)
    })
  )

  testing("is granted once where two hosts run, and goes on when one of them dies", (shared) =>
    Effect.gen(function* () {
      const [one, other] = [yield* host(shared), yield* host(shared)]
      yield* one.ledger.execute("acc_1", Decisions.open(opened))
      yield* one.ledger.execute("acc_1", Decisions.startRecurringGrant(daily))
      yield* elapse(1.25 * DAY)
      yield* Effect.all(
        [one, other].map(({ ledger }) => ledger.execute("acc_1", Decisions.applyDue)),
        { concurrency: "unbounded" }
      )
      // Its writes are lost from now on; then it ends
      yield* one.cut
      yield* elapse(0.25 * DAY)
      yield* one.close
      yield* elapse(1.6 * DAY)
      const periods = grantsOf(yield* eventsOf(shared))
      expect(periods.map(([period]) => period)).toEqual([0, 1, 2, 3])
    })
  )

  for (const [expires, expected] of [
    ["next", [0, 4]],
    ["never", [0, 1, 2, 3, 4]]
  ] as const) {
    testing(`after a pause of three periods, with lots that expire ${expires}, grants ${expected.length - 1} of them`, (shared) =>
      Effect.gen(function* () {
        const first = yield* host(shared)
        yield* first.ledger.execute("acc_1", Decisions.open(opened))
        yield* first.ledger.execute("acc_1", Decisions.startRecurringGrant({ ...daily, every: "month", expires }))
        yield* first.close
        yield* TestClock.adjust(Periods.startOf(0, "month", 4) + DAY)
        yield* host(shared)
        yield* elapse(2 * HOUR)
        expect(grantsOf(yield* eventsOf(shared)).map(([period]) => period)).toEqual(expected)
      })
    )
  }

  testing("that was stopped has no deadline", (shared) =>
    Effect.gen(function* () {
      const { ledger, upkeep } = yield* host(shared)
      yield* ledger.execute("acc_1", Decisions.open(opened))
      yield* ledger.execute("acc_1", Decisions.startRecurringGrant(daily))
      yield* elapse(2 * HOUR)
      expect(yield* upkeep.list()).toMatchObject([{ key: "grant_1", dueAt: DAY }])
      yield* ledger.execute("acc_1", Decisions.close)
      yield* elapse(2 * HOUR)
      expect(yield* upkeep.list()).toEqual([])
    })
  )
})

describe("a lot that will expire", () => {
  const grant = (lotId: string, hours: number) =>
    Decisions.grant({ lotId, amount: credits(10), source: "promotion", expiresAt: hours * HOUR })
  const told = ["LotExpiryAnnounced", "LotExpired"]

  testing("is told before its expiry, and expires on time, each once, at two hosts of which one dies", (shared) =>
    Effect.gen(function* () {
      const [one] = [yield* host(shared, { expiryNotice: "7 hours" }), yield* host(shared, { expiryNotice: "7 hours" })]
      yield* one.ledger.execute("acc_1", Decisions.open(opened))
      yield* one.ledger.execute("acc_1", grant("a", 20))
      yield* elapse(12 * HOUR)
      // The announcement of its host is lost
      yield* one.cut
      yield* elapse(2 * HOUR)
      yield* one.close
      yield* elapse(20 * HOUR)
      const log = (yield* eventsOf(shared)).filter(({ event }) => told.includes(event._tag))
      expect(log).toMatchObject([
        { event: { _tag: "LotExpiryAnnounced", lotId: "a", amount: 10, expiresAt: 20 * HOUR } },
        { event: { _tag: "LotExpired" } }
      ])
      expect(log[0]?.at).toBeGreaterThanOrEqual(13 * HOUR)
      expect(log[0]?.at).toBeLessThan(20 * HOUR)
      expect(log[1]?.at).toBe(20 * HOUR)
    })
  )

  testing(
    "is not told if its whole lifetime is no longer than the notice, or if it is used up; it expires on time all the same",
    (shared) =>
      Effect.gen(function* () {
        const { ledger, upkeep } = yield* host(shared, { expiryNotice: "7 hours" })
        yield* ledger.execute("acc_1", Decisions.open(opened))
        yield* ledger.execute("acc_1", grant("used", 19))
        const call = { requestId: "req", operation: "grammar.check", quantity: 1, priceVersion: 1, lifetime: 60_000 }
        yield* ledger.execute("acc_1", Decisions.reserve({ reservationId: "res_1", unitPrice: credits(10), ...call }))
        yield* ledger.execute("acc_1", Decisions.settle({ reservationId: "res_1", replyHash: "reply" }))
        yield* elapse(10 * HOUR)
        yield* ledger.execute("acc_1", grant("short", 17))
        yield* ledger.execute("acc_1", grant("long", 18))
        yield* elapse(30 * HOUR)
        const log = (yield* eventsOf(shared)).flatMap(({ at, event }) =>
          event._tag === "LotExpiryAnnounced" || event._tag === "LotExpired" ? [[event._tag, event.lotId, at / HOUR]] : []
        )
        expect(log).toEqual([
          ["LotExpiryAnnounced", "long", 11],
          ["LotExpired", "short", 17],
          ["LotExpired", "long", 18]
        ])
        // Nothing is due any more, though no event said that the used-up lot is gone
        expect(yield* upkeep.status).toMatchObject({ failing: [] })
      })
  )

  testing("is not told where the host wants no notices", (shared) =>
    Effect.gen(function* () {
      const { ledger, upkeep } = yield* host(shared)
      yield* ledger.execute("acc_1", Decisions.open(opened))
      yield* ledger.execute("acc_1", grant("a", 20))
      yield* elapse(30 * HOUR)
      expect(tagsOf(yield* eventsOf(shared))).toEqual(["AccountOpened", "CreditsGranted"])
      expect(yield* upkeep.list()).toEqual([])
    })
  )
})
