import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect } from "vitest"
import * as Decisions from "../../src/ledger/Decisions.ts"
import { InvalidInput, NotFound, UpstreamNotConfigured, UpstreamUnavailable } from "../../src/work/OperationError.ts"
import {
  ACCOUNT,
  credits,
  elapse,
  endsIn,
  eventsIn,
  host,
  LIFETIME,
  logText,
  makeBench,
  opened,
  paused,
  quiet,
  REFUNDED,
  range,
  SETTLED,
  START,
  seconds,
  setting,
  stores,
  TIMEOUT,
  testing,
  told,
  UNIT
} from "./Bench.ts"

describe("a call that succeeds", () => {
  testing(
    "is held, run, charged and answered",
    Effect.gen(function* () {
      const { shared, bench, here, accountId } = yield* setting()
      const reply = yield* here.call(accountId, { text: "hello", units: 3, requestId: "req_a" })
      expect(reply).toEqual({
        requestId: "req_a",
        data: '{"text":"hello","count":5}',
        billed: { charged: 3 * UNIT, balance: 7 * UNIT },
        replayed: false
      })
      const [hold, success] = yield* eventsIn(shared)
      expect(bench.runs).toEqual([{ accountId, requestId: "req_a", reservationId: expect.stringMatching(/^res_/u) }])
      const reservationId = bench.runs[0]?.reservationId
      expect(hold).toMatchObject({
        reservationId,
        requestId: "req_a",
        operation: "bench.work",
        quantity: 3,
        priceVersion: 1,
        amount: 3 * UNIT
      })
      expect(hold).toMatchObject({ expiresAt: START + LIFETIME })
      expect(success).toMatchObject({ _tag: "OperationSucceeded", reservationId, charged: 3 * UNIT, quantity: 3 })
      expect((yield* logText(shared)).match(/"\$correlationId":"req_a"|\\"\$correlationId\\":\\"req_a\\"/gu)).toHaveLength(2)
      expect(yield* here.balance(accountId)).toEqual({ available: 7 * UNIT, held: 0 })
    })
  )

  testing(
    "is charged for the units done, if they are fewer than held; no units cost nothing",
    Effect.gen(function* () {
      const { shared, bench, here, accountId } = yield* setting()
      for (const [quantity, left] of [
        [2, 8],
        [0, 8],
        [5, 3]
      ] as const) {
        bench.answer = () => Effect.succeed({ data: { text: "", count: 0 }, quantity })
        const { billed } = yield* here.call(accountId, { units: 5 })
        expect(billed).toEqual({ charged: quantity * UNIT, balance: left * UNIT })
      }
      const charges = (yield* eventsIn(shared)).filter(({ _tag }) => _tag === "OperationSucceeded")
      expect(charges).toMatchObject([
        { quantity: 2, charged: 2 * UNIT },
        { quantity: 0, charged: 0, lots: [] },
        { quantity: 5, charged: 5 * UNIT }
      ])
    })
  )

  testing(
    "at price 0 writes no event and returns the balance",
    Effect.gen(function* () {
      const { shared, bench, here, accountId } = yield* setting()
      bench.answer = () => Effect.as(Effect.orDie(here.grant(accountId, 5 * UNIT, "lot_2")), { data: { text: "topped up", count: 1 } })
      const reply = yield* here.call(accountId, { operation: "free", requestId: "req_a" })
      expect(reply).toEqual({
        requestId: "req_a",
        data: '{"text":"topped up","count":1}',
        billed: { charged: 0, balance: 15 * UNIT },
        replayed: false
      })
      expect(yield* eventsIn(shared)).toEqual([])
      expect(yield* shared.states.list("replies")).toEqual([])
      expect(bench.runs).toHaveLength(1)
    })
  )

  testing(
    "at price 0 is answered without a balance if the balance cannot be read",
    Effect.gen(function* () {
      const { bench, here, accountId } = yield* setting()
      bench.answer = () => Effect.as(here.cut, { data: { text: "done", count: 1 } })
      const reply = yield* here.call(accountId, { operation: "free", requestId: "req_a" })
      expect(reply).toEqual({ requestId: "req_a", data: '{"text":"done","count":1}', replayed: false })
    })
  )

  testing(
    "returns a balance that excludes lots that are due to expire",
    Effect.gen(function* () {
      const { shared, bench, here, accountId } = yield* setting()
      const { started } = yield* paused(bench)
      yield* Effect.forkScoped(Effect.exit(here.call(accountId, { units: 4 })))
      yield* started
      yield* here.cut
      yield* elapse(LIFETIME)
      const there = yield* host(shared, makeBench())
      const { billed } = yield* there.call(accountId, { operation: "free" })
      expect(billed).toEqual({ charged: 0, balance: 10 * UNIT })
      expect(yield* endsIn(shared)).toEqual(["CreditReserved"])
    })
  )

  testing(
    "is charged at the quoted price if another is published before the hold",
    Effect.gen(function* () {
      const { shared, bench, here, accountId } = yield* setting()
      const lowered = yield* here.prices.publish({ "bench.work": credits(UNIT / 2) }, START + seconds(10))
      expect(lowered.at(-1)).toMatchObject({ version: 2 })
      const before = yield* here.call(accountId)
      expect(before.billed?.charged).toBe(UNIT)
      const { started, proceed } = yield* paused(bench)
      const running = yield* Effect.forkChild(here.call(accountId))
      yield* started
      yield* elapse(seconds(10))
      yield* proceed
      expect((yield* Fiber.join(running)).billed?.charged).toBe(UNIT)
      expect((yield* here.call(accountId)).billed?.charged).toBe(UNIT / 2)
      const holds = (yield* eventsIn(shared)).filter(({ _tag }) => _tag === "CreditReserved")
      expect(holds).toMatchObject([
        { priceVersion: 1, amount: UNIT },
        { priceVersion: 1, amount: UNIT },
        { priceVersion: 2, amount: UNIT / 2 }
      ])
    })
  )

  testing(
    "is charged at the quoted price if the price changes between the quote and the hold",
    Effect.gen(function* () {
      const { shared, here, accountId } = yield* setting()
      const there = yield* host(shared, makeBench())
      yield* here.prices.publish({ "bench.work": credits(3 * UNIT) }, START + 100)
      // Another host writes first, and meanwhile the new price comes into force: the hold is decided again
      const rival = () => Effect.andThen(TestClock.adjust(100), there.grant(accountId, UNIT, "lot_2"))
      yield* here.fail({ plan: { appends: { 1: "conflict" } }, rival })
      expect((yield* here.call(accountId)).billed?.charged).toBe(UNIT)
      const [hold, success] = yield* eventsIn(shared)
      expect(hold).toMatchObject({ priceVersion: 1, amount: UNIT, expiresAt: START + 100 + LIFETIME })
      expect(success).toMatchObject({ charged: UNIT })
      yield* here.heal
      expect((yield* here.call(accountId)).billed?.charged).toBe(3 * UNIT)
    })
  )
})

