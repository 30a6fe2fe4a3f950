import { Cause, Effect, Exit, Fiber, Layer, Option, type Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import * as FaultyEventStore from "../../testing/src/FaultyEventStore.ts"
import * as SeededRandom from "../../testing/src/SeededRandom.ts"
import { type EventData, EventStore, start } from "../src/EventStore.ts"
import * as HashChain from "../src/HashChain.ts"
import * as MemoryEventStore from "../src/MemoryEventStore.ts"

const testing = (name: string, body: Effect.Effect<unknown, unknown, EventStore | Scope.Scope>) =>
  test(name, () =>
    Effect.runPromise(Effect.asVoid(body).pipe(Effect.scoped, Effect.provide(Layer.mergeAll(MemoryEventStore.layer, TestClock.layer()))))
  )

const event = (id: string): EventData => ({ id, type: "Paid", data: "{}", metadata: "{}" })
const idsIn = (store: EventStore["Service"]) => Effect.map(Stream.runCollect(store.readStream("till-x")), (log) => log.map(({ id }) => id))
const tagOf = (exit: Exit.Exit<unknown, { readonly _tag: string }>) =>
  Exit.isSuccess(exit)
    ? "ok"
    : Option.getOrElse(
        Option.map(Exit.findErrorOption(exit), ({ _tag }) => _tag),
        () => Cause.pretty(exit.cause)
      )

describe("an append that meets a fault", () => {
  const cases = {
    before: { answer: "StoreUnavailable", atOnce: [], later: [] },
    after: { answer: "AppendInDoubt", atOnce: ["1"], later: ["1"] },
    lost: { answer: "AppendInDoubt", atOnce: [], later: [] },
    unanswered: { answer: "AppendInDoubt", atOnce: [], later: ["1"] }
  } as const
  for (const fault of FaultyEventStore.faults)
    testing(
      `"${fault}" is answered and written as that fault defines`,
      Effect.gen(function* () {
        const memory = yield* EventStore
        const store = FaultyEventStore.make(memory, { plan: { appends: { 1: fault } } })
        expect(tagOf(yield* Effect.exit(store.append("till-x", "noStream", [event("1")])))).toBe(cases[fault].answer)
        expect(yield* idsIn(memory)).toEqual(cases[fault].atOnce)
        yield* TestClock.adjust("1 second")
        expect(yield* idsIn(memory)).toEqual(cases[fault].later)
        // Sending it again settles it in either case
        if (fault !== "before") expect(yield* store.append("till-x", "noStream", [event("1")])).toMatchObject({ revision: 0 })
        expect(store.trace[0]).toEqual({ at: 0, call: "append", count: 1, stream: "till-x", outcome: fault })
      })
    )

  testing(
    "that arrives late is written only if its expected revision still holds",
    Effect.gen(function* () {
      const memory = yield* EventStore
      const store = FaultyEventStore.make(memory, { plan: { appends: { 1: "unanswered" } } })
      yield* Effect.exit(store.append("till-x", "noStream", [event("1")]))
      yield* store.append("till-x", "noStream", [event("2")])
      yield* TestClock.adjust("1 second")
      expect(yield* idsIn(memory)).toEqual(["2"])
      expect(store.trace.map(({ outcome }) => outcome)).toEqual(["unanswered", "ok", "arrived WrongRevision"])
    })
  )

  testing(
    "(silent) is never answered, and writes nothing",
    Effect.gen(function* () {
      const memory = yield* EventStore
      const store = FaultyEventStore.make(memory, { plan: { appends: { 1: "silent" } }, delay: 10 })
      const fiber = yield* Effect.forkChild(store.append("till-x", "noStream", [event("1")]))
      yield* TestClock.adjust("1 hour")
      expect(fiber.pollUnsafe()).toBeUndefined()
      yield* Fiber.interrupt(fiber)
      expect(yield* idsIn(memory)).toEqual([])
    })
  )

  testing(
    "(conflict) fails because a rival appended first; the rival's event fits the hash chain",
    Effect.gen(function* () {
      const memory = yield* EventStore
      const rival = FaultyEventStore.rival((stream) => ({ type: "Seen", data: JSON.stringify({ stream }) }))
      const store = FaultyEventStore.make(memory, { plan: { appends: { 1: "conflict", 2: "conflict" } }, rival })
      for (const expected of ["noStream", 0] as const)
        expect(tagOf(yield* Effect.exit(store.append("till-x", expected, [event("1")])))).toBe("WrongRevision")
      const [first, second] = yield* Stream.runCollect(memory.readStream("till-x"))
      expect(first?.data).toBe(`{"stream":"till-x"}`)
      expect(HashChain.verify(HashChain.start("till-x"), first!)).toBe(true)
      expect(HashChain.verify(HashChain.hashOf(first!), second!)).toBe(true)
      expect(() => FaultyEventStore.make(memory, { rates: { conflict: 1 } })).toThrow("needs a rival")
    })
  )
})

testing(
  "other calls fail where the plan says, and none fails after calm()",
  Effect.gen(function* () {
    const memory = yield* EventStore
    yield* memory.append("till-x", "noStream", [event("1"), event("2")])
    const store = FaultyEventStore.make(memory, { plan: { others: [2, 3, 5, 7, 8] }, rates: { before: 1 } })
    const calls: ReadonlyArray<Effect.Effect<unknown, { readonly _tag: string }>> = [
      store.lastRevision("till-x"),
      store.lastRevision("till-x"),
      Stream.runCollect(store.readStream("till-x")),
      Stream.runCollect(store.readStream("till-x")),
      store.head,
      Stream.runCollect(store.readAll(start)),
      store.loadSnapshot("tillSnapshot-x"),
      store.saveSnapshot("tillSnapshot-x", { revision: 0, data: "{}" }),
      store.append("till-x", 1, [event("3")])
    ]
    const no = "StoreUnavailable"
    expect((yield* Effect.forEach(calls, Effect.exit)).map(tagOf)).toEqual(["ok", no, no, "ok", no, "ok", no, no, no])
    store.calm()
    expect((yield* Effect.forEach(calls, Effect.exit)).map(tagOf)).toEqual(calls.map(() => "ok"))
  })
)

testing(
  "many appends meet faults at the given rates, and the same seed repeats them",
  Effect.gen(function* () {
    const memory = yield* EventStore
    const outcomes = (seed: number) =>
      Effect.gen(function* () {
        const random = SeededRandom.make(seed)
        const store = FaultyEventStore.make(memory, { random, rates: { before: 0.1, after: 0.2, lost: 0.3 } })
        for (let i = 0; i < 2_000; i++) yield* Effect.exit(store.append("till-x", 99_999, [event(`${i}`)]))
        return store.trace.map(({ outcome }) => outcome)
      })
    const all = yield* outcomes(1)
    for (const [fault, rate] of [
      ["before", 0.1],
      ["after", 0.2],
      ["lost", 0.3]
    ] as const)
      expect(Math.abs(all.filter((outcome) => outcome === fault).length / 2_000 - rate)).toBeLessThan(0.04)
    expect(yield* outcomes(1)).toEqual(all)
    expect(yield* outcomes(2)).not.toEqual(all)
  })
)

describe("a seeded random generator", () => {
  test("draws the same numbers in every release", () => {
    const random = SeededRandom.make(1)
    expect(Array.from({ length: 4 }, () => random.below(1_000_000))).toEqual([91_569, 506_197, 888_192, 487_255])
    expect(random.fork("a").below(1_000_000)).toBe(791_217)
  })

  test("stays within its bounds for every seed", () => {
    fc.assert(
      fc.property(fc.integer(), fc.integer({ min: 1, max: 1_000 }), (seed, bound) => {
        const random = SeededRandom.make(seed)
        for (let i = 0; i < 50; i++) {
          const drawn = random.below(bound)
          expect(Number.isInteger(drawn) && drawn >= 0 && drawn < bound).toBe(true)
        }
        expect(random.chance(0)).toBe(false)
        expect(random.chance(1)).toBe(true)
        expect([1, 2, 3]).toContain(random.pick([1, 2, 3]))
        expect(random.shuffle([1, 2, 3, 4]).sort()).toEqual([1, 2, 3, 4])
        expect(random.bytes(9)).toHaveLength(9)
      })
    )
  })

  test("is uniform", () => {
    const random = SeededRandom.make(7)
    const counts = new Array<number>(10).fill(0)
    for (let i = 0; i < 100_000; i++) counts[random.below(10)]!++
    for (const count of counts) expect(Math.abs(count - 10_000)).toBeLessThan(500)
  })

  test("gives a fork that depends only on the seed and the name, not on earlier draws", () => {
    fc.assert(
      fc.property(fc.integer(), fc.nat(20), (seed, draws) => {
        const first = SeededRandom.make(seed)
        const later = SeededRandom.make(seed)
        for (let i = 0; i < draws; i++) later.next()
        const drawn = (random: SeededRandom.SeededRandom) => Array.from({ length: 4 }, random.next)
        expect(drawn(later.fork("a"))).toEqual(drawn(first.fork("a")))
        const all = [first, first.fork("a"), first.fork("b"), first.fork("a").fork("a"), SeededRandom.make(seed + 1).fork("a")].map(drawn)
        expect(new Set(all.map(String)).size).toBe(all.length)
        expect(first.fork("ids").eventIds()(5)).toBe(later.fork("ids").eventIds()(5))
      })
    )
  })
})
