/** The trial of an account that was never verified: ten calls that hold slots in place of credits. */
import { Deferred, Effect, Fiber } from "effect"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import * as Decisions from "../../src/ledger/Decisions.ts"
import { UpstreamUnavailable } from "../../src/work/OperationError.ts"
import {
  ACCOUNT,
  all,
  type Bench,
  count,
  elapse,
  endsIn,
  eventsIn,
  type Host,
  type HostOptions,
  host,
  LIFETIME,
  makeBench,
  mortalHost,
  paused,
  quiet,
  range,
  START,
  type Stores,
  stores,
  testing,
  told,
  UNIT,
  underTestClock,
  until
} from "./Bench.ts"

const SLOTS = 10
const USED = ["TrialReserved", "TrialUsed"]
const RELEASED = ["TrialReserved", "TrialReleased"]

const openedAccount = (here: Pick<Host, "ledger">) =>
  here.ledger.execute(ACCOUNT, Decisions.open({ sealedEmail: "sealed", emailHash: ACCOUNT }))

/** An account that was opened for an address, and nothing more. */
const onTrial = (options: HostOptions = {}) =>
  Effect.gen(function* () {
    const shared = yield* stores
    const bench = makeBench()
    const here = yield* host(shared, bench, options)
    yield* openedAccount(here)
    const trial = Effect.map(here.ledger.read(ACCOUNT), (account) => here.ledger.trialOf(account))
    return { shared, bench, here, trial }
  })

/** A failure of one call alone, which opens no circuit. */
const lost = () => Effect.fail(new UpstreamUnavailable({ upstream: "bench", reason: "lost", isolated: true }))
const down = () => Effect.fail(new UpstreamUnavailable({ upstream: "bench", reason: "down" }))

describe("a call of an account on trial", () => {
  testing(
    "holds a slot, uses it, and costs no credits",
    Effect.gen(function* () {
      const { bench, here, shared, trial } = yield* onTrial()
      const reply = yield* here.call(ACCOUNT, { text: "hello", units: 3, requestId: "req_a" })
      expect(reply).toEqual({
        requestId: "req_a",
        data: '{"text":"hello","count":5}',
        billed: { charged: 0, balance: 0, trialRemaining: 9 },
        replayed: false
      })
      const [slot, used] = yield* eventsIn(shared)
      const reservationId = bench.runs[0]?.reservationId
      const expiresAt = START + LIFETIME
      expect(slot).toEqual({ _tag: "TrialReserved", reservationId, requestId: "req_a", operation: "bench.work", expiresAt })
      expect(used).toEqual({ _tag: "TrialUsed", reservationId, replyHash: expect.any(String) })
      expect(yield* trial).toEqual({ total: SLOTS, used: 1, remaining: 9 })
    })
  )

  testing(
    "that costs nothing uses no slot, and tells how many remain",
    Effect.gen(function* () {
      const { here, shared, trial } = yield* onTrial()
      const { billed } = yield* here.call(ACCOUNT, { operation: "free" })
      expect(billed).toEqual({ charged: 0, balance: 0, trialRemaining: SLOTS })
      expect([yield* endsIn(shared), yield* trial]).toEqual([[], { total: SLOTS, used: 0, remaining: SLOTS }])
    })
  )

  testing(
    "releases its slot if it fails",
    Effect.gen(function* () {
      const { bench, here, shared, trial } = yield* onTrial()
      bench.answer = down
      for (const operation of ["work", "create"] as const)
        expect(yield* told(here.call(ACCOUNT, { operation }))).toBe("UpstreamUnavailable")
      expect(yield* eventsIn(shared)).toMatchObject(
        range(2).flatMap(() => [{ _tag: "TrialReserved" }, { _tag: "TrialReleased", reason: "service_error" }])
      )
      expect(yield* trial).toEqual({ total: SLOTS, used: 0, remaining: SLOTS })
    })
  )

  testing(
    "releases its slot if its caller leaves",
    Effect.gen(function* () {
      const { bench, here, shared, trial } = yield* onTrial()
      const { started } = yield* paused(bench)
      const call = yield* Effect.forkChild(here.call(ACCOUNT))
      yield* started
      expect(yield* trial).toEqual({ total: SLOTS, used: 0, remaining: 9 })
      yield* Fiber.interrupt(call)
      expect(yield* eventsIn(shared)).toMatchObject([{ _tag: "TrialReserved" }, { _tag: "TrialReleased", reason: "cancelled" }])
      expect(yield* trial).toEqual({ total: SLOTS, used: 0, remaining: SLOTS })
    })
  )

  testing(
    "is refused once all slots are used; free calls are not",
    Effect.gen(function* () {
      const { bench, here, shared } = yield* onTrial()
      for (const _ of range(SLOTS)) yield* here.call(ACCOUNT)
      expect(yield* Effect.flip(here.call(ACCOUNT))).toMatchObject({ _tag: "TrialUsedUp", slots: SLOTS })
      expect((yield* here.call(ACCOUNT, { operation: "free" })).billed).toMatchObject({ trialRemaining: 0 })
      expect(bench.runs).toHaveLength(SLOTS + 1)
      expect(count(yield* endsIn(shared))).toEqual({ TrialReserved: SLOTS, TrialUsed: SLOTS })
    })
  )

  testing(
    "whose slot expired before it ended is withheld",
    Effect.gen(function* () {
      for (const late of ["withhold", "charge"] as const) {
        const { bench, here, shared, trial } = yield* onTrial({ late })
        // An operation that does not end in time, and cannot be interrupted
        bench.answer = () => Effect.uninterruptible(Effect.as(Effect.sleep(LIFETIME + 1), { data: { text: "", count: 0 } }))
        const call = yield* Effect.forkChild(told(here.call(ACCOUNT)))
        yield* elapse(LIFETIME + 1)
        expect(yield* Fiber.join(call)).not.toBe("reply")
        expect((yield* eventsIn(shared)).map(({ _tag }) => _tag)).toEqual(RELEASED)
        expect(yield* trial).toEqual({ total: SLOTS, used: 0, remaining: SLOTS })
      }
    })
  )
})