describe("a refused call writes nothing and runs nothing if", () => {
  const refused = (
    name: string,
    refusal: object,
    act: (s: Effect.Success<ReturnType<typeof setting>>) => Effect.Effect<unknown, unknown>,
    call: Parameters<Effect.Success<ReturnType<typeof setting>>["here"]["call"]>[1] = {}
  ) =>
    testing(
      name,
      Effect.gen(function* () {
        const world = yield* setting()
        const { shared, bench, here, accountId } = world
        yield* act(world)
        const before = yield* logText(shared)
        const error = yield* Effect.flip(here.call(accountId, { key: "key", ...call }))
        expect({ ...error }).toEqual(refusal)
        expect(yield* logText(shared)).toBe(before)
        expect(yield* shared.states.list("replies")).toEqual([])
        expect(bench.runs).toEqual([])
      })
    )
  const nothing = () => Effect.void

  const checks = [
    new NotFound({ resource: "inbox" }),
    new InvalidInput({ field: "text", message: "no" }),
    new UpstreamUnavailable({ upstream: "bench", reason: "down" }),
    new UpstreamNotConfigured({ upstream: "bench" })
  ]
  for (const error of checks) {
    refused(`its check fails with ${error._tag}`, { ...error }, ({ bench }) =>
      Effect.sync(() => {
        bench.check = () => Effect.fail(error)
      })
    )
  }
  refused("it has no price", { _tag: "NotPriced", operation: "bench.new" }, nothing, { operation: "new" })
  refused("its cost exceeds the caller's limit", { _tag: "CostExceedsLimit", cost: 3 * UNIT, limit: 3 * UNIT - 1 }, nothing, {
    units: 3,
    maxCost: 3 * UNIT - 1
  })
  refused(
    "the credits do not suffice",
    { _tag: "InsufficientCredits", required: 11 * UNIT, available: 10 * UNIT, shortfall: UNIT, affordableUnits: 10 },
    nothing,
    { units: 11 }
  )
  refused(
    "the credits lack half a unit",
    { _tag: "InsufficientCredits", required: 21 * UNIT, available: 10.5 * UNIT, shortfall: 10.5 * UNIT, affordableUnits: 10 },
    ({ here, accountId }) => here.grant(accountId, UNIT / 2, "lot_half"),
    { units: 21 }
  )
  refused("the account is suspended", { _tag: "AccountSuspended" }, ({ here, accountId }) =>
    here.ledger.execute(accountId, Decisions.suspend)
  )
  refused("the account is closed", { _tag: "AccountClosed" }, ({ here, accountId }) => here.ledger.execute(accountId, Decisions.close))
  refused("the account is in debt", { _tag: "AccountInDebt", debt: 2 * UNIT }, ({ here, accountId }) =>
    Effect.gen(function* () {
      yield* here.grant(accountId, 2 * UNIT, "lot_paid", "topup", START + 1)
      yield* here.ledger.execute(accountId, Decisions.reserve({ ...RESERVE, quantity: 2 }))
      yield* here.ledger.execute(accountId, Decisions.settle({ reservationId: RESERVE.reservationId, replyHash: "hash" }))
      yield* here.ledger.execute(accountId, Decisions.clawBack("lot_paid"))
    })
  )

  testing(
    "the account does not exist",
    Effect.gen(function* () {
      const { shared, bench, here } = yield* setting()
      expect(yield* told(here.call("acc_none"))).toBe("AccountNotFound")
      expect(yield* eventsIn(shared)).toEqual([])
      expect(bench.runs).toEqual([])
    })
  )

  testing(
    "its operation returns an invalid quantity",
    Effect.gen(function* () {
      const { shared, bench, here, accountId } = yield* setting()
      for (const units of [-1, 0.0001, Number.NaN, Number.POSITIVE_INFINITY])
        expect(yield* Effect.flip(here.call(accountId, { units }))).toMatchObject({
          _tag: "OperationFailed",
          operation: "bench.work",
          message: `The operation bench.work is faulty: its quantity is ${units}; it must be a whole number of at least 0`
        })
      expect(yield* eventsIn(shared)).toEqual([])
      expect(bench.runs).toEqual([])
    })
  )

  testing(
    "a call runs if the balance and the limit equal its price",
    Effect.gen(function* () {
      const { here, accountId } = yield* setting()
      expect((yield* here.call(accountId, { units: 10, maxCost: 10 * UNIT })).billed).toEqual({ charged: 10 * UNIT, balance: 0 })
    })
  )

  testing(
    "a free call runs for an account that is empty, suspended or in debt",
    Effect.gen(function* () {
      const { here, accountId } = yield* setting()
      yield* here.call(accountId, { units: 10 })
      yield* here.ledger.execute(accountId, Decisions.suspend)
      expect((yield* here.call(accountId, { operation: "free" })).billed).toEqual({ charged: 0, balance: 0 })
    })
  )
})

