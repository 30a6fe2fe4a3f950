/** Prices that another host publishes while calls arrive: every hold is at the price that was the newest when it was written. */
import { EventStore, StreamName } from "@millrace/event-sourcing"
import { Effect, Exit, Option, Stream } from "effect"
import * as fc from "fast-check"
import { describe, expect, test } from "vitest"
import * as FaultyEventStore from "../../../testing/src/FaultyEventStore.ts"
import * as SeededRandom from "../../../testing/src/SeededRandom.ts"
import { CostExceedsLimit } from "../../src/billing/Charge.ts"
import { PricePlan } from "../../src/billing/PricePlan.ts"
import { Account } from "../../src/ledger/Account.ts"
import { all, credits, host, makeBench, patiently, type Stores, setting, UNIT, underTestClock } from "./Bench.ts"

interface Scenario {
  readonly seed: number
  /** Prices in credits, in the order in which the other host publishes them, and the milliseconds before each. */
  readonly prices: ReadonlyArray<{ readonly price: number; readonly after: number }>
  /** The most that each call may cost in credits, if it says so, whether it has an idempotency key, and the milliseconds before it. */
  readonly calls: ReadonlyArray<{ readonly maxCost: number | undefined; readonly isKeyed: boolean; readonly after: number }>
  readonly faults: number
  readonly byCallback: boolean
}

const after = fc.integer({ min: 0, max: 60 })

const scenarios: fc.Arbitrary<Scenario> = fc.record({
  seed: fc.nat(),
  prices: fc.array(fc.record({ price: fc.integer({ min: 0, max: 9 }), after }), { maxLength: 4 }),
  calls: fc.array(fc.record({ maxCost: fc.option(fc.integer({ min: 1, max: 9 }), { nil: undefined }), isKeyed: fc.boolean(), after }), {
    minLength: 1,
    maxLength: 8
  }),
  faults: fc.constantFrom(0, 0, 0.1),
  byCallback: fc.boolean()
})

/** Each hold with the newest plan in the log before it. */
const holdsOf = ({ events }: Stores) =>
  Effect.map(Stream.runCollect(events.readAll(EventStore.start)), (log) => {
    let newest = { version: 0, unitPrice: 0 }
    const holds = []
    for (const { data, stream, type } of log) {
      if (StreamName.category(stream) === PricePlan.category) {
        const { version, prices } = PricePlan.codec.decode(type, data)
        newest = { version, unitPrice: prices["bench.work"] ?? 0 }
      }
      if (StreamName.category(stream) !== Account.category) continue
      const event = Account.codec.decode(type, data)
      if (event._tag === "CreditReserved") holds.push({ hold: { version: event.priceVersion, unitPrice: event.amount }, newest })
    }
    return holds
  })

const ran = Effect.fnUntraced(function* ({ seed, prices, calls, faults, byCallback }: Scenario) {
  const { accountId, here, shared } = yield* setting({ byCallback })
  const there = yield* host(shared, makeBench())
  yield* here.grant(accountId, 1_000 * UNIT, "lot_more")
  const random = SeededRandom.make(seed)
  // A store whose answers take a while, and that tells no end of a stream at once
  const options = { random, delay: 20, rates: { before: faults, after: faults, unanswered: faults }, lateBy: 50 }
  const slow = FaultyEventStore.make(shared.events, options)
  yield* here.through(() => ({ events: slow }))
  const publishing = Effect.forEach(prices, ({ price, after }) =>
    Effect.andThen(Effect.sleep(after), there.prices.publish({ "bench.work": credits(price * UNIT) }))
  )
  const call = ({ maxCost, isKeyed, after }: Scenario["calls"][number], i: number) => {
    const options = { ...(isKeyed ? { key: `key_${i}` } : {}), ...(maxCost === undefined ? {} : { maxCost: maxCost * UNIT }) }
    return Effect.exit(Effect.delay(here.call(accountId, options), after))
  }
  const [exits] = yield* patiently(Effect.all([Effect.forEach(calls, call, all), publishing], all), 5)
  yield* here.heal
  const refusals = slow.trace.filter(({ outcome }) => outcome.endsWith("ConditionFailed")).length
  return { exits, holds: yield* holdsOf(shared), refusals }
})

describe("a price that is published while calls arrive", () => {
  test("counts for every hold that is written after it", async () => {
    const seen = { holds: 0, refusals: 0, tooCostly: 0 }
    const run = (scenario: Scenario) =>
      Effect.gen(function* () {
        const { exits, holds, refusals } = yield* ran(scenario)
        for (const { hold, newest } of holds) expect(hold).toEqual(newest)
        const highest = Math.max(1, ...scenario.prices.map(({ price }) => price))
        for (const [i, exit] of exits.entries()) {
          const { maxCost = highest } = scenario.calls[i] ?? {}
          if (Exit.isSuccess(exit)) expect(exit.value.billed?.charged ?? 0).toBeLessThanOrEqual(maxCost * UNIT)
          else if (Option.getOrUndefined(Exit.findErrorOption(exit)) instanceof CostExceedsLimit) {
            expect(highest).toBeGreaterThan(maxCost)
            seen.tooCostly++
          }
        }
        seen.holds += holds.length
        seen.refusals += refusals
      })
    await fc.assert(
      fc.asyncProperty(scenarios, (scenario) => underTestClock(run(scenario))),
      { numRuns: 150 }
    )
    // Shows that the scenarios still meet these cases
    expect(seen.holds).toBeGreaterThan(100)
    expect(seen.refusals).toBeGreaterThan(10)
    expect(seen.tooCostly).toBeGreaterThan(10)
  })
})
