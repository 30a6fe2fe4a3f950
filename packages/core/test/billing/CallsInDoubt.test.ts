/** A caller without a key whose call has an unknown outcome pays nothing, whichever process dies and whatever arrives late. */
import { EventStore, StateStore } from "@millrace/event-sourcing"
import { Clock, Effect, Layer, Stream } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect } from "vitest"
import * as FaultyEventStore from "../../../testing/src/FaultyEventStore.ts"
import { CallsInDoubt } from "../../src/billing/CallsInDoubt.ts"
import * as Decisions from "../../src/ledger/Decisions.ts"
import {
  ACCOUNT,
  CHARGED,
  elapse,
  endsIn,
  FULL,
  host,
  LIFETIME,
  makeBench,
  minutes,
  mortalHost,
  opened,
  patiently,
  range,
  type Stores,
  seconds,
  setting,
  stores,
  testing,
  told,
  UNIT,
  until
} from "./Bench.ts"

const SWEEP = seconds(30)

const promisesOf = ({ states }: Stores) =>
  Effect.gen(function* () {
    return yield* CallsInDoubt
  }).pipe(Effect.provide(Layer.provide(Layer.fresh(CallsInDoubt.layer), Layer.succeed(StateStore.StateStore, states))))

/** The reservations of the recorded calls. */
const promised = (shared: Stores) => Effect.map(shared.states.list("unanswered"), (entries) => entries.map(({ key }) => key))

/** A call that is charged, but its process died before it confirmed that to the caller. */
const chargedUnheard = (options: { readonly key?: string } = {}) =>
  Effect.gen(function* () {
    const shared = yield* stores
    const bench = makeBench()
    const here = yield* mortalHost(shared, bench)
    const accountId = yield* opened(here, 10 * UNIT)
    const { answer } = bench
    bench.answer = (...of) => Effect.andThen(here.fail({ rates: { after: 1 }, unavailable: 1 }), answer(...of))
    expect(yield* patiently(told(here.call(accountId, options)))).toBe("OutcomeUnknown")
    yield* here.die
    bench.answer = answer
    expect(yield* endsIn(shared)).toEqual(["CreditReserved", "OperationSucceeded"])
    return { shared, bench, accountId }
  })

/** A call that is charged late under a new reservation, whose append reaches the log when the test says so. */
const onItsWay = Effect.gen(function* () {
  const { shared, bench, here, accountId } = yield* setting({ late: "charge" })
  const there = yield* host(shared, bench, { recovery: { sweepEvery: SWEEP } })
  let late: Effect.Effect<unknown, unknown> | undefined
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
          if (!isSettle || batch.length === 1) return yield* events.append(stream, expected, batch)
          late = events.append(stream, expected, batch)
          yield* here.fail({ rates: { before: 1 }, unavailable: 1 })
          return yield* new EventStore.AppendInDoubt({ stream, reason: "on its way" })
        })
    }
  }))
  expect(yield* patiently(told(here.call(accountId)))).toBe("OutcomeUnknown")
  yield* here.heal
  yield* elapse(seconds(20))
  expect(yield* endsIn(shared)).toEqual(["CreditReserved", "Refunded abandoned"])
  expect(yield* promised(shared)).toHaveLength(1)
  return { shared, there, accountId, arrive: Effect.suspend(() => late ?? Effect.die(new Error("Nothing is on its way"))) }
})

