/** Every row of the table in `docs/adr/0004-order-of-a-billed-call.md`: the point at which a call stops, and what follows. */
import { EventStore, StateStore } from "@millrace/event-sourcing"
import { Clock, Deferred, Effect, Exit, Fiber, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect } from "vitest"
import type * as FaultyEventStore from "../../../testing/src/FaultyEventStore.ts"
import * as Decisions from "../../src/ledger/Decisions.ts"
import { UpstreamUnavailable } from "../../src/work/OperationError.ts"
import {
  CHARGED,
  elapse,
  endsIn,
  eventsIn,
  FULL,
  host,
  hours,
  KEYS,
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
  type Stores,
  seconds,
  setting,
  stores,
  testing,
  told,
  UNIT,
  until,
  withKey
} from "./Bench.ts"

/** A fault of all attempts at one append, including those in doubt. */
const allSends = (fault: FaultyEventStore.Fault): FaultyEventStore.Options => ({
  plan: { appends: Object.fromEntries(range(11).map((i) => [i + 1, fault])) }
})
/** No append is confirmed and nothing can be read, so the outcome stays unknown until the store is available again. */
const inDoubt = (fault: "after" | "lost"): FaultyEventStore.Options => ({ rates: { [fault]: 1 }, unavailable: 1 })

/** A state store that waits before it writes a reply. */
const slowReplies = (to: Stores["states"]) =>
  Effect.gen(function* () {
    const reached = yield* Deferred.make<void>()
    const proceed = yield* Deferred.make<void>()
    const states: Stores["states"] = {
      ...to,
      write: (changes) =>
        Effect.gen(function* () {
          if (changes.some(({ space }) => space === "replies")) {
            yield* Deferred.succeed(reached, undefined)
            yield* Deferred.await(proceed)
          }
          return yield* to.write(changes)
        })
    }
    return { states, reached: Deferred.await(reached), proceed: Deferred.succeed(proceed, undefined) }
  })

describe("a call that stops before the hold", () => {
  testing(
    "writes nothing if the store refuses the append",
    Effect.gen(function* () {
      for (const key of KEYS) {
        const { shared, bench, here, accountId } = yield* setting()
        yield* here.fail({ plan: { appends: { 1: "before" } } })
        expect(yield* told(here.call(accountId, withKey(key)))).toBe("StoreUnavailable")
        expect(yield* endsIn(shared)).toEqual([])
        expect(bench.runs).toEqual([])
        expect(yield* told(here.call(accountId, withKey(key)))).toBe("reply")
        expect(yield* here.balance(accountId)).toEqual(CHARGED)
      }
    })
  )

  testing(
    "writes nothing if it stops at a read, a lookup or a check",
    Effect.gen(function* () {
      let stopped = 0
      // A cost that is too high is refused by a price that the store has confirmed; any other is held by a condition
      for (const [call, otherwise] of [
        [{ key: "key" }, "reply"],
        [{ maxCost: 1 }, "CostExceedsLimit"]
      ] as const)
        for (const n of range(12)) {
          const { shared, bench, here, accountId } = yield* setting()
          yield* here.fail({ plan: { others: [n + 1] } })
          const end = yield* told(here.call(accountId, call))
          if (end === otherwise) continue
          stopped++
          expect(end).toBe("StoreUnavailable")
          expect(yield* endsIn(shared)).toEqual([])
          expect(bench.runs).toEqual([])
        }
      expect(stopped).toBeGreaterThanOrEqual(1)
      const { here, accountId } = yield* setting()
      yield* here.through(({ states }) => ({ states: { ...states, get: () => Effect.die(new Error("nobody asks without a key")) } }))
      expect(yield* told(here.call(accountId))).toBe("reply")
    })
  )

  testing(
    "continues after a hold in doubt was confirmed by a retry",
    Effect.gen(function* () {
      for (const fault of ["after", "lost"] as const) {
        const { shared, bench, here, accountId } = yield* setting()
        yield* here.fail({ plan: { appends: { 1: fault, 2: fault } } })
        expect(yield* patiently(told(here.call(accountId)))).toBe("reply")
        expect(yield* endsIn(shared)).toEqual(["CreditReserved", "OperationSucceeded"])
        expect(bench.runs).toHaveLength(1)
      }
    })
  )

  for (const key of KEYS) {
    testing(
      `does not run and costs nothing if its hold stays in doubt, ${keyName(key)}`,
      Effect.gen(function* () {
        for (const fault of ["after", "lost", "unanswered"] as const) {
          const { shared, bench, here, accountId } = yield* setting()
          yield* here.fail({ ...allSends(fault), lateBy: 100 })
          expect(yield* patiently(told(here.call(accountId, withKey(key))))).toBe("AppendInDoubt")
          expect(bench.runs).toEqual([])
          // An append that was written is refunded in the background
          yield* elapse(seconds(1))
          expect(yield* endsIn(shared)).toEqual(fault === "lost" ? [] : ["CreditReserved", "Refunded service_error"])
          expect(yield* here.balance(accountId)).toEqual(FULL)
          expect(yield* told(here.call(accountId, withKey(key)))).toBe("reply")
          expect(yield* here.balance(accountId)).toEqual(CHARGED)
        }
      })
    )
  }

  testing(
    "has its hold released at the expiry, if the hold arrives late",
    Effect.gen(function* () {
      const { shared, here, accountId } = yield* setting()
      // The last append is on its way when the call has failed and the correction has found nothing
      yield* here.fail({ plan: { appends: { ...allSends("lost").plan?.appends, 11: "unanswered" } }, lateBy: seconds(20) })
      expect(yield* patiently(told(here.call(accountId)))).toBe("AppendInDoubt")
      yield* elapse(seconds(20))
      const held = yield* eventsIn(shared)
      expect(held).toMatchObject([{ _tag: "CreditReserved" }])
      yield* elapse(LIFETIME)
      expect(yield* here.balance(accountId)).toEqual(FULL)
    })
  )
})

