/** A call ends alike whether a fiber waits for it (`run`) or a callback (`start`), whatever its work, its caller and the store do. */
import { AsyncLocalStorage } from "node:async_hooks"
import { EventStore } from "@millrace/event-sourcing"
import { Cause, Context, Deferred, Effect, Exit, Fiber, Logger, Tracer } from "effect"
import * as fc from "fast-check"
import { describe, expect, test } from "vitest"
import * as FaultyEventStore from "../../../testing/src/FaultyEventStore.ts"
import type { ChargeError, Reply } from "../../src/billing/Charge.ts"
import { NotFound, type OperationError, UpstreamUnavailable } from "../../src/work/OperationError.ts"
import {
  ACCOUNT,
  type Bench,
  elapse,
  endsIn,
  FULL,
  type Host,
  LIFETIME,
  patiently,
  setting,
  testing,
  UNIT,
  underTestClock
} from "./Bench.ts"

type End = Exit.Exit<Reply, OperationError | ChargeError>

/** What an operation does, by name. Each call is of three units. */
const WORKS = {
  succeeds: ({ text }) => Effect.succeed({ data: { text, count: text.length } }),
  "succeeds later": ({ text }) => Effect.delay(Effect.succeed({ data: { text, count: text.length } }), 200),
  "does one unit of three": ({ text }) => Effect.succeed({ data: { text, count: 1 }, quantity: 1 }),
  "does more than was held": ({ text }) => Effect.succeed({ data: { text, count: 1 }, quantity: 4 }),
  "is not found": () => Effect.delay(Effect.fail(new NotFound({ resource: "thing" })), 200),
  "is unavailable": () => Effect.fail(new UpstreamUnavailable({ upstream: "bench", reason: "down" })),
  // As a host in JavaScript may do
  "fails with something else": () => Effect.fail({ _tag: "UpstreamUnavailable" } as UpstreamUnavailable),
  "throws what is no text": () => Effect.delay(Effect.die(Object.create(null)), 200),
  dies: () => Effect.delay(Effect.die(new Error("a bug")), 200),
  throws: () => {
    throw new Error("a bug")
  },
  hangs: () => Effect.never,
  "interrupts itself": () => Effect.delay(Effect.interrupt, 200),
  "ends slowly when interrupted": () => Effect.onInterrupt(Effect.never, () => Effect.sleep(300)),
  "breaks its schema": ({ text }) => Effect.succeed({ data: { text, count: 0.5 } })
} satisfies Record<string, Bench["answer"]>

interface Scenario {
  readonly work: keyof typeof WORKS
  readonly operation: "work" | "create" | "free" | "new"
  /** What happens to the n-th append of the call, from 1. */
  readonly appends: Readonly<Record<number, FaultyEventStore.Fault>>
  /** The caller leaves right after this many steps of the call: checks, works, and appends that begin or end. */
  readonly leavesAfter: number | undefined
  readonly byCallback: boolean
}

const scenarios: fc.Arbitrary<Scenario> = fc.record({
  work: fc.constantFrom(...(Object.keys(WORKS) as Array<keyof typeof WORKS>)),
  operation: fc.constantFrom("work", "work", "work", "create", "free", "new"),
  appends: fc.dictionary(fc.integer({ min: 1, max: 4 }).map(String), fc.constantFrom(...FaultyEventStore.faults), { maxKeys: 3 }),
  leavesAfter: fc.option(fc.integer({ min: 1, max: 8 }), { nil: undefined }),
  byCallback: fc.boolean()
})

/** Calls an operation and returns its end, and any that is told later. `leave.now` interrupts the call. */
type Way = (here: Host, scenario: Scenario, leave: { now: () => void }) => Effect.Effect<ReadonlyArray<End>>

const INPUT = { text: "text", units: 3 }
const CALLER = { accountId: ACCOUNT, requestId: "req_1" }