describe("an idempotency key of an account on trial", () => {
  testing(
    "replays its call, which used one slot; another request under it is refused",
    Effect.gen(function* () {
      const { bench, here, shared } = yield* onTrial()
      const first = yield* here.call(ACCOUNT, { key: "key", text: "hello" })
      const again = yield* here.call(ACCOUNT, { key: "key", text: "hello" })
      expect(again).toEqual({ ...first, replayed: true })
      expect(yield* told(here.call(ACCOUNT, { key: "key", text: "other" }))).toBe("KeyReused")
      expect([bench.runs.length, yield* endsIn(shared)]).toEqual([1, USED])
    })
  )

  testing(
    "runs once for concurrent calls, at two hosts",
    Effect.gen(function* () {
      const { bench, here, shared } = yield* onTrial()
      const there = yield* host(shared, bench)
      const { started, proceed } = yield* paused(bench)
      const calls = yield* Effect.forkChild(
        Effect.all(
          range(32).map((i) => told((i % 2 === 0 ? here : there).call(ACCOUNT, { key: "key" }))),
          all
        )
      )
      yield* started
      yield* quiet
      yield* proceed
      expect(count(yield* Fiber.join(calls))).toEqual({ reply: 1, InFlight: 31 })
      expect(yield* endsIn(shared)).toEqual(USED)
      expect(yield* told(there.call(ACCOUNT, { key: "key" }))).toBe("replayed")
    })
  )

  testing(
    "is free again after a failure",
    Effect.gen(function* () {
      const { bench, here, shared } = yield* onTrial()
      const { answer } = bench
      bench.answer = down
      expect(yield* told(here.call(ACCOUNT, { key: "key" }))).toBe("UpstreamUnavailable")
      bench.answer = answer
      expect(yield* told(here.call(ACCOUNT, { key: "key" }))).toBe("reply")
      expect(yield* endsIn(shared)).toEqual([...RELEASED, ...USED])
    })
  )

  testing(
    "still replays its call once the account pays by credits",
    Effect.gen(function* () {
      const { here, shared } = yield* onTrial()
      const first = yield* here.call(ACCOUNT, { key: "key" })
      yield* here.grant(ACCOUNT, 5 * UNIT, "lot_1")
      const again = yield* here.call(ACCOUNT, { key: "key" })
      expect(again).toEqual({ ...first, billed: { charged: 0, balance: 5 * UNIT }, replayed: true })
      expect(yield* endsIn(shared)).toEqual(USED)
    })
  )
})

