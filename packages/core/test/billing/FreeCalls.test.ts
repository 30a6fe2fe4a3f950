/** Free calls under an idempotency key. They hold nothing, so only the reply store prevents a second run. */
import { Effect, Exit, Fiber, Schema } from "effect"
import { describe, expect } from "vitest"
import * as Operation from "../../src/Operation.ts"
import { NotFound } from "../../src/work/OperationError.ts"
import {
  all,
  elapse,
  eventsIn,
  host,
  hours,
  LIFETIME,
  makeBench,
  mortalHost,
  opened,
  paused,
  quiet,
  range,
  setting,
  stores,
  testing,
  told
} from "./Bench.ts"

const KEYED = { operation: "free", key: "key" } as const

describe("a free call under a key", () => {
  testing(
    "runs once, is replayed byte for byte for a day, and writes no event",
    Effect.gen(function* () {
      const { shared, bench, here, accountId } = yield* setting()
      const first = yield* here.call(accountId, KEYED)
      const again = yield* here.call(accountId, KEYED)
      expect(again).toEqual({ ...first, replayed: true })
      yield* elapse(hours(23))
      expect(yield* here.call(accountId, KEYED)).toEqual({ ...first, replayed: true })
      expect(bench.runs).toHaveLength(1)
      expect(yield* eventsIn(shared)).toEqual([])
      yield* elapse(hours(2))
      expect(yield* here.call(accountId, KEYED)).toMatchObject({ replayed: false })
      expect(bench.runs).toHaveLength(2)
    })
  )

  testing(
    "runs once of many concurrent calls at two hosts: the others fail with InFlight",
    Effect.gen(function* () {
      const { shared, bench, here, accountId } = yield* setting()
      const there = yield* host(shared, bench)
      const { started, proceed } = yield* paused(bench)
      const first = yield* Effect.forkChild(here.call(accountId, KEYED))
      yield* started
      const others = range(10).map((i) => told((i % 2 === 0 ? here : there).call(accountId, KEYED)))
      expect(new Set(yield* Effect.all(others, all))).toEqual(new Set(["InFlight"]))
      yield* proceed
      expect(yield* Fiber.join(first)).toMatchObject({ replayed: false })
      expect(yield* there.call(accountId, KEYED)).toMatchObject({ replayed: true })
      expect(bench.runs).toHaveLength(1)
    })
  )

  testing(
    "runs for another account, and is refused for another request",
    Effect.gen(function* () {
      const { bench, here, accountId } = yield* setting()
      const other = yield* opened(here, 0, "acc_2")
      yield* here.call(accountId, KEYED)
      expect(yield* told(here.call(accountId, { ...KEYED, text: "other" }))).toBe("KeyReused")
      expect(yield* told(here.call(accountId, { key: "key", text: "other" }))).toBe("KeyReused")
      expect(yield* here.call(other, KEYED)).toMatchObject({ replayed: false })
      expect(bench.runs).toHaveLength(2)
    })
  )

  testing(
    "frees its key if it fails or its caller leaves",
    Effect.gen(function* () {
      const { shared, bench, here, accountId } = yield* setting()
      const { answer } = bench
      bench.answer = () => Effect.fail(new NotFound({ resource: "thing" }))
      expect(yield* told(here.call(accountId, KEYED))).toBe("NotFound")
      bench.answer = () => Effect.never
      const leaving = yield* Effect.forkChild(here.call(accountId, KEYED))
      yield* quiet
      yield* Fiber.interrupt(leaving)
      expect(yield* shared.states.list("replies")).toEqual([])
      bench.answer = answer
      expect(yield* here.call(accountId, KEYED)).toMatchObject({ replayed: false })
    })
  )

  testing(
    "frees its key once its time limit has passed, if its process died",
    Effect.gen(function* () {
      const shared = yield* stores
      const bench = makeBench()
      const there = yield* host(shared, bench)
      const accountId = yield* opened(there, 0)
      const here = yield* mortalHost(shared, bench)
      const { answer } = bench
      bench.answer = () => Effect.never
      const lost = yield* Effect.forkChild(Effect.exit(here.call(accountId, KEYED)))
      yield* quiet
      yield* here.die
      bench.answer = answer
      yield* elapse(LIFETIME - 1)
      expect(yield* told(there.call(accountId, KEYED))).toBe("InFlight")
      yield* elapse(1)
      expect(yield* there.call(accountId, KEYED)).toMatchObject({ replayed: false })
      yield* Fiber.interrupt(lost)
    })
  )

  testing(
    "runs each time if its method is GET",
    Effect.gen(function* () {
      const { shared, here, accountId } = yield* setting()
      let runs = 0
      const read = Operation.make("bench.free", {
        summary: "Read",
        route: { method: "GET", path: "/bench" },
        success: Schema.Int,
        run: () => Effect.sync(() => ({ data: ++runs }))
      })
      const caller = { accountId, requestId: "req", idempotency: { key: "key", request: "read" } }
      for (const data of ["1", "2"]) expect(yield* here.charge.run(read, {}, caller)).toMatchObject({ data, replayed: false })
      expect(yield* shared.states.list("replies")).toEqual([])
    })
  )

  testing(
    "is refused and does not run while the reply store is unavailable",
    Effect.gen(function* () {
      const { bench, here, accountId } = yield* setting()
      yield* here.cut
      expect(Exit.isFailure(yield* Effect.exit(here.call(accountId, KEYED)))).toBe(true)
      expect(bench.runs).toEqual([])
    })
  )
})