const byRun: Way = Effect.fnUntraced(function* ({ charge, operations }, { operation }, leave) {
  const fiber = yield* Effect.forkChild(charge.run(operations[operation], INPUT, CALLER), { startImmediately: true })
  leave.now = () => fiber.interruptUnsafe()
  return [yield* patiently(Fiber.await(fiber), 500)]
})

const byStart: Way = Effect.fnUntraced(function* ({ charge, operations }, { operation }, leave) {
  const ends: Array<End> = []
  const ended = yield* Deferred.make<void>()
  const running = charge.start(operations[operation], INPUT, CALLER, yield* Effect.context<never>(), (exit) => {
    ends.push(exit)
    Deferred.doneUnsafe(ended, Exit.void)
  })
  if (running === undefined) throw new Error("A plain call is started")
  leave.now = () => running.interrupt()
  yield* patiently(Deferred.await(ended), 500)
  return ends
})

/** The store with the faults of a scenario. `step` is called when an append begins and ends. */
const faulty = (events: EventStore.EventStore["Service"], { appends }: Scenario, step: () => void) => {
  const store = FaultyEventStore.make(events, { plan: { appends }, lateBy: 100 })
  const append = EventStore.wrapAppend(store.append, (...of) => {
    const appended = Effect.onExit(store.append(...of), () => Effect.sync(step))
    return Effect.andThen(Effect.sync(step), appended)
  })
  return { ...store, append }
}

/** Everything that can be seen of a call: its end, its events, and the account's balance after the hold's lifetime. */
const seen = Effect.fnUntraced(function* (scenario: Scenario, way: Way) {
  const { bench, here, shared } = yield* setting({ byCallback: scenario.byCallback })
  const leave = { now: () => {} }
  let steps = 0
  let hasLeft = false
  let begunAfterLeaving = 0
  const step = () => {
    if (++steps !== scenario.leavesAfter) return
    queueMicrotask(() => {
      hasLeft = true
      leave.now()
    })
  }
  bench.check = () => Effect.sync(step)
  bench.answer = (input, caller) => {
    step()
    if (hasLeft) begunAfterLeaving++
    const work: Bench["answer"] = WORKS[scenario.work]
    return work(input, caller)
  }
  if (scenario.leavesAfter !== undefined || Object.keys(scenario.appends).length > 0)
    yield* here.through(({ events }) => ({ events: faulty(events, scenario, step) }))
  const ends = yield* way(here, scenario, leave)
  yield* here.heal
  yield* elapse(2 * LIFETIME)
  leave.now()
  expect(begunAfterLeaving).toBe(0)
  return { ends: ends.map(told), log: yield* endsIn(shared), balance: yield* here.balance(ACCOUNT) }
})

/** An end that can be compared: a reply, the tag of an error, or what a defect or an interruption is. */
const told = (end: End) => {
  if (Exit.isSuccess(end)) return end.value
  if (Cause.hasInterrupts(end.cause)) return "interrupted"
  const [reason] = end.cause.reasons
  return reason?._tag === "Fail" ? reason.error._tag : "defect"
}

describe("a call", () => {
  test("ends alike by a fiber and by a callback: charged once and answered, or free, and never left held", () =>
    fc.assert(
      fc.asyncProperty(scenarios, (scenario) =>
        underTestClock(
          Effect.gen(function* () {
            const { balance, ends, log } = yield* seen(scenario, byRun)
            expect(yield* seen(scenario, byStart)).toEqual({ balance, ends, log })
            const [end] = ends
            const spent = FULL.available - balance.available
            expect(balance.held).toBe(0)
            if (typeof end === "object") expect(end.billed?.charged).toBe(spent)
            // Who leaves while the charge is written may have paid for work that was done
            else if (end === "interrupted" && scenario.leavesAfter !== undefined) expect([0, UNIT, 3 * UNIT]).toContain(spent)
            else expect(spent).toBe(0)
          })
        )
      ),
      { numRuns: 150 }
    ))

  test.each(["work", "free"] as const)("ends, and leaves nothing held, though the reason of its failure cannot be told: %s", (operation) =>
    underTestClock(
      Effect.gen(function* () {
        const { bench, here } = yield* setting()
        const asked = {
          ...INPUT,
          get secret(): string {
            if (isReached) throw new Error("a bug of an input")
            return ""
          }
        }
        let isReached = false
        bench.answer = () => {
          isReached = true
          return Effect.fail(new UpstreamUnavailable({ upstream: "bench", reason: "down" }))
        }
        const ended = yield* Effect.forkChild(here.charge.run(here.operations[operation], asked, CALLER), { startImmediately: true })
        expect(told(yield* patiently(Fiber.await(ended), 500))).toBe("defect")
        expect((yield* here.balance(ACCOUNT)).held).toBe(0)
      })
    )
  )
})