const RESERVE: Decisions.Reserve = {
  reservationId: "res_0",
  requestId: "req_0",
  operation: "bench.work",
  quantity: 1,
  priceVersion: 1,
  unitPrice: credits(UNIT),
  lifetime: LIFETIME
}

describe("a failed call is refunded in full if", () => {
  const failures = [
    new NotFound({ resource: "bin" }),
    new InvalidInput({ field: "text", message: "no" }),
    new UpstreamUnavailable({ upstream: "bench", reason: "it answered 500" }),
    new UpstreamNotConfigured({ upstream: "bench" })
  ]
  for (const error of failures) {
    testing(
      `its operation fails with ${error._tag}`,
      Effect.gen(function* () {
        const { shared, bench, here, accountId } = yield* setting()
        bench.answer = () => Effect.fail(error)
        expect({ ...(yield* Effect.flip(here.call(accountId, { key: "key" }))) }).toEqual({ ...error })
        expect(yield* endsIn(shared)).toEqual(REFUNDED)
        expect(yield* here.balance(accountId)).toEqual({ available: 10 * UNIT, held: 0 })
        expect(yield* shared.states.list("replies")).toEqual([])
      })
    )
  }

  testing(
    "its operation has a defect",
    Effect.gen(function* () {
      const { shared, bench, here, accountId } = yield* setting()
      for (const answer of [
        () => Effect.die(new Error("a bug")),
        () => {
          throw new Error("a bug")
        }
      ]) {
        bench.answer = answer
        expect(yield* told(here.call(accountId))).toBe("defect")
      }
      expect(yield* endsIn(shared)).toEqual([...REFUNDED, ...REFUNDED])
      expect(yield* here.balance(accountId)).toEqual({ available: 10 * UNIT, held: 0 })
    })
  )

  testing(
    "its operation returns more units than held, or an invalid quantity",
    Effect.gen(function* () {
      const { shared, bench, here, accountId } = yield* setting()
      const quantities = [3, -1, 0.5, Number.NaN]
      for (const quantity of quantities) {
        bench.answer = () => Effect.succeed({ data: { text: "", count: 0 }, quantity })
        expect(yield* told(here.call(accountId, { units: 2 }))).toBe("defect")
      }
      expect(yield* endsIn(shared)).toEqual(quantities.flatMap(() => REFUNDED))
      expect(yield* here.balance(accountId)).toEqual({ available: 10 * UNIT, held: 0 })
    })
  )

  testing(
    "its data does not match its schema",
    Effect.gen(function* () {
      const { shared, bench, here, accountId } = yield* setting()
      bench.answer = () => Effect.succeed({ data: { text: "half", count: 0.5 } })
      const error = yield* Effect.flip(here.call(accountId, { key: "key" }))
      expect(error).toMatchObject({ _tag: "OperationFailed", operation: "bench.work", reason: expect.stringContaining("count") })
      expect(yield* endsIn(shared)).toEqual(REFUNDED)
      expect(yield* shared.states.list("replies")).toEqual([])
    })
  )

  testing(
    "it exceeds the operation's time limit",
    Effect.gen(function* () {
      const { shared, bench, here, accountId } = yield* setting()
      let interrupted = 0
      bench.answer = () => Effect.onInterrupt(Effect.never, () => Effect.sync(() => interrupted++))
      const running = yield* Effect.forkChild(Effect.flip(here.call(accountId)))
      yield* quiet
      yield* elapse(TIMEOUT - 1)
      expect(yield* endsIn(shared)).toEqual(["CreditReserved"])
      yield* elapse(1)
      expect({ ...(yield* Fiber.join(running)) }).toMatchObject({
        _tag: "UpstreamUnavailable",
        upstream: "bench",
        reason: "it took longer than 30000 ms"
      })
      expect(interrupted).toBe(1)
      expect(yield* endsIn(shared)).toEqual(REFUNDED)
    })
  )

  testing(
    "a part of its work was interrupted, but not the caller",
    Effect.gen(function* () {
      const { shared, bench, here, accountId } = yield* setting()
      bench.answer = () =>
        Effect.gen(function* () {
          const part = yield* Effect.forkChild(Effect.never)
          yield* Effect.forkChild(Fiber.interrupt(part))
          yield* Effect.ensuring(Fiber.join(part), Effect.die(new Error("a bug")))
          return { data: { text: "", count: 0 } }
        })
      expect(yield* told(here.call(accountId))).toBe("defect")
      expect(yield* endsIn(shared)).toEqual(REFUNDED)
    })
  )

  testing(
    "its credits expired meanwhile: they are valid for another week",
    Effect.gen(function* () {
      const shared = yield* stores
      const bench = makeBench()
      const here = yield* host(shared, bench)
      yield* opened(here, 0)
      yield* here.grant(ACCOUNT, UNIT, "lot_short", "promotion", START + seconds(5))
      bench.answer = () => Effect.andThen(TestClock.adjust(seconds(6)), Effect.fail(new NotFound({ resource: "bin" })))
      yield* told(here.call(ACCOUNT))
      expect(yield* endsIn(shared)).toEqual(["CreditReserved", "Refunded service_error", "LotExpired"])
      expect(yield* here.balance(ACCOUNT)).toEqual({ available: UNIT, held: 0 })
      const { lots } = yield* here.ledger.balance(ACCOUNT)
      expect(lots).toMatchObject([{ source: "adjustment", left: UNIT, expiresAt: START + seconds(6) + Decisions.ADJUSTMENT_LIFETIME }])
    })
  )
})

