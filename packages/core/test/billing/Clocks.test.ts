/** Accounts whose time is ahead of a host's clock, and hosts whose clocks are set: calls are answered and charged once. */
import { EventStore } from "@millrace/event-sourcing"
import { Clock, Effect } from "effect"
import * as fc from "fast-check"
import { describe, expect, test } from "vitest"
import * as Audit from "../../../audit/src/Audit.ts"
import * as WrongClock from "../../../testing/src/WrongClock.ts"
import * as Decisions from "../../src/ledger/Decisions.ts"
import {
  ACCOUNT,
  credits,
  elapse,
  endsIn,
  eventsIn,
  host,
  hours,
  KEY,
  makeBench,
  minutes,
  opened,
  patiently,
  range,
  SETTLED,
  seconds,
  setting,
  stores,
  testing,
  told,
  UNIT,
  underTestClock
} from "./Bench.ts"

/** A host whose clock is `apart.ahead` milliseconds ahead; `at` runs an effect under that clock. */
const hostAhead = (...of: Parameters<typeof host>) =>
  Effect.gen(function* () {
    const apart = { ahead: 0 }
    const clock = yield* WrongClock.make(apart)
    const wrong = yield* Effect.provideService(host(...of), Clock.Clock, clock)
    const at = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.provideService(effect, Clock.Clock, clock)
    return { ...wrong, apart, at }
  })

describe("an account whose time is ahead of a host's clock", () => {
  testing(
    "serves calls with an idempotency key, also after a restart of the host",
    Effect.gen(function* () {
      const { shared, bench, here, accountId } = yield* setting()
      const fast = yield* hostAhead(shared, bench)
      for (const ahead of [minutes(15), hours(24), 365 * hours(24)]) {
        fast.apart.ahead = ahead
        yield* fast.at(fast.grant(accountId, 2 * UNIT, `lot_${ahead}`))
        const before = bench.runs.length
        const key = { key: `key ${ahead}` }
        expect(yield* told(here.call(accountId, key))).toBe("reply")
        expect(yield* told(here.call(accountId, key))).toBe("replayed")
        const restarted = yield* host(shared, bench)
        expect(yield* told(restarted.call(accountId, key))).toBe("replayed")
        expect(yield* told(restarted.call(accountId, { key: `another ${ahead}` }))).toBe("reply")
        expect(bench.runs).toHaveLength(before + 2)
      }
      expect(yield* endsIn(shared)).toEqual([...SETTLED, ...SETTLED, ...SETTLED, ...SETTLED, ...SETTLED, ...SETTLED])
    })
  )

  testing(
    "has a balance as of its own time and as of earlier instants",
    Effect.gen(function* () {
      const { shared, bench, here, accountId } = yield* setting()
      const fast = yield* hostAhead(shared, bench)
      const start = yield* Clock.currentTimeMillis
      yield* here.grant(accountId, UNIT, "lot_short", "promotion", start + minutes(5))
      fast.apart.ahead = minutes(15)
      yield* fast.at(fast.grant(accountId, 2 * UNIT, "lot_later"))
      expect(yield* here.balance(accountId)).toEqual({ available: 12 * UNIT, held: 0 })
      expect(yield* here.ledger.balance(accountId, start + minutes(1))).toMatchObject({ available: 11 * UNIT })
      expect(yield* here.ledger.balance(accountId, start + minutes(6))).toMatchObject({ available: 10 * UNIT })
      expect(yield* here.ledger.balance(accountId, start + minutes(15))).toMatchObject({ available: 12 * UNIT })
    })
  )

  testing(
    "regrants what each of three reversals returns to an expired lot while its time stands still",
    Effect.gen(function* () {
      const { shared, bench, accountId } = yield* setting()
      const start = yield* Clock.currentTimeMillis
      const fast = yield* hostAhead(shared, bench)
      yield* fast.grant(accountId, 2 * UNIT, "lot_paid", "topup", start + minutes(5))
      yield* fast.ledger.execute(accountId, Decisions.clawBack("lot_paid"))
      fast.apart.ahead = minutes(15)
      yield* fast.ledger.execute(accountId, Decisions.suspend)
      // Corrected, so that the account's time stands still
      fast.apart.ahead = 0
      for (const i of range(3)) {
        const { events } = yield* fast.ledger.execute(accountId, Decisions.reverseClawback("lot_paid"))
        expect(events.map(({ _tag }) => _tag)).toEqual(["ClawbackReversed", "LotExpired", "CreditsGranted"])
        yield* fast.ledger.execute(accountId, Decisions.clawBack("lot_paid"))
        // Repays the debt of the clawback, so that the next reversal returns credits
        yield* fast.grant(accountId, 2 * UNIT, `lot_${i}`, "topup")
      }
      expect(yield* fast.balance(accountId)).toEqual({ available: 16 * UNIT, held: 0 })
    })
  )
})