describe("a call that is started", () => {
  testing(
    "is plain: a job, a key or a trace is left to `run`, and nothing is done",
    Effect.gen(function* () {
      const { bench, here, shared } = yield* setting()
      const context = yield* Effect.context<never>()
      const told = () => expect.unreachable()
      const { work } = here.operations
      const job = { ...work, _tag: "Job" } as unknown as typeof work
      const traced = Context.add(context, Tracer.Tracer, Tracer.make({ span: () => expect.unreachable() }))
      expect(here.charge.start(job, INPUT, CALLER, context, told)).toBeUndefined()
      expect(here.charge.start(work, INPUT, { ...CALLER, idempotency: { key: "k", request: "r" } }, context, told)).toBeUndefined()
      expect(here.charge.start(work, INPUT, CALLER, traced, told)).toBeUndefined()
      expect(bench.runs).toEqual([])
      expect(yield* endsIn(shared)).toEqual([])
    })
  )

  testing(
    "disturbs no other call of its append by a callback that throws",
    Effect.gen(function* () {
      const { bench, here, shared } = yield* setting({ byCallback: true })
      bench.answer = ({ text }, { requestId }) =>
        requestId === "fails" ? Effect.fail(new NotFound({ resource: "thing" })) : Effect.succeed({ data: { text, count: 1 } })
      const logged: Array<unknown> = []
      const logger = Logger.make(({ message }) => void logged.push(message))
      const context = yield* Effect.provide(Effect.context<never>(), Logger.layer([logger]))
      const thrown = new Error("a bug of the caller")
      for (const requestId of ["succeeds", "fails"])
        here.charge.start(here.operations.work, INPUT, { ...CALLER, requestId }, context, () => {
          throw thrown
        })
      expect(yield* here.call(ACCOUNT)).toMatchObject({ replayed: false })
      yield* elapse(1)
      expect((yield* endsIn(shared)).toSorted()).toEqual([
        ...Array(3).fill("CreditReserved"),
        ...Array(2).fill("OperationSucceeded"),
        "Refunded service_error"
      ])
      expect(logged).toEqual(Array(2).fill(["The caller of a call failed at its end", thrown]))
    })
  )
})

test("a call keeps the asynchronous context of its caller, in its work and in its end", () => {
  const storage = new AsyncLocalStorage<string>()
  return underTestClock(
    Effect.gen(function* () {
      const { bench, here } = yield* setting({ byCallback: true })
      const context = yield* Effect.context<never>()
      const found: Array<string | undefined> = []
      const { answer } = bench
      bench.answer = (input, caller) => {
        found.push(`${caller.requestId} works in ${storage.getStore()}`)
        return answer(input, caller)
      }
      const call = (requestId: string) => {
        const ended = Deferred.makeUnsafe<void>()
        storage.run(requestId, () =>
          here.charge.start(here.operations.work, INPUT, { ...CALLER, requestId }, context, () => {
            found.push(`${requestId} ends in ${storage.getStore()}`)
            Deferred.doneUnsafe(ended, Exit.void)
          })
        )
        return Deferred.await(ended)
      }
      yield* Effect.all([call("a"), call("b")])
      expect(found.toSorted()).toEqual(["a ends in a", "a works in a", "b ends in b", "b works in b"])
    })
  )
})