describe("the circuit of an upstream", () => {
  const down = new UpstreamUnavailable({ upstream: "bench", reason: "down" })

  testing(
    "opens after five failures: calls fail at once and hold nothing, until a trial call",
    Effect.gen(function* () {
      const { shared, bench, here, accountId } = yield* setting()
      const { answer } = bench
      bench.answer = () => Effect.fail(down)
      for (const _ of range(5)) expect(yield* told(here.call(accountId))).toBe("UpstreamUnavailable")
      const before = yield* logText(shared)
      const error = yield* Effect.flip(here.call(accountId))
      expect(error).toMatchObject({ upstream: "bench", reason: "its circuit is open" })
      expect(yield* logText(shared)).toBe(before)
      expect(bench.runs).toHaveLength(5)
      yield* elapse(seconds(10))
      expect(yield* told(here.call(accountId))).toBe("UpstreamUnavailable")
      expect(yield* told(here.call(accountId))).toBe("UpstreamUnavailable")
      expect(bench.runs).toHaveLength(6)
      yield* elapse(seconds(10))
      bench.answer = answer
      expect(yield* told(here.call(accountId))).toBe("reply")
      expect(yield* told(here.call(accountId))).toBe("reply")
      expect(yield* here.balance(accountId)).toEqual({ available: 8 * UNIT, held: 0 })
    })
  )

  testing(
    "does not open after NotFound, InvalidInput, UpstreamNotConfigured, a defect or an interruption",
    Effect.gen(function* () {
      const { bench, here, accountId } = yield* setting()
      const { answer } = bench
      const ends = [
        Effect.fail(new NotFound({ resource: "bin" })),
        Effect.fail(new InvalidInput({ field: "text", message: "no" })),
        Effect.fail(new UpstreamNotConfigured({ upstream: "bench" })),
        Effect.die(new Error("a bug")),
        Effect.interrupt
      ]
      for (const end of ends) {
        bench.answer = () => end
        for (const _ of range(6)) yield* Effect.exit(here.call(accountId))
      }
      bench.answer = answer
      expect(yield* told(here.call(accountId))).toBe("reply")
      expect(bench.runs).toHaveLength(31)
    })
  )

  testing(
    "counts consecutive failures: NotFound is a success",
    Effect.gen(function* () {
      const { bench, here, accountId } = yield* setting()
      for (const i of range(20)) {
        bench.answer = () => Effect.fail(i % 5 === 4 ? new NotFound({ resource: "bin" }) : down)
        yield* told(here.call(accountId))
      }
      expect(bench.runs).toHaveLength(20)
    })
  )

  testing(
    "is tried by one of 64 callers; a caller who is refused or leaves does not use up the trial",
    Effect.gen(function* () {
      const { bench, here, accountId } = yield* setting()
      const { answer } = bench
      bench.answer = () => Effect.fail(down)
      for (const _ of range(5)) yield* told(here.call(accountId))
      yield* elapse(seconds(10))
      const refusals = [
        here.call(accountId, { units: 99 }),
        here.call(accountId, { maxCost: 1 }),
        here.call("acc_none"),
        here.call(accountId, { operation: "new" })
      ]
      for (const refusal of refusals) expect(yield* told(refusal)).not.toBe("UpstreamUnavailable")
      expect(bench.runs).toHaveLength(5)

      bench.answer = answer
      const first = yield* paused(bench)
      const leaving = yield* Effect.forkChild(here.call(accountId))
      yield* first.started
      expect(yield* told(here.call(accountId))).toBe("UpstreamUnavailable")
      yield* Fiber.interrupt(leaving)
      yield* first.proceed

      const second = yield* paused(bench)
      const callers = yield* Effect.forEach(range(64), () => Effect.forkChild(told(here.call(accountId))))
      yield* second.started
      yield* quiet
      expect(bench.runs).toHaveLength(7)
      yield* second.proceed
      const ends = yield* Effect.forEach(callers, Fiber.join)
      expect(ends.filter((end) => end === "reply")).toHaveLength(1)
      expect(yield* told(here.call(accountId))).toBe("reply")
    })
  )

  testing(
    "is shared by the operations of an area and by no others",
    Effect.gen(function* () {
      const { bench, here, accountId } = yield* setting()
      bench.answer = () => Effect.fail(down)
      for (const _ of range(5)) yield* told(here.call(accountId))
      const error = yield* Effect.flip(here.call(accountId, { operation: "free" }))
      expect(error).toMatchObject({ reason: "its circuit is open" })
      const elsewhere = { ...here.operations.free, key: "elsewhere.work", run: () => Effect.succeed({ data: { text: "", count: 0 } }) }
      yield* here.prices.publish({ "elsewhere.work": credits(UNIT) })
      expect(yield* told(here.charge.run(elsewhere, { text: "" }, { accountId, requestId: "req" }))).toBe("reply")
    })
  )

  testing(
    "is no concern of an operation that calls none: it runs each time, and opens no circuit",
    Effect.gen(function* () {
      const { bench, here, accountId } = yield* setting()
      const local = { ...here.operations.free, local: true } as const
      const call = told(here.charge.run(local, { text: "" }, { accountId, requestId: "req" }))
      const { answer } = bench
      bench.answer = () => Effect.fail(down)
      for (const _ of range(7)) expect(yield* call).toBe("UpstreamUnavailable")
      expect(bench.runs).toHaveLength(7)
      bench.answer = answer
      expect(yield* call).toBe("reply")
      // Nor is it refused for an operation of its area that does call one
      bench.answer = () => Effect.fail(down)
      for (const _ of range(5)) yield* told(here.call(accountId))
      bench.answer = answer
      expect(yield* call).toBe("reply")
    })
  )
})

testing(
  "a successful call writes exactly a hold and its success",
  Effect.gen(function* () {
    const { shared, here, accountId } = yield* setting()
    for (const _ of range(3)) yield* here.call(accountId)
    expect(yield* endsIn(shared)).toEqual([...SETTLED, ...SETTLED, ...SETTLED])
  })
)