describe("a trial is over", () => {
  testing(
    "once the address is verified",
    Effect.gen(function* () {
      const { here, shared, trial } = yield* onTrial()
      yield* here.call(ACCOUNT)
      yield* here.registration.verify(ACCOUNT)
      expect(yield* trial).toBeUndefined()
      expect((yield* here.call(ACCOUNT)).billed).toEqual({ charged: UNIT, balance: 199 * UNIT })
      expect(yield* endsIn(shared)).toEqual([...USED, "AccountVerified", "CreditReserved", "OperationSucceeded"])
    })
  )

  testing(
    "once credits were granted, also after these are spent",
    Effect.gen(function* () {
      const { here, trial } = yield* onTrial()
      yield* here.grant(ACCOUNT, UNIT, "lot_1")
      expect(yield* trial).toBeUndefined()
      expect((yield* here.call(ACCOUNT)).billed).toEqual({ charged: UNIT, balance: 0 })
      expect(yield* told(here.call(ACCOUNT))).toBe("InsufficientCredits")
    })
  )

  testing(
    "for later calls only: a slot that a call holds is still used",
    Effect.gen(function* () {
      const { bench, here, shared } = yield* onTrial()
      const { started, proceed } = yield* paused(bench)
      const call = yield* Effect.forkChild(here.call(ACCOUNT))
      yield* started
      yield* here.registration.verify(ACCOUNT)
      yield* proceed
      expect((yield* Fiber.join(call)).billed).toEqual({ charged: 0, balance: 200 * UNIT })
      expect(yield* endsIn(shared)).toEqual(["TrialReserved", "AccountVerified", "TrialUsed"])
    })
  )

  testing(
    "before it begins: for an account without an address, a suspended one, and at a host without trials",
    Effect.gen(function* () {
      const { here, shared } = yield* onTrial()
      yield* here.ledger.execute("acc_2", Decisions.open({ sealedReference: "sealed", referenceHash: "acc_2" }))
      expect(yield* told(here.call("acc_2"))).toBe("InsufficientCredits")
      yield* here.registration.suspend(ACCOUNT)
      expect(yield* told(here.call(ACCOUNT))).toBe("AccountSuspended")
      yield* here.registration.reinstate(ACCOUNT)
      const there = yield* host(shared, makeBench(), { trial: false })
      expect(yield* told(there.call(ACCOUNT))).toBe("InsufficientCredits")
      expect((yield* there.call(ACCOUNT, { operation: "free" })).billed).toEqual({ charged: 0, balance: 0 })
    })
  )
})

/** The stores after a process died while a call held a slot. */
const crashed = (bench: Bench, key?: string) =>
  Effect.gen(function* () {
    const shared = yield* stores
    const first = yield* mortalHost(shared, bench)
    yield* openedAccount(first)
    const { started } = yield* paused(bench)
    const running = yield* Effect.forkDetach(Effect.exit(first.call(ACCOUNT, key === undefined ? {} : { key })))
    yield* started
    yield* first.die
    yield* Fiber.interrupt(running)
    return shared
  })

const trialAt = (shared: Stores) =>
  Effect.gen(function* () {
    const here = yield* host(shared, makeBench())
    return here.ledger.trialOf(yield* here.ledger.read(ACCOUNT))
  })

describe("after a crash", () => {
  testing(
    "recovery releases the slot at its deadline, and not before",
    Effect.gen(function* () {
      const shared = yield* crashed(makeBench())
      yield* host(shared, makeBench(), { recovery: {} })
      yield* elapse(LIFETIME - 1)
      expect(yield* endsIn(shared)).toEqual(["TrialReserved"])
      expect(yield* trialAt(shared)).toEqual({ total: SLOTS, used: 0, remaining: 9 })
      yield* until(Effect.map(endsIn(shared), (ends) => ends.length > 1))
      expect(yield* eventsIn(shared)).toMatchObject([{ _tag: "TrialReserved" }, { _tag: "TrialReleased", dueAt: START + LIFETIME }])
      expect(yield* trialAt(shared)).toEqual({ total: SLOTS, used: 0, remaining: SLOTS })
    })
  )

  testing(
    "the next call releases it, where no recovery runs, and its key is free",
    Effect.gen(function* () {
      const shared = yield* crashed(makeBench(), "key")
      const here = yield* host(shared, makeBench())
      expect(yield* told(here.call(ACCOUNT, { key: "key" }))).toBe("InFlight")
      yield* elapse(LIFETIME)
      expect(yield* told(here.call(ACCOUNT, { key: "key" }))).toBe("reply")
      expect(yield* endsIn(shared)).toEqual([...RELEASED, ...USED])
    })
  )
})