testing(
  "prices published by a host with a fast clock are in force at once, at every host and in the audit",
  Effect.gen(function* () {
    const { shared, bench, here, accountId } = yield* setting()
    const fast = yield* hostAhead(shared, bench)
    fast.apart.ahead = minutes(15)
    yield* fast.at(fast.prices.publish({ "bench.work": credits(2 * UNIT) }))
    expect(yield* here.call(accountId)).toMatchObject({ billed: { charged: 2 * UNIT } })
    const { problems } = yield* Effect.provideService(Audit.run(), EventStore.EventStore, shared.events)
    expect(problems).toEqual([])
  })
)

testing(
  "a call fails with Busy after five stale lookups",
  Effect.gen(function* () {
    const { bench, here, accountId } = yield* setting()
    let [lookups, n] = [0, 0]
    /** Two successes under other keys, so far apart that the first is forgotten. */
    const others = Effect.gen(function* () {
      lookups++
      for (const _ of range(2)) {
        const reservationId = `res_other_${++n}`
        const call = { requestId: "r", operation: "bench.work", quantity: 1, priceVersion: 2, lifetime: seconds(60) }
        const key = { hash: `other_${n}`, fingerprint: "f", since: (yield* here.ledger.read(accountId)).state.memory.recorded }
        yield* here.ledger.execute(accountId, Decisions.reserve({ reservationId, unitPrice: credits(1), ...call, key }))
        yield* here.ledger.execute(accountId, Decisions.settle({ reservationId, replyHash: "h" }))
        yield* elapse(minutes(25))
      }
    }).pipe(Effect.orDie)
    yield* others
    lookups = 0
    yield* here.through(({ states }) => ({
      states: {
        ...states,
        get: (space, key) => (space === "replies" ? Effect.tap(states.get(space, key), () => others) : states.get(space, key))
      }
    }))
    expect(yield* told(here.call(accountId, KEY))).toBe("Busy")
    expect(lookups).toBe(5)
    expect(bench.runs).toHaveLength(0)
    yield* here.heal
    expect(yield* told(here.call(accountId, KEY))).toBe("reply")
  })
)

describe("clocks set back and forth between commands", () => {
  const step = fc.record({
    host: fc.nat(1),
    by: fc.constantFrom(0, 0, 1_000, -1_000, minutes(11), -minutes(11), minutes(45), -minutes(45), hours(2), -hours(2)),
    does: fc.constantFrom("call", "call", "call", "fail", "elapse", "grant", "restart"),
    key: fc.nat(2)
  })

  test(
    "block no call and charge no key twice",
    () =>
      fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), (steps) =>
          Effect.gen(function* () {
            const shared = yield* stores
            const bench = makeBench()
            const open = hostAhead(shared, bench)
            const hosts = [yield* open, yield* open]
            yield* opened(hosts[0] as (typeof hosts)[0], 100 * UNIT)
            for (const [i, { by, does, host, key }] of steps.entries()) {
              const one = hosts[host]
              if (one === undefined) continue
              // Within ten hours: a reply is kept for a day by each host's clock
              if (Math.abs(one.apart.ahead + by) < hours(5)) one.apart.ahead += by
              if (does === "elapse") yield* elapse(minutes(1))
              if (does === "grant") yield* one.at(one.grant(ACCOUNT, UNIT, `lot_${i}`))
              if (does === "restart") {
                const { ahead } = one.apart
                const anew = yield* open
                anew.apart.ahead = ahead
                hosts[host] = anew
              }
              if (does !== "call" && does !== "fail") continue
              bench.answer =
                does === "fail" ? () => Effect.die("broken") : ({ text }) => Effect.succeed({ data: { text, count: text.length } })
              const end = yield* patiently(one.at(told(one.call(ACCOUNT, { key: `key ${key}` }))))
              expect(["reply", "replayed", "defect"]).toContain(end)
            }
            const keyed = new Map<string, string>()
            const charged = new Map<string, number>()
            for (const event of yield* eventsIn(shared)) {
              if (event._tag === "CreditReserved") keyed.set(event.reservationId, event.keyHash ?? "")
              if (event._tag !== "OperationSucceeded") continue
              const key = keyed.get(event.reservationId) ?? ""
              charged.set(key, (charged.get(key) ?? 0) + 1)
            }
            expect([...charged.values()].filter((times) => times > 1)).toEqual([])
          }).pipe(underTestClock)
        ),
        { numRuns: 40, seed: 1 }
      ),
    120_000
  )
})
