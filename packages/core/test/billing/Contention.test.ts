import { Effect, Fiber } from "effect"
import { describe, expect } from "vitest"
import * as Decisions from "../../src/ledger/Decisions.ts"
import {
  all,
  count,
  credits,
  elapse,
  endsIn,
  eventsIn,
  host,
  makeBench,
  minutes,
  mortalHost,
  opened,
  patiently,
  paused,
  range,
  setting,
  stores,
  testing,
  told,
  UNIT
} from "./Bench.ts"

describe("64 clients that compete for the last credits", () => {
  for (const hosts of [1, 2])
    for (const [balance, units] of [
      [0, 1],
      [1, 1],
      [UNIT - 1, 1],
      [10 * UNIT, 1],
      [10 * UNIT + UNIT - 1, 1],
      [10 * UNIT, 3],
      [63 * UNIT, 1],
      [64 * UNIT, 1],
      [65 * UNIT, 1],
      [100 * UNIT, 7]
    ] as const) {
      const affordable = Math.min(64, Math.floor(balance / (units * UNIT)))
      testing(
        `at ${hosts === 1 ? "one host" : "two hosts"}: ${balance} thousandths pay for ${affordable} calls of ${units}, and no more`,
        Effect.gen(function* () {
          const shared = yield* stores
          const bench = makeBench()
          const open = yield* Effect.forEach(range(hosts), () => host(shared, bench, { trial: false }))
          const [first] = open
          if (first === undefined) throw new Error("no host")
          const accountId = yield* opened(first, balance)
          const { proceed } = yield* paused(bench)
          const calls = yield* Effect.forEach(range(64), (i) =>
            Effect.forkChild(told((open[i % hosts] ?? first).call(accountId, { units })))
          )
          // Hosts back off after conflicts, for which time must pass
          for (const _ of range(50)) yield* elapse(1)
          // All calls with a hold run, and none has settled yet
          expect(yield* first.balance(accountId)).toEqual({
            available: balance - affordable * units * UNIT,
            held: affordable * units * UNIT
          })
          yield* proceed
          const ends = count(yield* patiently(Effect.forEach(calls, Fiber.join), 1))
          expect(ends["reply"] ?? 0).toBe(affordable)
          expect(ends["InsufficientCredits"] ?? 0).toBe(64 - affordable)
          expect(bench.runs).toHaveLength(affordable)
          for (const each of open)
            expect(yield* each.balance(accountId)).toEqual({ available: balance - affordable * units * UNIT, held: 0 })
        })
      )
    }

  testing(
    "all run if their calls fail, because refunded credits can be held again",
    Effect.gen(function* () {
      const { bench, here, accountId } = yield* setting()
      bench.answer = () => Effect.die(new Error("a bug"))
      for (const _ of range(5)) yield* Effect.forEach(range(64), () => told(here.call(accountId, { units: 3 })), all)
      expect(yield* here.balance(accountId)).toEqual({ available: 10 * UNIT, held: 0 })
    })
  )
})

describe("two hosts on one store", () => {
  testing(
    "a grant, clawback, suspension or price of one applies to the other's next call",
    Effect.gen(function* () {
      const shared = yield* stores
      const bench = makeBench()
      const [here, there] = [yield* host(shared, bench), yield* host(shared, bench)]
      const accountId = yield* opened(there, UNIT)
      const next = told(here.call(accountId))
      expect(yield* next).toBe("reply")
      expect(yield* next).toBe("InsufficientCredits")
      yield* there.grant(accountId, UNIT, "lot_promotion")
      expect(yield* next).toBe("reply")
      yield* there.grant(accountId, 5 * UNIT, "lot_paid", "topup")
      expect(yield* next).toBe("reply")
      yield* there.ledger.execute(accountId, Decisions.suspend)
      expect(yield* next).toBe("AccountSuspended")
      yield* there.ledger.execute(accountId, Decisions.reinstate)
      yield* there.ledger.execute(accountId, Decisions.clawBack("lot_paid"))
      expect(yield* next).toBe("AccountInDebt")
      yield* there.ledger.execute(accountId, Decisions.reverseClawback("lot_paid"))
      expect(yield* next).toBe("reply")
      yield* there.prices.publish({ "bench.work": credits(4 * UNIT) })
      expect(yield* next).toBe("InsufficientCredits")
      yield* there.prices.publish({ "bench.work": credits(3 * UNIT) })
      expect(yield* next).toBe("reply")
      yield* there.ledger.execute(accountId, Decisions.close)
      expect(yield* next).toBe("AccountClosed")
      expect(yield* here.balance(accountId)).toEqual({ available: 0, held: 0 })
    })
  )

  testing(
    "recovery of one does not refund a call that runs at the other",
    Effect.gen(function* () {
      const shared = yield* stores
      const bench = makeBench()
      const recovery = { sweepEvery: "1 second" } as const
      const here = yield* host(shared, bench, { recovery })
      const accountId = yield* opened(here, 10 * UNIT)
      const { started, proceed } = yield* paused(bench)
      // Runs for 29 of its 30 seconds
      const running = yield* Effect.forEach(["work", "create"] as const, (operation) =>
        Effect.forkChild(told(here.call(accountId, { operation })))
      )
      yield* started
      for (const _ of range(28)) {
        const there = yield* mortalHost(shared, makeBench(), { recovery })
        yield* elapse(1_000)
        yield* told(there.call(accountId, { operation: "free" }))
        yield* there.die
      }
      expect(yield* endsIn(shared)).toEqual(["CreditReserved", "CreditReserved"])
      yield* proceed
      expect(yield* Effect.forEach(running, Fiber.join)).toEqual(["reply", "reply"])
      yield* elapse(minutes(5))
      expect(count(yield* endsIn(shared))).toEqual({ CreditReserved: 2, OperationSucceeded: 2 })
      expect(bench.recovered).toEqual([])
      expect(yield* here.balance(accountId)).toEqual({ available: 8 * UNIT, held: 0 })
    })
  )

  testing(
    "under load with and without keys, every hold ends once and no credit is spent twice",
    Effect.gen(function* () {
      const shared = yield* stores
      const bench = makeBench()
      const { answer } = bench
      bench.answer = (...of) =>
        bench.runs.length % 3 === 0 ? Effect.die(new Error("a bug")) : Effect.andThen(Effect.yieldNow, answer(...of))
      const [here, there] = [yield* host(shared, bench), yield* host(shared, bench)]
      const accountId = yield* opened(here, 40 * UNIT)
      for (const round of range(4)) {
        const calls = Effect.forEach(
          range(64),
          (i) => told((i % 2 === 0 ? here : there).call(accountId, i % 4 === 0 ? {} : { key: `key ${round} ${i % 8}`, text: `${i % 8}` })),
          all
        )
        yield* patiently(calls, 1)
      }
      const log = yield* eventsIn(shared)
      const holds = log.filter(({ _tag }) => _tag === "CreditReserved")
      const ends = log.filter(({ _tag }) => _tag === "OperationSucceeded" || _tag === "Refunded")
      expect(ends).toHaveLength(holds.length)
      const successes = log.filter(({ _tag }) => _tag === "OperationSucceeded")
      expect(yield* there.balance(accountId)).toEqual({ available: (40 - successes.length) * UNIT, held: 0 })
      expect(successes.length).toBeGreaterThan(10)
    })
  )
})