describe("64 calls at once", () => {
  testing(
    "at two hosts use ten slots, and the others are refused",
    Effect.gen(function* () {
      const { bench, here, shared, trial } = yield* onTrial()
      const there = yield* host(shared, bench)
      const ended = yield* Effect.all(
        range(64).map((i) => told((i % 2 === 0 ? here : there).call(ACCOUNT))),
        all
      )
      expect(count(ended)).toEqual({ reply: SLOTS, TrialUsedUp: 54 })
      expect([bench.runs.length, yield* trial]).toEqual([SLOTS, { total: SLOTS, used: SLOTS, remaining: 0 }])
      expect(count(yield* endsIn(shared))).toEqual({ TrialReserved: SLOTS, TrialUsed: SLOTS })
    })
  )

  test("use at most ten slots in any order of ends, and a slot that is released can be used", () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom("succeeds", "fails", "leaves"), { minLength: 1, maxLength: 64 }),
        fc.array(fc.nat({ max: 1_000 }), { minLength: 64, maxLength: 64 }),
        (fates, order) => underTestClock(race(fates, order))
      ),
      { numRuns: 60 }
    ))
})

type Fate = "succeeds" | "fails" | "leaves"

/**
 * Starts calls at two hosts, ends those that run one at a time in an order, and starts the refused ones again. In the end, all that would
 * succeed have, or ten have.
 */
const race = (fates: ReadonlyArray<Fate>, order: ReadonlyArray<number>) =>
  Effect.gen(function* () {
    const { bench, here, shared, trial } = yield* onTrial()
    const hosts = [here, yield* host(shared, bench)] as const
    const gates = new Map<string, { readonly fate: Fate; readonly open: Deferred.Deferred<void> }>()
    for (const [i, fate] of fates.entries()) gates.set(`call_${i}`, { fate, open: yield* Deferred.make<void>() })
    const running: Array<string> = []
    bench.answer = ({ text }) =>
      Effect.gen(function* () {
        running.push(text)
        const gate = gates.get(text)
        if (gate !== undefined) yield* Deferred.await(gate.open)
        return gate?.fate === "fails" ? yield* lost() : { data: { text, count: 0 } }
      })
    let waiting = [...gates.keys()]
    let replies = 0
    while (waiting.length > 0 && replies < SLOTS) {
      const started = yield* Effect.forEach(waiting, (text, i) =>
        Effect.map(Effect.forkChild(told((i % 2 === 0 ? hosts[0] : hosts[1]).call(ACCOUNT, { text }))), (fiber) => ({ text, fiber }))
      )
      yield* quiet
      // As many run as there are slots
      expect(running.length).toBe(Math.min(waiting.length, SLOTS - replies))
      const ends = [...running].sort((a, b) => (order[Number(a.slice(5))] ?? 0) - (order[Number(b.slice(5))] ?? 0))
      for (const text of ends) {
        const fiber = started.find((call) => call.text === text)?.fiber
        const gate = gates.get(text)
        if (fiber === undefined || gate === undefined) throw new Error(`${text} was not started`)
        if (gate.fate === "leaves") yield* Fiber.interrupt(fiber)
        else yield* Deferred.succeed(gate.open, undefined)
        yield* quiet
        if (gate.fate === "succeeds") replies++
        expect((yield* trial)?.used).toBe(replies)
      }
      for (const { fiber, text } of started) if (!ends.includes(text)) expect(yield* Fiber.join(fiber)).toBe("TrialUsedUp")
      waiting = waiting.filter((text) => !ends.includes(text))
      running.length = 0
    }
    expect(replies).toBe(Math.min(SLOTS, fates.filter((fate) => fate === "succeeds").length))
    expect(yield* here.balance(ACCOUNT)).toEqual({ available: 0, held: 0 })
  })