describe("a call that stops while it runs", () => {
  for (const key of KEYS) {
    testing(
      `has its hold released at the expiry and not before, if its process died, ${keyName(key)}`,
      Effect.gen(function* () {
        const { shared, bench, here, accountId } = yield* setting()
        const { started, proceed } = yield* paused(bench)
        const lost = yield* Effect.forkChild(told(here.call(accountId, withKey(key))))
        yield* started
        yield* here.cut

        const there = yield* host(shared, bench)
        yield* proceed
        expect(yield* patiently(Fiber.join(lost))).toBe(key === undefined ? "OutcomeUnknown" : "StateUnavailable")
        const now = yield* Clock.currentTimeMillis
        yield* elapse(yield* Effect.map(expiryOf(shared), (expiry) => expiry - 1 - now))
        expect(yield* there.balance(accountId)).toEqual({ available: 9 * UNIT, held: UNIT })
        if (key !== undefined) expect(yield* told(there.call(accountId, { key }))).toBe("InFlight")
        expect(yield* endsIn(shared)).toEqual(["CreditReserved"])

        yield* elapse(1)
        expect(yield* there.balance(accountId)).toEqual(FULL)
        expect(yield* told(there.call(accountId, withKey(key)))).toBe("reply")
        expect(yield* endsIn(shared)).toEqual(["CreditReserved", "Refunded abandoned", "CreditReserved", "OperationSucceeded"])
        expect(yield* there.balance(accountId)).toEqual(CHARGED)
      })
    )
  }

  for (const key of KEYS) {
    testing(
      `is interrupted and refunded and its key is free, if the caller leaves, ${keyName(key)}`,
      Effect.gen(function* () {
        const { shared, bench, here, accountId } = yield* setting()
        const { answer } = bench
        let interrupted = 0
        const started = yield* Deferred.make<void>()
        bench.answer = () =>
          Effect.andThen(
            Deferred.succeed(started, undefined),
            Effect.onInterrupt(Effect.never, () => Effect.sync(() => interrupted++))
          )
        const running = yield* Effect.forkChild(here.call(accountId, withKey(key)))
        yield* Deferred.await(started)
        yield* Fiber.interrupt(running)
        expect(interrupted).toBe(1)
        expect(yield* endsIn(shared)).toEqual(["CreditReserved", "Refunded cancelled"])
        bench.answer = answer
        expect(yield* told(here.call(accountId, withKey(key)))).toBe("reply")
        expect(bench.runs).toHaveLength(2)
      })
    )
  }

  testing(
    "is held and refunded and does not run, if the caller leaves during the hold",
    Effect.gen(function* () {
      const { shared, bench, here, accountId } = yield* setting()
      yield* here.fail({ plan: { appends: { 1: "lost" } } })
      const running = yield* Effect.forkChild(here.call(accountId))
      yield* quiet
      yield* patiently(Fiber.interrupt(running))
      expect(yield* endsIn(shared)).toEqual(["CreditReserved", "Refunded cancelled"])
      expect(bench.runs).toEqual([])
    })
  )

  testing(
    "has its refund retried until the store accepts it",
    Effect.gen(function* () {
      const { shared, bench, here, accountId } = yield* setting()
      const { answer } = bench
      const failing = (fault: "before" | "lost" | "after") => () =>
        Effect.andThen(here.fail({ rates: { [fault]: 1 }, unavailable: fault === "before" ? 0 : 1 }), Effect.die(new Error("a bug")))
      for (const fault of ["before", "lost", "after"] as const) {
        bench.answer = failing(fault)
        expect(yield* patiently(told(here.call(accountId)))).toBe("defect")
        yield* elapse(seconds(20))
        yield* here.heal
        yield* until(
          Effect.map(endsIn(shared), (ends) => ends.length % 2 === 0 && ends.at(-1) === "Refunded service_error"),
          seconds(30)
        )
      }
      bench.answer = answer
      expect(yield* endsIn(shared)).toEqual(range(3).flatMap(() => ["CreditReserved", "Refunded service_error"]))
      expect(yield* here.balance(accountId)).toEqual(FULL)
    })
  )

  for (const key of KEYS) {
    testing(
      `fails with OutcomeUnknown if it is recoverable and the store is unavailable, ${keyName(key)}`,
      Effect.gen(function* () {
        const { shared, bench, here, accountId } = yield* setting()
        const there = yield* host(shared, bench)
        bench.answer = () =>
          Effect.andThen(here.cut, Effect.fail(new UpstreamUnavailable({ upstream: "bench", reason: "connection lost" })))
        bench.recover = () => Effect.succeed({ data: { text: "it stands", count: 1 } })
        const call = { operation: "create", ...withKey(key) } as const
        expect(yield* patiently(told(here.call(accountId, call)))).toBe("OutcomeUnknown")
        yield* elapse(LIFETIME)
        yield* there.charge.recover(there.operations.create, accountId, bench.runs[0]?.reservationId ?? "")
        expect(yield* endsIn(shared)).toEqual(["CreditReserved", "OperationSucceeded"])
        yield* here.heal
        yield* elapse(seconds(20))
        expect(yield* there.balance(accountId)).toEqual(key === undefined ? FULL : CHARGED)
        if (key !== undefined) expect(yield* told(here.call(accountId, call))).toBe("replayed")
      })
    )
  }
})

