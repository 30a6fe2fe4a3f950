import { StateStore } from "@millrace/event-sourcing"
import { Effect, Exit, Scope } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect } from "vitest"
import { UpstreamUnavailable } from "../../src/work/OperationError.ts"
import {
  type Bench,
  CHARGED,
  elapse,
  endsIn,
  eventsIn,
  FULL,
  HELD,
  type Host,
  host,
  keyName,
  LIFETIME,
  makeBench,
  minutes,
  mortalHost,
  opened,
  patiently,
  paused,
  quiet,
  range,
  START,
  type Stores,
  seconds,
  setting,
  stores,
  testing,
  told,
  UNIT,
  until
} from "./Bench.ts"

const recovery = {}

/** The stores after a process died while a call ran. */
const crashed = (operation: "work" | "create", { key, bench = makeBench() }: { readonly key?: string; readonly bench?: Bench } = {}) =>
  Effect.gen(function* () {
    const shared = yield* stores
    const dead = makeBench()
    const first = yield* mortalHost(shared, dead)
    const accountId = yield* opened(first, 10 * UNIT)
    const { started } = yield* paused(dead)
    const running = yield* Effect.forkDetach(
      first.call(accountId, { operation, requestId: "req_dead", ...(key === undefined ? {} : { key }) })
    )
    yield* started
    yield* first.die
    expect(running.pollUnsafe()).toBeUndefined()
    const reservationId = dead.runs[0]?.reservationId ?? ""
    return { shared, bench, accountId, reservationId }
  })

const ended = (shared: Stores) => Effect.map(endsIn(shared), (ends) => ends.length > 1)

describe("a hold of a dead process", () => {
  testing(
    "is released after its expiry without another call, and not before",
    Effect.gen(function* () {
      const { shared, bench, accountId, reservationId } = yield* crashed("work")
      const here = yield* host(shared, bench, { recovery })
      yield* elapse(LIFETIME - 1)
      expect(yield* endsIn(shared)).toEqual(["CreditReserved"])
      yield* until(ended(shared), seconds(30))
      const [, refund] = yield* eventsIn(shared)
      expect(refund).toMatchObject({
        _tag: "Refunded",
        reservationId,
        stage: "reserved",
        reason: "abandoned",
        amount: UNIT,
        dueAt: START + LIFETIME
      })
      yield* elapse(minutes(10))
      expect(yield* endsIn(shared)).toEqual(["CreditReserved", "Refunded abandoned"])
      expect(yield* here.balance(accountId)).toEqual(FULL)
      expect(bench.runs).toEqual([])
    })
  )

  testing(
    "counts as released from its expiry on, to the millisecond, also without recovery",
    Effect.gen(function* () {
      const { shared, bench, accountId } = yield* crashed("work")
      const here = yield* host(shared, bench)
      yield* elapse(LIFETIME - 1)
      expect(yield* here.balance(accountId)).toEqual(HELD)
      yield* elapse(1)
      expect(yield* here.balance(accountId)).toEqual(FULL)
      expect(yield* endsIn(shared)).toEqual(["CreditReserved"])
      expect((yield* here.ledger.balance(accountId, START + LIFETIME - 1)).available).toBe(9 * UNIT)
      expect((yield* here.ledger.balance(accountId, START + LIFETIME)).available).toBe(10 * UNIT)
      expect(yield* told(here.call(accountId, { units: 10 }))).toBe("reply")
      expect(yield* endsIn(shared)).toEqual(["CreditReserved", "Refunded abandoned", "CreditReserved", "OperationSucceeded"])
    })
  )

  testing(
    "ends once if several processes and callers recover it",
    Effect.gen(function* () {
      const { shared, bench, accountId } = yield* crashed("work")
      const hosts = yield* Effect.forEach(range(3), () => host(shared, bench, { recovery }))
      yield* elapse(LIFETIME)
      yield* patiently(
        Effect.forEach(hosts, ({ call }) => told(call(accountId)), { concurrency: "unbounded" }),
        1
      )
      yield* elapse(minutes(2))
      const ends = yield* endsIn(shared)
      expect(ends.filter((end) => end === "Refunded abandoned")).toHaveLength(1)
    })
  )

  testing(
    "is released by a process that starts long after its expiry",
    Effect.gen(function* () {
      const { shared, bench } = yield* crashed("work")
      yield* elapse(minutes(90))
      const here = yield* host(shared, bench, { recovery })
      yield* until(ended(shared), seconds(60))
      expect(yield* endsIn(shared)).toEqual(["CreditReserved", "Refunded abandoned"])
      expect(yield* here.recovery?.overdue(START + minutes(90)) ?? Effect.succeed([])).toEqual([])
    })
  )

  testing(
    "is released once the store is available again, if it was unavailable at the expiry",
    Effect.gen(function* () {
      const { shared, bench } = yield* crashed("work")
      const here = yield* host(shared, bench, { recovery })
      yield* elapse(seconds(30))
      yield* here.fail({ rates: { before: 1 } })
      yield* elapse(minutes(2))
      expect(yield* endsIn(shared)).toEqual(["CreditReserved"])
      const status = yield* here.recovery?.status ?? Effect.die("no recovery")
      expect(status).toMatchObject({ leader: true, failing: [{ deadline: { dueAt: START + LIFETIME } }] })
      yield* here.heal
      yield* until(ended(shared), minutes(10))
      expect(yield* endsIn(shared)).toEqual(["CreditReserved", "Refunded abandoned"])
    })
  )

  testing(
    "of a call that ended is not recovered",
    Effect.gen(function* () {
      const shared = yield* stores
      const here = yield* host(shared, makeBench(), { recovery })
      const accountId = yield* opened(here, 10 * UNIT)
      for (const operation of ["work", "create"] as const) yield* here.call(accountId, { operation })
      yield* elapse(minutes(5))
      expect(yield* endsIn(shared)).toEqual(["CreditReserved", "OperationSucceeded", "CreditReserved", "OperationSucceeded"])
      expect(yield* here.recovery?.overdue(START + minutes(60)) ?? Effect.succeed(["none"])).toEqual([])
    })
  )
})

