/** Hosts of a cluster forward calls to each other, and links between them break. */
import { StateStore } from "@millrace/event-sourcing"
import { Cause, Deferred, Effect, Exit, Fiber, Layer, Schedule, Scope } from "effect"
import { describe, expect } from "vitest"
import * as FaultProxy from "../../../testing/src/FaultProxy.ts"
import { NotFound } from "../../src/work/OperationError.ts"
import { accountOf, balanceAt, hostOn, PRICE, sees, stores, testing, twoHosts, until, type Work } from "./Cluster.ts"

describe("two hosts", () => {
  testing(
    "run each call at the leader of its account, wherever it arrives, and answer alike",
    Effect.gen(function* () {
      const { one, other, work } = yield* twoHosts
      const led = yield* accountOf(one, true)
      const away = yield* accountOf(one, false)
      const here = yield* one.call(led, "a")
      const there = yield* one.call(away, "b")
      yield* other.call(led, "c")
      expect(Object.fromEntries(work.ran)).toEqual({ a: ["one"], b: ["other"], c: ["one"] })
      expect(there).toEqual({ ...here, requestId: "req_one_2", data: '{"text":"B"}' })
      expect(there.billed).toEqual({ charged: PRICE, balance: 9 * PRICE })
    })
  )

  testing(
    "answer errors, replays and refusals as the leader does",
    Effect.gen(function* () {
      const { one, work } = yield* twoHosts
      const away = yield* accountOf(one, false)
      const first = yield* one.call(away, "a", "key")
      expect(yield* one.call(away, "a", "key")).toEqual({ ...first, replayed: true })
      expect((yield* Effect.flip(one.call(away, "other", "key")))._tag).toBe("KeyReused")
      work.answer = () => Effect.fail(new NotFound({ resource: "word" }))
      expect(yield* Effect.flip(one.call(away, "b"))).toEqual(new NotFound({ resource: "word" }))
      expect((yield* Effect.flip(one.call("acc_none", "b")))._tag).toBe("AccountNotFound")
      expect(yield* balanceAt(one, away)).toEqual({ available: 9 * PRICE, held: 0 })
    })
  )

  testing(
    "end the work at the leader when its caller is gone",
    Effect.gen(function* () {
      const { one, other, work } = yield* twoHosts
      const away = yield* accountOf(one, false)
      const started = yield* Deferred.make<void>()
      const interrupted = yield* Deferred.make<void>()
      work.answer = () =>
        Deferred.succeed(started, undefined).pipe(
          Effect.andThen(Effect.never),
          Effect.onInterrupt(() => Deferred.succeed(interrupted, undefined))
        )
      const calling = yield* Effect.forkChild(one.call(away, "a"))
      yield* Deferred.await(started)
      expect(yield* balanceAt(one, away)).toEqual({ available: 9 * PRICE, held: PRICE })
      yield* Fiber.interrupt(calling)
      yield* Deferred.await(interrupted)
      while ((yield* balanceAt(other, away)).held > 0) yield* Effect.sleep(10)
      expect(yield* balanceAt(one, away)).toEqual({ available: 10 * PRICE, held: 0 })
    })
  )
})

testing(
  "a host whose row is refused, as on a full disk, is passed over; calls at it and at others are answered, and charged once",
  Effect.gen(function* () {
    const shared = yield* stores
    const work: Work = { ran: new Map(), answer: (text) => Effect.succeed(text) }
    let isFull = false
    const refusing = Layer.effect(
      StateStore.StateStore,
      Effect.map(StateStore.StateStore, (store) => ({
        ...store,
        write: (changes) =>
          Effect.suspend(() =>
            isFull && changes[0].space === "cluster"
              ? Effect.fail(new StateStore.StateUnavailable({ reason: "no space left on device" }))
              : store.write(changes)
          )
      }))
    )
    const one = yield* hostOn(shared, "one", work)
    const other = yield* hostOn(Layer.provideMerge(refusing, shared), "other", work)
    yield* Effect.all([sees(one, 1), sees(other, 1)])
    const away = yield* accountOf(one, false)
    isFull = true
    let calls = 0
    while (!one.leading.leads(away)) {
      if (calls < 4) yield* Effect.all([one.call(away, `a${calls}`), other.call(away, `b${calls}`)], { concurrency: "unbounded" })
      calls = Math.min(4, calls + 2)
      yield* Effect.sleep("500 millis")
    }
    // Both lead it now, each for itself
    expect(other.leading.leads(away)).toBe(true)
    yield* Effect.all([one.call(away, "c"), other.call(away, "d")], { concurrency: "unbounded" })
    expect([work.ran.get("c"), work.ran.get("d")]).toEqual([["one"], ["other"]])
    expect([...work.ran.values()].every(({ length }) => length === 1)).toBe(true)
    expect(yield* balanceAt(one, away)).toEqual({ available: (10 - calls - 2) * PRICE, held: 0 })
  })
)

describe("a link that breaks", () => {
  const partitioned = Effect.gen(function* () {
    const shared = yield* stores
    const work: Work = { ran: new Map(), answer: (text) => Effect.succeed(text) }
    const one = yield* hostOn(shared, "one", work)
    // A port is found by listening on it
    const finding = yield* Scope.make()
    const { port } = yield* Effect.provideService(FaultProxy.make(1), Scope.Scope, finding)
    const proxy = yield* FaultProxy.make(port)
    yield* Scope.close(finding, Exit.void)
    const other = yield* hostOn(shared, "other", work, { behind: proxy, listen: port })
    yield* Effect.all([sees(one, 1), sees(other, 1)])
    return { one, other, proxy, work, away: yield* accountOf(one, false) }
  })

  for (const key of [undefined, "key"]) {
    testing(
      `after a call was sent: its outcome is unknown, and it is never run again (${key ?? "without a key"})`,
      Effect.gen(function* () {
        const { away, one, other, proxy, work } = yield* partitioned
        proxy.set({ down: { _tag: "reset" } })
        const exit = yield* Effect.exit(one.call(away, "a", key))
        expect(Exit.isFailure(exit) && Cause.squash(exit.cause)).toMatchObject({ _tag: "OutcomeUnknown" })
        expect(work.ran.get("a")).toEqual(["other"])
        yield* until(() => one.leading.leads(away))
        if (key === undefined) {
          const [promised] = yield* one.callsInDoubt.page()
          expect(promised).toMatchObject({ accountId: away, requestId: "req_one_1" })
          if (promised !== undefined) expect(yield* one.charge.makeFree(promised)).toBe(true)
          expect(yield* balanceAt(one, away)).toEqual({ available: 10 * PRICE, held: 0 })
        } else {
          const retried = yield* Effect.retry(one.call(away, "a", key), { times: 50, schedule: Schedule.spaced("20 millis") })
          expect(retried.data).toBe('{"text":"a"}')
          expect(yield* balanceAt(other, away)).toEqual({ available: 9 * PRICE, held: 0 })
        }
      })
    )
  }

  testing(
    "before a call is sent: it runs here, and the link opens again",
    Effect.gen(function* () {
      const { away, one, proxy, work } = yield* partitioned
      proxy.set({ up: { _tag: "reset" }, down: { _tag: "reset" } })
      proxy.reset()
      yield* until(() => one.leading.leads(away))
      yield* one.call(away, "a")
      proxy.set()
      yield* sees(one, 1)
      yield* one.call(away, "b")
      expect(Object.fromEntries(work.ran)).toEqual({ a: ["one"], b: ["other"] })
    })
  )
})