describe("a call whose reply is being kept", () => {
  testing(
    "is charged and can be replayed if the caller leaves",
    Effect.gen(function* () {
      const { shared, bench, here, accountId } = yield* setting()
      const { states, reached, proceed } = yield* slowReplies(shared.states)
      yield* here.through(() => ({ states }))
      const running = yield* Effect.forkChild(here.call(accountId, { key: "key" }))
      yield* reached
      const leaving = yield* Effect.forkChild(Fiber.interrupt(running))
      yield* quiet
      expect(yield* endsIn(shared)).toEqual(["CreditReserved"])
      yield* proceed
      yield* Fiber.join(leaving)
      expect(Exit.isFailure(yield* Fiber.await(running))).toBe(true)
      expect(yield* endsIn(shared)).toEqual(["CreditReserved", "OperationSucceeded"])
      expect(yield* told(here.call(accountId, { key: "key" }))).toBe("replayed")
      expect(bench.runs).toHaveLength(1)
    })
  )

  testing(
    "is refunded and its key is free if the reply cannot be kept",
    Effect.gen(function* () {
      for (const isWritten of [false, true]) {
        const { shared, bench, here, accountId } = yield* setting()
        const lost = (to: Stores["states"]): Stores["states"] => ({
          ...to,
          write: (changes) =>
            changes.some(({ space }) => space === "replies")
              ? Effect.andThen(
                  isWritten ? to.write(changes) : Effect.void,
                  Effect.fail(new StateStore.StateUnavailable({ reason: "lost" }))
                )
              : to.write(changes)
        })
        yield* here.through(({ states }) => ({ states: lost(states) }))
        expect(yield* told(here.call(accountId, { key: "key" }))).toBe("StateUnavailable")
        expect(yield* endsIn(shared)).toEqual(["CreditReserved", "Refunded service_error"])
        yield* here.heal
        expect((yield* shared.states.list("replies")).length).toBe(isWritten ? 1 : 0)
        expect(yield* told(here.call(accountId, { key: "key" }))).toBe("reply")
        expect(yield* told(here.call(accountId, { key: "key" }))).toBe("replayed")
        expect(bench.runs).toHaveLength(2)
        expect(yield* here.balance(accountId)).toEqual(CHARGED)
      }
    })
  )

  testing(
    "is not replayed before it is settled: in flight until the hold expires, then the key is free",
    Effect.gen(function* () {
      const { shared, bench, here, accountId } = yield* setting()
      const { answer } = bench
      // From now on the log is unavailable, but not the state store
      bench.answer = (...of) => Effect.andThen(here.fail({ rates: { before: 1 }, unavailable: 1 }), answer(...of))
      expect(yield* patiently(told(here.call(accountId, { key: "key", text: "first" })))).toBe("OutcomeUnknown")
      expect(yield* shared.states.list("replies")).toHaveLength(1)
      bench.answer = answer
      const there = yield* host(shared, bench)
      expect(yield* told(there.call(accountId, { key: "key", text: "first" }))).toBe("InFlight")
      bench.check = () => Effect.fail(new UpstreamUnavailable({ upstream: "bench", reason: "not asked" }))
      expect(yield* told(there.call(accountId, { key: "key", text: "first" }))).toBe("InFlight")
      bench.check = () => Effect.void
      expect(yield* told(there.call(accountId, { key: "key", text: "other" }))).toBe("KeyReused")
      yield* elapse(LIFETIME)
      const reply = yield* there.call(accountId, { key: "key", text: "other" })
      expect(reply).toMatchObject({ data: '{"text":"other","count":5}', replayed: false })
      expect(yield* there.call(accountId, { key: "key", text: "other" })).toEqual({ ...reply, replayed: true })
      expect(yield* endsIn(shared)).toEqual(["CreditReserved", "Refunded abandoned", "CreditReserved", "OperationSucceeded"])
      expect(bench.runs).toHaveLength(2)
    })
  )
})

