import { Clock, Effect, Exit, Fiber, Logger, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect, test } from "vitest"
import * as ClockGuard from "../src/ClockGuard.ts"
import { type EventData, EventStore } from "../src/EventStore.ts"
import * as Lease from "../src/Lease.ts"
import * as MemoryEventStore from "../src/MemoryEventStore.ts"
import * as MemoryStateStore from "../src/MemoryStateStore.ts"
import { StateStore } from "../src/StateStore.ts"
import { pass, settle } from "./Simulated.ts"

type Store = EventStore["Service"]

const EVERY = 10_000
const event: EventData = { id: "018f0000-0000-7000-8000-000000000000", type: "Happened", data: "{}", metadata: "{}" }

/** A store with a clock, and a host whose own clock a test sets. */
interface Setup {
  /** Milliseconds by which the clocks are ahead of the true time. */
  readonly apart: { host: number; store: number }
  /** How long the request and its answer take. */
  readonly way: { there: number; back: number }
  readonly answer: { is: Effect.Effect<void, string> }
  readonly asked: () => number
  readonly open: Effect.Effect<Store, never, Scope.Scope>
  readonly lines: ReadonlyArray<string>
}

const testing = (
  name: string,
  body: (setup: Setup) => Effect.Effect<unknown, unknown, Scope.Scope>,
  options: Partial<ClockGuard.Options<number, string>> = {}
) => {
  const lines: Array<string> = []
  const log = Logger.make(({ logLevel, message }) => void lines.push(`${logLevel} ${message}`))
  const run = Effect.gen(function* () {
    const right = yield* Clock.Clock
    const apart = { host: 0, store: 0 }
    const way = { there: 0, back: 0 }
    const answer: Setup["answer"] = { is: Effect.void }
    let asked = 0
    const wrong: Clock.Clock = { ...right, currentTimeMillisUnsafe: () => right.currentTimeMillisUnsafe() + apart.host }
    const ask = Effect.gen(function* () {
      asked++
      yield* answer.is
      yield* Effect.sleep(way.there)
      const now = right.currentTimeMillisUnsafe() + apart.store
      yield* Effect.sleep(way.back)
      return now
    })
    const open = Effect.flatMap(MemoryEventStore.make, (memory) =>
      ClockGuard.make(memory, { ask, timeOf: Effect.succeed, every: EVERY, ...options })
    ).pipe(Effect.provideService(Clock.Clock, wrong))
    yield* body({ apart, way, answer, asked: () => asked, open, lines })
  })
  test(name, () => Effect.runPromise(run.pipe(Effect.scoped, Effect.provide(Logger.layer([log])), Effect.provide(TestClock.layer()))))
}

let streams = 0
const append = (to: Store) => Effect.suspend(() => to.append(`till-${streams++}`, "noStream", [event]))
const isTaken = (store: Store) => Effect.map(Effect.exit(append(store)), Exit.isSuccess)
const statusOf = (store: Store) => store.clock?.status ?? Effect.die("no clock")

/** The store, opened; its requests take the given times. */
const opened = Effect.fnUntraced(function* ({ open, way }: Setup) {
  const opening = yield* Effect.forkScoped(open)
  yield* pass(way.there)
  yield* pass(way.back)
  return yield* Fiber.join(opening)
})