describe("a recorded call in doubt", () => {
  testing(
    "is removed by the process that makes the call free",
    Effect.gen(function* () {
      const { shared, bench, here, accountId } = yield* setting()
      const { answer } = bench
      bench.answer = (...of) => Effect.andThen(here.fail({ rates: { after: 1 }, unavailable: 1 }), answer(...of))
      expect(yield* patiently(told(here.call(accountId)))).toBe("OutcomeUnknown")
      expect(yield* promised(shared)).toHaveLength(1)
      yield* here.heal
      yield* elapse(seconds(30))
      expect(yield* endsIn(shared)).toEqual(["CreditReserved", "OperationSucceeded", "Refunded service_error"])
      expect(yield* promised(shared)).toEqual([])
    })
  )

  for (const { away, name } of [
    { name: "refuses", away: Effect.void },
    { name: "does not answer for 20 seconds, then fails", away: Effect.sleep(seconds(20)) }
  ]) {
    testing(
      `is written later to a state store that ${name}; the caller waits a second for it`,
      Effect.gen(function* () {
        const shared = yield* stores
        const bench = makeBench()
        const here = yield* mortalHost(shared, bench)
        const accountId = yield* opened(here, 10 * UNIT)
        const failed = Effect.andThen(away, Effect.fail(new StateStore.StateUnavailable({ reason: "no disk" })))
        let isAway = true
        const { answer } = bench
        bench.answer = (...of) =>
          Effect.andThen(
            here.through(({ events, states }) => ({
              events: FaultyEventStore.make(events, { rates: { after: 1 }, unavailable: 1 }),
              states: {
                ...states,
                write: (changes) => (isAway && changes.some(({ space }) => space === "unanswered") ? failed : states.write(changes))
              }
            })),
            answer(...of)
          )
        const began = yield* Clock.currentTimeMillis
        expect(yield* patiently(told(here.call(accountId)))).toBe("OutcomeUnknown")
        expect((yield* Clock.currentTimeMillis) - began).toBeLessThan(seconds(10))
        expect(yield* promised(shared)).toEqual([])
        isAway = false
        yield* elapse(seconds(20))
        yield* elapse(seconds(1))
        expect(yield* promised(shared)).toHaveLength(1)
        yield* here.die
        bench.answer = answer
        const there = yield* host(shared, bench, { recovery: { sweepEvery: SWEEP } })
        yield* elapse(2 * SWEEP)
        expect(yield* endsIn(shared)).toEqual(["CreditReserved", "OperationSucceeded", "Refunded service_error"])
        expect(yield* there.balance(accountId)).toEqual(FULL)
        expect(yield* promised(shared)).toEqual([])
      })
    )
  }

  testing(
    "is not written for a caller with a key, who can retry: the charge stays",
    Effect.gen(function* () {
      const { shared, bench, accountId } = yield* chargedUnheard({ key: "key" })
      expect(yield* promised(shared)).toEqual([])
      const there = yield* host(shared, bench, { recovery: { sweepEvery: SWEEP } })
      yield* elapse(2 * SWEEP)
      expect(yield* endsIn(shared)).toEqual(["CreditReserved", "OperationSucceeded"])
      expect(yield* there.balance(accountId)).toEqual(CHARGED)
      expect(yield* told(there.call(accountId, { key: "key" }))).toBe("replayed")
    })
  )

  testing(
    "is made free when its charge reaches the log within the hour",
    Effect.gen(function* () {
      const { shared, there, accountId, arrive } = yield* onItsWay
      for (const _ of range(50)) yield* elapse(minutes(1))
      expect(yield* promised(shared)).toHaveLength(1)
      yield* arrive
      expect(yield* there.balance(accountId)).toEqual(CHARGED)
      yield* elapse(2 * SWEEP)
      expect(yield* endsIn(shared)).toEqual([
        ...["CreditReserved", "Refunded abandoned"],
        ...["CreditReserved", "OperationSucceeded", "Refunded service_error"]
      ])
      expect(yield* there.balance(accountId)).toEqual(FULL)
      expect(yield* promised(shared)).toEqual([])
    })
  )

  testing(
    "is removed once no append of it can arrive",
    Effect.gen(function* () {
      const { shared, there, accountId } = yield* onItsWay
      for (const _ of range(62)) yield* elapse(minutes(1))
      expect(yield* promised(shared)).toEqual([])
      expect(yield* endsIn(shared)).toEqual(["CreditReserved", "Refunded abandoned"])
      expect(yield* there.balance(accountId)).toEqual(FULL)
    })
  )

  testing(
    "is made free behind many records that are unknown or cannot be read",
    Effect.gen(function* () {
      const { shared, bench, accountId } = yield* chargedUnheard()
      const [real = ""] = yield* promised(shared)
      const promises = yield* promisesOf(shared)
      const others = range(600).map((i) => `first_${String(i).padStart(4, "0")}`)
      for (const reservationId of others) {
        yield* promises.add({ accountId: reservationId === others[0] ? "acc_unreadable" : accountId, reservationId, requestId: "req" })
      }
      expect([...others, real].toSorted().at(-1)).toBe(real)
      const events: EventStore.EventStore["Service"] = {
        ...shared.events,
        readStream: (stream, options) =>
          stream.endsWith("acc_unreadable")
            ? Stream.fail(new EventStore.StoreUnavailable({ reason: "unreadable" }))
            : shared.events.readStream(stream, options)
      }
      const there = yield* host({ ...shared, events }, bench, { recovery: { sweepEvery: SWEEP } })
      yield* until(
        Effect.map(promised(shared), (left) => !left.includes(real)),
        minutes(5)
      )
      expect(yield* promised(shared)).toEqual(others)
      expect(yield* there.balance(accountId)).toEqual(FULL)
    })
  )

  testing(
    "is made free once, by the one process that holds the lease",
    Effect.gen(function* () {
      const { shared, bench, accountId } = yield* chargedUnheard()
      const looks = [0, 0]
      const states = (i: number): Stores["states"] => ({
        ...shared.states,
        list: (space, options) => {
          if (space === "unanswered") looks[i] = (looks[i] ?? 0) + 1
          return shared.states.list(space, options)
        }
      })
      const hosts = yield* Effect.forEach(looks, (_, i) =>
        host({ ...shared, states: states(i) }, bench, { recovery: { sweepEvery: SWEEP } })
      )
      yield* elapse(2 * SWEEP)
      expect(looks.filter((times) => times > 0)).toHaveLength(1)
      expect(yield* endsIn(shared)).toEqual(["CreditReserved", "OperationSucceeded", "Refunded service_error"])
      for (const each of hosts) expect(yield* each.balance(accountId)).toEqual(FULL)
      expect(yield* promised(shared)).toEqual([])
    })
  )

  testing(
    "is made free once the state store can be read again; until then the status gives the reason",
    Effect.gen(function* () {
      const { shared, bench, accountId } = yield* chargedUnheard()
      const there = yield* host(shared, bench, { recovery: { sweepEvery: SWEEP } })
      const trouble = Effect.map(there.recovery?.status ?? Effect.die("no recovery"), ({ callsInDoubt }) => callsInDoubt)
      yield* there.through(({ states }) => ({
        states: {
          ...states,
          list: (space, options) =>
            space === "unanswered" ? Effect.fail(new StateStore.StateUnavailable({ reason: "no disk" })) : states.list(space, options)
        }
      }))
      yield* elapse(2 * SWEEP)
      expect(yield* trouble).toMatchObject({ reason: "no disk" })
      expect(yield* there.balance(accountId)).toEqual(CHARGED)
      yield* there.heal
      yield* elapse(2 * SWEEP)
      expect(yield* trouble).toBeUndefined()
      expect(yield* there.balance(accountId)).toEqual(FULL)
    })
  )
})

describe("the list of calls in doubt", () => {
  testing(
    "is read in pages, in order, with the time of each record, and skips malformed rows",
    Effect.gen(function* () {
      const shared = yield* stores
      const promises = yield* promisesOf(shared)
      const ids = range(1_100).map((i) => `res_${String(i).padStart(4, "0")}`)
      yield* TestClock.setTime(1_000)
      for (const reservationId of ids) yield* promises.add({ accountId: ACCOUNT, reservationId, requestId: "req" })
      yield* shared.states.write([{ _tag: "put", space: "unanswered", key: "res_0003", value: Buffer.from("{}") }])
      yield* promises.remove("res_0005")
      const seen: Array<string> = []
      for (let page = yield* promises.page(); page.length > 0; page = yield* promises.page(page.at(-1)?.reservationId)) {
        for (const { reservationId, ...call } of page) {
          seen.push(reservationId)
          expect(call).toEqual({ accountId: ACCOUNT, requestId: "req", at: 1_000 })
        }
      }
      expect(seen).toEqual(ids.filter((id) => id !== "res_0003" && id !== "res_0005"))
    })
  )
})