describe("a settlement in doubt", () => {
  for (const key of KEYS) {
    testing(
      `is confirmed by a retry and answered, ${keyName(key)}`,
      Effect.gen(function* () {
        for (const fault of ["after", "lost", "unanswered", "before"] as const) {
          const { shared, bench, here, accountId } = yield* setting()
          yield* here.fail({ plan: { appends: { 2: fault } }, lateBy: 5 })
          const reply = yield* patiently(here.call(accountId, { ...withKey(key), units: 3 }))
          expect(reply).toMatchObject({ billed: { charged: 3 * UNIT, balance: 7 * UNIT }, replayed: false })
          expect(yield* endsIn(shared)).toEqual(["CreditReserved", "OperationSucceeded"])
          expect(bench.runs).toHaveLength(1)
        }
      })
    )

    testing(
      `is found written by a retry, ${keyName(key)}`,
      Effect.gen(function* () {
        const { shared, bench, here, accountId } = yield* setting()
        const { answer } = bench
        bench.answer = (...of) => Effect.andThen(here.fail(allSends("after")), answer(...of))
        const reply = yield* patiently(here.call(accountId, { ...withKey(key), units: 3 }))
        expect(reply).toMatchObject({ billed: { charged: 3 * UNIT, balance: 7 * UNIT }, replayed: false })
        expect(yield* endsIn(shared)).toEqual(["CreditReserved", "OperationSucceeded"])
      })
    )

    testing(
      `that was not written is refunded, ${keyName(key)}`,
      Effect.gen(function* () {
        const { shared, bench, here, accountId } = yield* setting()
        const { answer } = bench
        bench.answer = (...of) => Effect.andThen(here.fail(inDoubt("lost")), answer(...of))
        expect(yield* patiently(told(here.call(accountId, withKey(key))))).toBe("OutcomeUnknown")
        bench.answer = answer
        yield* here.heal
        yield* until(
          Effect.map(endsIn(shared), (ends) => ends.length > 1),
          seconds(30)
        )
        expect(yield* endsIn(shared)).toEqual(["CreditReserved", "Refunded service_error"])
        expect(yield* here.balance(accountId)).toEqual(FULL)
        expect(yield* told(here.call(accountId, withKey(key)))).toBe("reply")
        expect(bench.runs).toHaveLength(2)
      })
    )
  }

  testing(
    "that was written is refunded for a caller without a key",
    Effect.gen(function* () {
      const { shared, bench, here, accountId } = yield* setting()
      const { answer } = bench
      bench.answer = (...of) => Effect.andThen(here.fail(inDoubt("after")), answer(...of))
      expect(yield* patiently(told(here.call(accountId)))).toBe("OutcomeUnknown")
      expect(yield* endsIn(shared)).toEqual(["CreditReserved", "OperationSucceeded"])
      bench.answer = answer
      yield* here.heal
      yield* until(
        Effect.map(endsIn(shared), (ends) => ends.length > 2),
        seconds(30)
      )
      expect((yield* eventsIn(shared)).at(-1)).toMatchObject({ _tag: "Refunded", stage: "settled", reason: "service_error", amount: UNIT })
      yield* elapse(seconds(60))
      expect(yield* endsIn(shared)).toEqual(["CreditReserved", "OperationSucceeded", "Refunded service_error"])
      expect(yield* here.balance(accountId)).toEqual(FULL)
    })
  )

  testing(
    "that was written is refunded by another process for a caller without a key, if its own process dies first",
    Effect.gen(function* () {
      for (const fault of ["after", "lost"] as const) {
        const shared = yield* stores
        const bench = makeBench()
        const { answer } = bench
        const here = yield* mortalHost(shared, bench)
        const accountId = yield* opened(here, 10 * UNIT)
        bench.answer = (...of) => Effect.andThen(here.fail(inDoubt(fault)), answer(...of))
        expect(yield* patiently(told(here.call(accountId)))).toBe("OutcomeUnknown")
        yield* here.die
        expect(yield* shared.states.list("unanswered")).toHaveLength(1)
        const there = yield* host(shared, bench, { recovery: {} })
        yield* until(
          Effect.map(shared.states.list("unanswered"), (left) => left.length === 0),
          seconds(60)
        )
        const ends =
          fault === "after"
            ? ["CreditReserved", "OperationSucceeded", "Refunded service_error"]
            : ["CreditReserved", "Refunded service_error"]
        expect(yield* endsIn(shared)).toEqual(ends)
        expect(yield* there.balance(accountId)).toEqual(FULL)
        yield* elapse(minutes(90))
        expect(yield* endsIn(shared)).toEqual(ends)
      }
    })
  )

  testing(
    "is made free for a caller without a key if the record cannot be written, without a long wait",
    Effect.gen(function* () {
      for (const write of [() => Effect.never, () => Effect.fail(new StateStore.StateUnavailable({ reason: "full" }))]) {
        const { shared, bench, here, accountId } = yield* setting()
        const { answer } = bench
        bench.answer = (...of) => Effect.andThen(here.fail(inDoubt("after")), answer(...of))
        yield* here.through(({ states }) => ({ states: { ...states, write } }))
        expect(yield* patiently(told(here.call(accountId)))).toBe("OutcomeUnknown")
        yield* here.heal
        yield* elapse(seconds(60))
        expect(yield* endsIn(shared)).toEqual(["CreditReserved", "OperationSucceeded", "Refunded service_error"])
        expect(yield* here.balance(accountId)).toEqual(FULL)
      }
    })
  )

  testing(
    "that was written stays charged for a caller with a key, and a retry replays it",
    Effect.gen(function* () {
      const { shared, bench, here, accountId } = yield* setting()
      const { answer } = bench
      bench.answer = (...of) => Effect.andThen(here.fail(inDoubt("after")), answer(...of))
      expect(yield* patiently(told(here.call(accountId, { key: "key", requestId: "req_a" })))).toBe("OutcomeUnknown")
      yield* here.heal
      yield* elapse(seconds(60))
      expect(yield* here.call(accountId, { key: "key" })).toEqual({
        requestId: "req_a",
        data: '{"text":"text","count":4}',
        billed: { charged: UNIT, balance: 9 * UNIT },
        replayed: true
      })
      expect(yield* endsIn(shared)).toEqual(["CreditReserved", "OperationSucceeded"])
      expect(bench.runs).toHaveLength(1)
    })
  )

  testing(
    "that arrives while its refund is decided ends the hold once",
    Effect.gen(function* () {
      const ends = new Set<string>()
      for (const key of KEYS)
        for (const lateBy of [1, 300, 3_000, 20_000]) {
          const { shared, bench, here, accountId } = yield* setting()
          const { answer } = bench
          bench.answer = (...of) => Effect.andThen(here.fail({ rates: { unanswered: 1 }, unavailable: 1, lateBy }), answer(...of))
          expect(yield* patiently(told(here.call(accountId, withKey(key))))).toBe("OutcomeUnknown")
          bench.answer = answer
          yield* here.heal
          yield* elapse(seconds(30))
          yield* elapse(LIFETIME)
          const [hold, ...end] = yield* endsIn(shared)
          expect(hold).toBe("CreditReserved")
          const retried = yield* told(here.call(accountId, withKey(key)))
          const isCharged = key !== undefined && end[0] === "OperationSucceeded"
          expect(retried).toBe(isCharged ? "replayed" : "reply")
          expect(yield* here.balance(accountId)).toEqual(CHARGED)
          ends.add(end.join())
        }
      expect(ends).toContain("OperationSucceeded")
      expect(ends).toContain("OperationSucceeded,Refunded service_error")
    })
  )

  testing(
    "is corrected also after the account has forgotten the call",
    Effect.gen(function* () {
      for (const fault of ["after", "lost"] as const) {
        const { shared, bench, here, accountId } = yield* setting()
        const { answer } = bench
        const there = yield* host(shared, makeBench())
        yield* there.grant(accountId, 1_000 * UNIT, "lot_2")
        bench.answer = (...of) => Effect.andThen(here.fail(inDoubt(fault)), answer(...of))
        expect(yield* patiently(told(here.call(accountId)))).toBe("OutcomeUnknown")
        for (const _ of range(210)) yield* there.call(accountId)
        yield* here.heal
        yield* elapse(seconds(20))
        expect(yield* there.balance(accountId)).toEqual({ available: 800 * UNIT, held: 0 })
        const first = (yield* eventsIn(shared)).at(0)
        const own = (yield* eventsIn(shared)).filter(
          (event) => first?._tag === "CreditReserved" && "reservationId" in event && event.reservationId === first.reservationId
        )
        expect(own.map(({ _tag }) => _tag)).toEqual(
          fault === "after" ? ["CreditReserved", "OperationSucceeded", "Refunded"] : ["CreditReserved", "Refunded"]
        )
      }
    })
  )

  testing(
    "is answered from the stream if the account has forgotten the call while the store was unavailable",
    Effect.gen(function* () {
      const { shared, bench, here, accountId } = yield* setting()
      const { answer } = bench
      const busy = makeBench()
      const there = yield* host(shared, busy)
      yield* there.grant(accountId, 1_000 * UNIT, "lot_2")
      // All attempts to settle are in doubt; before the next one, two hundred other calls end
      bench.answer = (...of) => Effect.andThen(here.fail(allSends("after")), answer(...of))
      const running = yield* Effect.forkChild(here.call(accountId, { units: 3 }))
      yield* quiet
      for (const _ of range(210)) yield* there.call(accountId)
      const reply = yield* patiently(Fiber.join(running))
      expect(reply.billed).toEqual({ charged: 3 * UNIT, balance: 797 * UNIT })
      expect(yield* there.balance(accountId)).toEqual({ available: 797 * UNIT, held: 0 })
      expect(bench.runs).toHaveLength(1)
    })
  )
})