describe("a host whose clock differs from its store's", () => {
  for (const [host, store, text] of [
    [60_000, 0, "60.0 s ahead of"],
    [-60_000, 0, "60.0 s behind"],
    [0, 60_000, "60.0 s behind"],
    [2_100, 0, "2.1 s ahead of"]
  ] as const)
    testing(`appends nothing and reports: ${text}`, (setup) =>
      Effect.gen(function* () {
        Object.assign(setup.apart, { host, store })
        const at = yield* opened(setup)
        const reason = `the clock of this host is ${text} its store's: it writes nothing until they agree, set it by NTP`
        const refused = yield* Effect.flip(append(at))
        expect({ ...refused }).toMatchObject({ _tag: "StoreUnavailable", reason, why: "clock" })
        expect(yield* statusOf(at)).toEqual({ ahead: host - store, trouble: reason })
        expect(yield* at.head).toBe("")
        expect(setup.lines).toEqual([`Error Nothing is written: ${reason}`])
      })
    )

  testing("writes while the difference is at most two seconds", (setup) =>
    Effect.gen(function* () {
      Object.assign(setup.apart, { host: 2_000 })
      const at = yield* opened(setup)
      expect(yield* isTaken(at)).toBe(true)
      expect(yield* statusOf(at)).toEqual({ ahead: 2_000, trouble: undefined })
      expect(setup.lines).toEqual([])
    })
  )

  testing("gets half of a slow answer's round trip as tolerance, and no more", (setup) =>
    Effect.gen(function* () {
      // The true time may differ from the middle by half of the round trip
      Object.assign(setup.way, { there: 0, back: 4_500 })
      expect(yield* isTaken(yield* opened(setup))).toBe(true)
      Object.assign(setup.way, { there: 4_500, back: 0 })
      expect(yield* isTaken(yield* opened(setup))).toBe(true)
      Object.assign(setup.apart, { host: 60_000 })
      expect(yield* isTaken(yield* opened(setup))).toBe(false)
    })
  )

  testing("is refused at the next append after its clock was set wrong, and appends again once it is right", (setup) =>
    Effect.gen(function* () {
      const { apart, asked, lines } = setup
      const at = yield* opened(setup)
      expect(yield* isTaken(at)).toBe(true)
      yield* pass(1_000)
      apart.host = 60_000
      expect(yield* isTaken(at)).toBe(false)
      yield* settle
      // Asked at once, because the clock may have been corrected
      expect(asked()).toBe(2)
      expect(yield* isTaken(at)).toBe(false)
      apart.host = 0
      expect(yield* isTaken(at)).toBe(true)
      yield* pass(EVERY / 10)
      expect(lines.map((line) => line.split(":")[0])).toEqual(["Error Nothing is written", "Info The clock of this host is right again"])
    })
  )

  testing("appends again once its clock is corrected", (setup) =>
    Effect.gen(function* () {
      const { apart, asked } = setup
      apart.host = -5_000
      const at = yield* opened(setup)
      expect(yield* isTaken(at)).toBe(false)
      apart.host = 0
      expect(yield* isTaken(at)).toBe(true)
      // The store's clock may be the one that changes
      apart.store = 3_000
      yield* pass(EVERY)
      yield* pass(EVERY)
      expect(yield* isTaken(at)).toBe(false)
      apart.store = 0
      const before = asked()
      yield* pass(EVERY / 10)
      expect(asked()).toBe(before + 1)
      expect(yield* isTaken(at)).toBe(true)
      expect((yield* statusOf(at)).trouble).toBeUndefined()
    })
  )

  testing("that slept is refused only until the store has answered with its time", (setup) =>
    Effect.gen(function* () {
      const at = yield* opened(setup)
      // The monotonic clock did not count this hour
      Object.assign(setup.apart, { host: 3_600_000, store: 3_600_000 })
      expect(yield* isTaken(at)).toBe(false)
      yield* settle
      expect(yield* isTaken(at)).toBe(true)
    })
  )
})