describe("a recoverable call of a dead process", () => {
  for (const key of [undefined, "key"])
    testing(
      `is charged if its effect exists, and its reply is kept, ${keyName(key)}`,
      Effect.gen(function* () {
        const { shared, bench, accountId, reservationId } = yield* crashed("create", key === undefined ? {} : { key })
        bench.recover = () => Effect.succeed({ data: { text: "it stands", count: 1 } })
        const here = yield* host(shared, bench, { recovery })
        yield* elapse(LIFETIME - 1)
        expect(bench.recovered).toEqual([])
        yield* until(ended(shared), seconds(60))
        expect(bench.recovered).toEqual([reservationId])
        const [, success] = yield* eventsIn(shared)
        expect(success).toMatchObject({ _tag: "OperationSucceeded", reservationId, charged: UNIT })
        expect(yield* here.balance(accountId)).toEqual(CHARGED)
        expect(yield* shared.states.list("replies")).toHaveLength(key === undefined ? 0 : 1)
        if (key !== undefined) {
          for (const wait of [0, minutes(30)]) {
            yield* elapse(wait)
            expect(yield* here.call(accountId, { operation: "create", key })).toEqual({
              requestId: "req_dead",
              data: '{"text":"it stands","count":1}',
              billed: { charged: UNIT, balance: 9 * UNIT },
              replayed: true
            })
          }
        }
        expect(bench.runs).toEqual([])
      })
    )

  testing(
    "is refunded if it had no effect, and its key is free",
    Effect.gen(function* () {
      const { shared, bench, accountId } = yield* crashed("create", { key: "key" })
      const here = yield* host(shared, bench, { recovery })
      yield* elapse(LIFETIME + minutes(1))
      expect(yield* endsIn(shared)).toEqual(["CreditReserved", "Refunded abandoned"])
      expect(yield* here.balance(accountId)).toEqual(FULL)
      expect(yield* told(here.call(accountId, { operation: "create", key: "key" }))).toBe("reply")
      expect(bench.runs).toHaveLength(1)
    })
  )

  testing(
    "stays held and in flight while its outcome cannot be found out",
    Effect.gen(function* () {
      const { shared, bench, accountId } = yield* crashed("create", { key: "key" })
      bench.recover = () => Effect.fail(new UpstreamUnavailable({ upstream: "bench", reason: "down" }))
      const here = yield* host(shared, bench, { recovery })
      yield* elapse(LIFETIME + minutes(5))
      expect(bench.recovered.length).toBeGreaterThan(1)
      expect(yield* endsIn(shared)).toEqual(["CreditReserved"])
      expect(yield* here.balance(accountId)).toEqual(HELD)
      expect(yield* told(here.call(accountId, { operation: "create", key: "key" }))).toBe("InFlight")
      const status = yield* here.recovery?.status ?? Effect.die("no recovery")
      expect(status.failing).toHaveLength(1)
      bench.recover = () => Effect.succeed({ data: { text: "it stands", count: 1 } })
      yield* until(ended(shared), minutes(11))
      expect(yield* here.balance(accountId)).toEqual(CHARGED)
      expect(yield* told(here.call(accountId, { operation: "create", key: "key" }))).toBe("replayed")
    })
  )

  testing(
    "is charged for the units done",
    Effect.gen(function* () {
      const { shared, bench, accountId } = yield* crashed("create")
      bench.recover = () => Effect.succeed({ data: { text: "none of it", count: 0 }, quantity: 0 })
      const here = yield* host(shared, bench, { recovery })
      yield* elapse(LIFETIME + minutes(1))
      expect((yield* eventsIn(shared)).at(-1)).toMatchObject({ _tag: "OperationSucceeded", charged: 0, quantity: 0 })
      expect(yield* here.balance(accountId)).toEqual(FULL)
    })
  )

  testing(
    "is refunded if its operation returns an invalid outcome or more units than held",
    Effect.gen(function* () {
      for (const outcome of [{ data: { text: "half", count: 0.5 } }, { data: { text: "more", count: 1 }, quantity: 2 }]) {
        const { shared, bench, accountId, reservationId } = yield* crashed("create", { key: "key" })
        bench.recover = () => Effect.succeed(outcome)
        const here = yield* host(shared, bench)
        yield* elapse(LIFETIME)
        expect(Exit.hasDies(yield* Effect.exit(here.charge.recover(here.operations.create, accountId, reservationId)))).toBe(true)
        expect(yield* endsIn(shared)).toEqual(["CreditReserved", "Refunded service_error"])
        expect(yield* here.balance(accountId)).toEqual(FULL)
        expect(yield* told(here.call(accountId, { operation: "create", key: "key" }))).toBe("reply")
      }
    })
  )

  testing(
    "stays held until a host has its operation",
    Effect.gen(function* () {
      const { shared, bench, accountId, reservationId } = yield* crashed("create")
      const here = yield* host(shared, bench)
      yield* elapse(LIFETIME)
      yield* here.charge.recover<never, never>(undefined, accountId, reservationId)
      yield* here.charge.recover(here.operations.work, accountId, reservationId)
      expect(yield* endsIn(shared)).toEqual(["CreditReserved"])
      yield* here.charge.recover(here.operations.create, accountId, reservationId)
      expect(yield* endsIn(shared)).toEqual(["CreditReserved", "Refunded abandoned"])
    })
  )

  testing(
    "ends once, if processes stop at any point of its recovery",
    Effect.gen(function* () {
      const { shared, bench, accountId, reservationId } = yield* crashed("create", { key: "key" })
      bench.recover = () => Effect.succeed({ data: { text: "it stands", count: 1 } })
      const hosts = yield* Effect.forEach(range(4), () => host(shared, bench))
      yield* elapse(LIFETIME)
      const recover = ({ charge, operations }: Host) => Effect.exit(charge.recover(operations.create, accountId, reservationId))
      // One cannot keep the reply, one cannot settle
      const [first, second, ...others] = hosts
      if (first === undefined || second === undefined) throw new Error("no host")
      yield* first.through(({ states }) => ({
        states: { ...states, write: () => Effect.fail(new StateStore.StateUnavailable({ reason: "full" })) }
      }))
      expect(Exit.isFailure(yield* recover(first))).toBe(true)
      yield* second.fail({ rates: { before: 1 } })
      expect(Exit.isFailure(yield* recover(second))).toBe(true)
      expect(yield* endsIn(shared)).toEqual(["CreditReserved"])
      const exits = yield* patiently(Effect.forEach(others, recover, { concurrency: "unbounded" }), 1)
      expect(exits.every(Exit.isSuccess)).toBe(true)
      expect(yield* recover(second)).toEqual(Exit.void)
      expect(yield* endsIn(shared)).toEqual(["CreditReserved", "OperationSucceeded"])
      for (const { call } of others) expect(yield* told(call(accountId, { operation: "create", key: "key" }))).toBe("replayed")
    })
  )

  testing(
    "is not recovered before its expiry; afterwards recovery and its own settlement end it once",
    Effect.gen(function* () {
      const { shared, bench, here, accountId } = yield* setting()
      const there = yield* host(shared, bench)
      bench.recover = () => Effect.succeed({ data: { text: "text", count: 4 } })
      const recover = Effect.suspend(() => there.charge.recover(there.operations.create, accountId, bench.runs[0]?.reservationId ?? ""))
      const { answer } = bench
      bench.answer = (...of) => Effect.andThen(Effect.orDie(recover), answer(...of))
      // Its settlement is on its way when another host finds that the hold is due
      const rival = () =>
        Effect.gen(function* () {
          expect(bench.recovered).toEqual([])
          yield* TestClock.adjust(LIFETIME)
          yield* recover
        })
      yield* here.fail({ plan: { appends: { 2: "conflict" } }, rival })
      const reply = yield* here.call(accountId, { operation: "create", key: "key" })
      expect(reply).toMatchObject({ data: '{"text":"text","count":4}', billed: { charged: UNIT, balance: 9 * UNIT } })
      expect(bench.recovered).toHaveLength(1)
      expect(yield* endsIn(shared)).toEqual(["CreditReserved", "OperationSucceeded"])
    })
  )
})

testing(
  "recovery stops with its process",
  Effect.gen(function* () {
    const { shared, bench } = yield* crashed("work")
    const scope = yield* Scope.make()
    yield* Effect.provideService(host(shared, bench, { recovery }), Scope.Scope, scope)
    yield* quiet
    yield* Scope.close(scope, Exit.void)
    yield* elapse(minutes(5))
    expect(yield* endsIn(shared)).toEqual(["CreditReserved"])
  })
)