describe("a settled call without its reply", () => {
  testing(
    "fails with ReplyUnavailable and does not run again",
    Effect.gen(function* () {
      const { shared, bench, here, accountId } = yield* setting()
      expect(yield* told(here.call(accountId, { key: "key" }))).toBe("reply")
      const [kept] = yield* shared.states.list("replies")
      yield* shared.states.write([{ _tag: "remove", space: "replies", key: kept?.key ?? "" }])
      for (const _ of range(3)) {
        expect(yield* told(here.call(accountId, { key: "key" }))).toBe("ReplyUnavailable")
        expect(yield* told(here.call(accountId, { key: "key", text: "other" }))).toBe("KeyReused")
        yield* elapse(seconds(190))
      }
      expect(bench.runs).toHaveLength(1)
      expect(yield* here.balance(accountId)).toEqual(CHARGED)
    })
  )
})

describe("a late settlement", () => {
  /** The work ends in time, but its reply is kept only after the hold has expired. `meanwhile` happens before that. */
  const slow = (
    late: "withhold" | "charge",
    meanwhile: (shared: Stores) => Effect.Effect<unknown, unknown, Scope.Scope> = () => Effect.void
  ) =>
    Effect.gen(function* () {
      const world = yield* setting({ late })
      const { states, reached, proceed } = yield* slowReplies(world.shared.states)
      yield* world.here.through(() => ({ states }))
      const running = yield* Effect.forkChild(world.here.call(world.accountId, { key: "key", requestId: "req_a" }))
      yield* reached
      yield* elapse(LIFETIME)
      yield* meanwhile(world.shared)
      yield* world.here.heal
      yield* proceed
      return { ...world, end: yield* Effect.result(Fiber.join(running)) }
    })
  /** The work is done and its settlement sent, but another host ends the hold before it arrives. */
  const overtaken = (late: "withhold" | "charge") =>
    Effect.gen(function* () {
      const world = yield* setting({ late })
      const there = yield* host(world.shared, world.bench)
      const rival = () => Effect.andThen(TestClock.adjust(LIFETIME), there.ledger.execute(world.accountId, Decisions.applyDue))
      yield* world.here.fail({ plan: { appends: { 2: "conflict" } }, rival })
      const end = yield* Effect.result(world.here.call(world.accountId, { requestId: "req_a" }))
      return { ...world, end }
    })

  testing(
    "withholds the result: nothing is charged, and the key is free",
    Effect.gen(function* () {
      const { shared, bench, here, accountId, end } = yield* slow("withhold")
      expect(end).toMatchObject({ _tag: "Failure", failure: { _tag: "ResultWithheld" } })
      expect(yield* here.balance(accountId)).toEqual(FULL)
      expect(yield* told(here.call(accountId, { key: "key" }))).toBe("reply")
      expect(yield* endsIn(shared)).toEqual(["CreditReserved", "Refunded abandoned", "CreditReserved", "OperationSucceeded"])
      expect(bench.runs).toHaveLength(2)
      expect(yield* told(here.call(accountId, { key: "key" }))).toBe("replayed")
    })
  )

  testing(
    "withholds the result if another host has refunded the call",
    Effect.gen(function* () {
      const { shared, here, accountId, end } = yield* overtaken("withhold")
      expect(end).toMatchObject({ _tag: "Failure", failure: { _tag: "ResultWithheld" } })
      expect(yield* endsIn(shared)).toEqual(["CreditReserved", "Refunded abandoned"])
      expect(yield* here.balance(accountId)).toEqual(FULL)
    })
  )

  testing(
    "charges under a new reservation in one append if the host chose so, and is replayed",
    Effect.gen(function* () {
      for (const world of [yield* slow("charge"), yield* overtaken("charge")]) {
        const { shared, bench, here, accountId, end } = world
        expect(end).toMatchObject({
          _tag: "Success",
          success: { requestId: "req_a", billed: { charged: UNIT, balance: 9 * UNIT }, replayed: false }
        })
        const [hold, refund, late, success] = yield* eventsIn(shared)
        const first = hold?._tag === "CreditReserved" ? hold.reservationId : ""
        expect(refund).toMatchObject({ _tag: "Refunded", reservationId: first, reason: "abandoned" })
        expect(late).toMatchObject({ _tag: "CreditReserved", lateOf: first, requestId: "req_a", amount: UNIT, priceVersion: 1 })
        expect(success).toMatchObject({ _tag: "OperationSucceeded", charged: UNIT })
        expect(yield* here.balance(accountId)).toEqual(CHARGED)
        if (late?._tag === "CreditReserved" && late.keyHash !== undefined) {
          expect(yield* here.call(accountId, { key: "key" })).toMatchObject({
            requestId: "req_a",
            billed: { charged: UNIT },
            replayed: true
          })
        }
        expect(bench.runs).toHaveLength(1)
      }
    })
  )

  testing(
    "withholds the result if no credits are left to charge",
    Effect.gen(function* () {
      const spent = (shared: Stores) => Effect.flatMap(host(shared, makeBench()), (there) => there.call("acc_1", { units: 10 }))
      const { shared, here, accountId, end } = yield* slow("charge", (shared) => Effect.scoped(spent(shared)))
      expect(end).toMatchObject({ _tag: "Failure", failure: { _tag: "ResultWithheld" } })
      expect(yield* endsIn(shared)).toEqual(["CreditReserved", "Refunded abandoned", "CreditReserved", "OperationSucceeded"])
      expect(yield* here.balance(accountId)).toEqual({ available: 0, held: 0 })
    })
  )

  const laterReply = { requestId: "req_b", data: '{"text":"the later one","count":1}' }
  const laterBench = () => {
    const bench = makeBench()
    bench.answer = () => Effect.succeed({ data: { text: "the later one", count: 1 } })
    return bench
  }
  const replaysForADay = ({ here, accountId }: Effect.Success<ReturnType<typeof setting>>, age: number) =>
    Effect.gen(function* () {
      for (const wait of [0, minutes(9), minutes(11), minutes(60), hours(22) - age]) {
        yield* elapse(wait)
        expect(yield* here.call(accountId, { key: "key" })).toMatchObject({ ...laterReply, replayed: true })
      }
    })

  for (const late of ["withhold", "charge"] as const)
    for (const age of [0, minutes(25)]) {
      testing(
        `does not affect a later attempt under its key that ended ${age / 60_000} minutes ago (${late})`,
        Effect.gen(function* () {
          const later = laterBench()
          const retry = (shared: Stores) =>
            Effect.andThen(
              Effect.scoped(Effect.flatMap(host(shared, later), (there) => there.call("acc_1", { key: "key", requestId: "req_b" }))),
              elapse(age)
            )
          const world = yield* slow(late, retry)
          const { shared, bench, here, accountId } = world
          expect(world.end).toMatchObject({ _tag: "Failure", failure: { _tag: "ResultWithheld" } })
          yield* replaysForADay(world, age)
          expect(yield* endsIn(shared)).toEqual(["CreditReserved", "Refunded abandoned", "CreditReserved", "OperationSucceeded"])
          expect([bench.runs.length, later.runs.length]).toEqual([1, 1])
          expect(yield* here.balance(accountId)).toEqual(CHARGED)
        })
      )
    }

  for (const late of ["withhold", "charge"] as const) {
    testing(
      `does not affect a later attempt under its key that still runs (${late})`,
      Effect.gen(function* () {
        const later = laterBench()
        const { started, proceed } = yield* paused(later)
        const running = yield* Deferred.make<Fiber.Fiber<string>>()
        const retry = (shared: Stores) =>
          Effect.gen(function* () {
            const there = yield* host(shared, later)
            const fiber = yield* Effect.forkDetach(told(there.call("acc_1", { key: "key", requestId: "req_b" })))
            yield* started
            for (const i of range(3)) yield* there.grant("acc_1", UNIT, `lot_more_${i}`)
            yield* Deferred.succeed(running, fiber)
          })
        const world = yield* slow(late, retry)
        expect(world.end).toMatchObject({ _tag: "Failure", failure: { _tag: "ResultWithheld" } })
        yield* proceed
        expect(yield* Fiber.join(yield* Deferred.await(running))).toBe("reply")
        yield* replaysForADay(world, 0)
        expect(yield* endsIn(world.shared)).toEqual(["CreditReserved", "Refunded abandoned", "CreditReserved", "OperationSucceeded"])
      })
    )
  }

  testing(
    "is replayed if a later attempt replaced its reply and then failed",
    Effect.gen(function* () {
      const { shared, bench, here, accountId } = yield* setting({ late: "charge" })
      const later = laterBench()
      const there = yield* mortalHost(shared, later)
      const { states } = shared
      const write = (after: (replies: number) => Effect.Effect<unknown, unknown>) => {
        let replies = 0
        return (changes: Parameters<typeof states.write>[0]) =>
          changes.some(({ space }) => space === "replies")
            ? Effect.tap(states.write(changes), () => Effect.orDie(after(++replies)))
            : states.write(changes)
      }
      // It dies after its reply was kept and before it settled
      yield* there.through(() => ({ states: { ...states, write: write(() => there.cut) } }))
      const laterAttempt = Effect.gen(function* () {
        expect(yield* patiently(told(there.call(accountId, { key: "key", requestId: "req_b" })))).toBe("OutcomeUnknown")
        yield* there.die
        yield* elapse(LIFETIME)
      })
      // The first reply is kept too late, the second is for the new charge
      const second = (replies: number) => [elapse(LIFETIME), laterAttempt][replies - 1] ?? Effect.void
      yield* here.through(() => ({ states: { ...states, write: write(second) } }))
      expect(yield* here.call(accountId, { key: "key", requestId: "req_a" })).toMatchObject({ requestId: "req_a", replayed: false })
      yield* here.heal
      expect(yield* told(here.call(accountId, { key: "key" }))).toBe("replayed")
      expect(yield* here.call(accountId, { key: "key" })).toMatchObject({ requestId: "req_a", billed: { charged: UNIT } })
      expect([bench.runs.length, later.runs.length]).toEqual([1, 1])
      const holds = ["CreditReserved", "Refunded abandoned", "CreditReserved", "Refunded abandoned"]
      expect(yield* endsIn(shared)).toEqual([...holds, "CreditReserved", "OperationSucceeded"])
      expect(yield* here.balance(accountId)).toEqual(CHARGED)
    })
  )

  testing(
    "charges once, also if that append is in doubt for long",
    Effect.gen(function* () {
      for (const key of KEYS) {
        const { shared, bench, here, accountId } = yield* setting({ late: "charge" })
        const there = yield* host(shared, bench)
        const rival = () => Effect.andThen(TestClock.adjust(LIFETIME), there.ledger.execute(accountId, Decisions.applyDue))
        // The settlement is overtaken; the late charge is confirmed only after ten attempts
        const appends = Object.fromEntries(range(10).map((i) => [i + 3, "after" as const]))
        yield* here.fail({ plan: { appends: { 2: "conflict", ...appends } }, rival })
        expect(yield* patiently(told(here.call(accountId, withKey(key))))).toBe("reply")
        expect(yield* here.balance(accountId)).toEqual(CHARGED)
        expect(yield* endsIn(shared)).toEqual(["CreditReserved", "Refunded abandoned", "CreditReserved", "OperationSucceeded"])
      }
    })
  )

  testing(
    "that is charged without a confirmation fails with OutcomeUnknown: refunded without a key, replayed with one",
    Effect.gen(function* () {
      for (const key of KEYS) {
        const { shared, bench, here, accountId } = yield* setting({ late: "charge" })
        const there = yield* host(shared, bench)
        yield* here.through(({ events }) => ({
          events: {
            ...events,
            append: (stream, expected, batch) =>
              Effect.gen(function* () {
                const isSettle = batch.some(({ type }) => type === "OperationSucceeded")
                if (isSettle && batch.length === 1) {
                  // Another host ends the hold first
                  yield* TestClock.adjust(LIFETIME)
                  yield* Effect.orDie(there.ledger.execute(accountId, Decisions.applyDue))
                }
                const appended = yield* events.append(stream, expected, batch)
                if (!isSettle) return appended
                // The late charge is written; then nothing is confirmed any more
                yield* here.cut
                return yield* new EventStore.AppendInDoubt({ stream, reason: "cut off" })
              })
          }
        }))
        expect(yield* patiently(told(here.call(accountId, withKey(key))))).toBe("OutcomeUnknown")
        yield* here.heal
        yield* elapse(seconds(30))
        const late = ["CreditReserved", "Refunded abandoned", "CreditReserved", "OperationSucceeded"]
        expect(yield* endsIn(shared)).toEqual(key === undefined ? [...late, "Refunded service_error"] : late)
        expect(yield* here.balance(accountId)).toEqual(key === undefined ? FULL : CHARGED)
        expect(yield* told(here.call(accountId, withKey(key)))).toBe(key === undefined ? "reply" : "replayed")
      }
    })
  )
})

const expiryOf = (shared: Stores) =>
  Effect.map(eventsIn(shared), ([hold]) => (hold?._tag === "CreditReserved" ? (hold.expiresAt ?? Number.NaN) : Number.NaN))