testing("a host leaves leases to others while its clock is wrong, and takes them again once it is right", (setup) =>
  Effect.gen(function* () {
    const state = yield* MemoryStateStore.make
    const { apart } = setup
    const [one, other] = [yield* opened(setup), yield* MemoryEventStore.make]
    const led: Array<string> = []
    const keep = (name: string, events: Store) =>
      Lease.keep("sweeps")(() =>
        Effect.andThen(
          Effect.sync(() => led.push(name)),
          Effect.never
        )
      ).pipe(Effect.provideService(EventStore, events), Effect.provideService(StateStore, state), Effect.forkScoped)
    yield* keep("one", one)
    yield* pass(1_000)
    const second = yield* keep("other", other)
    yield* pass(15_000)
    expect(led).toEqual(["one"])
    apart.host = 60_000
    for (const _ of [1, 2, 3, 4, 5, 6, 7, 8]) yield* pass(1_000)
    expect(led).toEqual(["one", "other"])
    yield* Fiber.interrupt(second)
    for (const _ of [1, 2, 3]) yield* pass(15_000)
    expect(led).toEqual(["one", "other"])
    apart.host = 0
    for (const _ of [1, 2, 3]) yield* pass(1_000)
    expect(led).toEqual(["one", "other", "one"])
  })
)

describe("a store that does not answer with its time", () => {
  testing("delays no append, and is asked again", (setup) =>
    Effect.gen(function* () {
      const { answer, apart, asked } = setup
      apart.host = 60_000
      answer.is = Effect.fail("no")
      const at = yield* opened(setup)
      expect(yield* statusOf(at)).toEqual({ ahead: undefined, trouble: undefined })
      answer.is = Effect.void
      expect(yield* isTaken(at)).toBe(true)
      yield* settle
      expect(asked()).toBe(2)
      expect(yield* isTaken(at)).toBe(false)
    })
  )

  testing("delays an append by at most five seconds; its last answer stays valid", (setup) =>
    Effect.gen(function* () {
      const { answer, apart } = setup
      answer.is = Effect.never
      const opening = yield* Effect.forkScoped(setup.open)
      yield* pass(4_999)
      expect(opening.pollUnsafe()).toBeUndefined()
      yield* pass(1)
      const at = yield* Fiber.join(opening)
      answer.is = Effect.void
      yield* pass(EVERY)
      answer.is = Effect.never
      apart.host = 60_000
      for (const _ of [1, 2, 3]) {
        expect(yield* isTaken(at)).toBe(false)
        yield* pass(EVERY)
      }
    })
  )
})

describe("a store that is asked for its time by a write", () => {
  testing(
    "is asked at the first append, which waits for the answer, and later only while there are appends",
    (setup) =>
      Effect.gen(function* () {
        const { apart, asked, way } = setup
        apart.host = 60_000
        const at = yield* setup.open
        yield* pass(10 * EVERY)
        expect(asked()).toBe(0)
        way.there = 100
        const both = yield* Effect.forkScoped(Effect.all([isTaken(at), isTaken(at)], { concurrency: 2 }))
        yield* pass(50)
        expect(both.pollUnsafe()).toBeUndefined()
        yield* pass(50)
        expect(yield* Fiber.join(both)).toEqual([false, false])
        expect(asked()).toBe(1)
        way.there = 0
        apart.host = 0
        yield* pass(EVERY / 10)
        const before = asked()
        yield* pass(10 * EVERY)
        expect(asked()).toBe(before)
        expect(yield* isTaken(at)).toBe(true)
        yield* settle
        expect(asked()).toBe(before + 1)
        expect(yield* isTaken(at)).toBe(true)
        yield* settle
        expect(asked()).toBe(before + 1)
      }),
    { onlyForAppends: true }
  )

  testing(
    "is asked again when the first answer failed or its append was interrupted",
    (setup) =>
      Effect.gen(function* () {
        const { answer, apart, asked } = setup
        apart.host = 60_000
        answer.is = Effect.never
        const at = yield* setup.open
        const impatient = yield* Effect.forkScoped(append(at))
        yield* settle
        yield* Fiber.interrupt(impatient)
        answer.is = Effect.fail("no")
        expect(yield* isTaken(at)).toBe(true)
        answer.is = Effect.void
        yield* isTaken(at)
        yield* settle
        expect(asked()).toBeGreaterThanOrEqual(3)
        expect(yield* isTaken(at)).toBe(false)
      }),
    { onlyForAppends: true }
  )
})
