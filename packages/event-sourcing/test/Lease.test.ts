import { Clock, Deferred, type Duration, Effect, Exit, Fiber, Latch, Layer, Random, type Scope } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { EventIds } from "../src/EventIds.ts"
import * as Lease from "../src/Lease.ts"
import * as MemoryStateStore from "../src/MemoryStateStore.ts"
import { type Change, StateConflict, StateStore, StateUnavailable } from "../src/StateStore.ts"

type Store = StateStore["Service"]

const TTL = 9_000
const options = { ttl: TTL, poll: 500 }

const counting = () => {
  let count = 0
  return () => `holder-${++count}`
}

const simulated = <A, E>(body: Effect.Effect<A, E, StateStore | Scope.Scope>): Promise<A> =>
  body.pipe(
    Effect.scoped,
    Effect.provide(Layer.provideMerge(MemoryStateStore.layer, TestClock.layer())),
    Effect.provideService(EventIds, counting()),
    Random.withSeed("lease"),
    Effect.runPromise
  )

/** The same schedules in each run; `MILLRACE_SOAK` multiplies their number. */
const SEED = 1
const SOAK = Number(process.env["MILLRACE_SOAK"] ?? 1)

const testing = (name: string, body: Effect.Effect<unknown, unknown, StateStore | Scope.Scope>) => test(name, () => simulated(body))

/** Runs all fibers that do not wait for the clock. */
const settle = Effect.forEach(Array.from({ length: 40 }), () => Effect.yieldNow, { discard: true })
const pass = (millis: number) => Effect.andThen(Effect.andThen(settle, TestClock.adjust(millis)), settle)

const unavailable = Effect.fail(new StateUnavailable({ reason: "unplugged" }))

/** A host's way to the store, and its clock: both stop while it is paused; the store fails while it is cut off. */
const makeHost = (store: Store, clock: Clock.Clock, skew = 0) => {
  const running = Latch.makeUnsafe(true)
  const host = { reachable: true, hanging: false, doubtful: false }
  const call = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E | StateUnavailable> =>
    Effect.gen(function* () {
      yield* running.await
      if (host.hanging) return yield* Effect.never
      if (!host.reachable) return yield* unavailable
      const answer = yield* effect
      yield* running.await
      return answer
    })
  const ownStore: Store = {
    get: (...args) => call(store.get(...args)),
    list: (...args) => call(store.list(...args)),
    write: (changes) => Effect.andThen(call(store.write(changes)), (version) => (host.doubtful ? unavailable : Effect.succeed(version)))
  }
  const ownClock: Clock.Clock = {
    ...clock,
    currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() + skew,
    currentTimeMillis: Effect.sync(() => clock.currentTimeMillisUnsafe() + skew),
    sleep: (duration: Duration.Duration) => Effect.andThen(clock.sleep(duration), running.await)
  }
  const on = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, Exclude<R, StateStore>> =>
    effect.pipe(Effect.provideService(Clock.Clock, ownClock), Effect.provideService(StateStore, ownStore))
  return Object.assign(host, { on, pause: running.close, resume: running.open })
}

const newHost = (skew = 0) => Effect.map(Effect.all([StateStore, Clock.Clock]), ([store, clock]) => makeHost(store, clock, skew))

/** Works for ever, and records when it began and ended. */
const working = (log: Array<string>, name: string) => () =>
  Effect.suspend(() => {
    log.push(`${name} begins`)
    return Effect.onInterrupt(Effect.never, () => Effect.sync(() => log.push(`${name} ends`)))
  })

const put = (key: string, expected?: number): Change => ({
  _tag: "put",
  space: "guarded",
  key,
  value: new Uint8Array(),
  ...(expected === undefined ? {} : { expected })
})

describe("holding", () => {
  testing(
    "runs the work and releases; the next holder waits no longer than one poll",
    Effect.gen(function* () {
      const gate = yield* Deferred.make<string>()
      const tokens: Array<number> = []
      const first = yield* Effect.forkScoped(
        Lease.hold(
          "x",
          options
        )(({ token }) => {
          tokens.push(token)
          return Deferred.await(gate)
        })
      )
      yield* settle
      const second = yield* Effect.forkScoped(
        Lease.hold(
          "x",
          options
        )(({ token }) => {
          tokens.push(token)
          return Effect.succeed("second")
        })
      )
      yield* pass(10 * TTL)
      expect(tokens).toHaveLength(1)
      yield* Deferred.succeed(gate, "first")
      expect(yield* Fiber.join(first)).toBe("first")
      yield* pass(options.poll)
      expect(yield* Fiber.join(second)).toBe("second")
      expect(tokens[1]).toBeGreaterThan(tokens[0] ?? Number.NaN)
    })
  )

  testing(
    "fails with the failure of the work, and releases",
    Effect.gen(function* () {
      expect(yield* Effect.flip(Lease.hold("x", options)(() => Effect.fail("no")))).toBe("no")
      expect(yield* Lease.hold("x", options)(() => Effect.succeed("yes"))).toBe("yes")
    })
  )

  testing(
    "leases of two names are independent",
    Effect.gen(function* () {
      const log: Array<string> = []
      yield* Effect.forkScoped(Lease.hold("a", options)(working(log, "a")))
      yield* Effect.forkScoped(Lease.hold("b", options)(working(log, "b")))
      yield* settle
      expect(log).toEqual(["a begins", "b begins"])
    })
  )

  testing(
    "keep runs the work again after success, failure or loss of the lease",
    Effect.gen(function* () {
      let times = 0
      const work = Effect.suspend((): Effect.Effect<void, string> => {
        times++
        return times === 1 ? Effect.fail("no") : times === 2 ? Effect.interrupt : times === 3 ? Effect.void : Effect.never
      })
      yield* Effect.forkScoped(Lease.keep("x", options)(() => work))
      yield* pass(TTL)
      expect(times).toBe(4)
    })
  )
})

describe("a holder that is lost", () => {
  testing(
    "is replaced once its lease has expired, and not before",
    Effect.gen(function* () {
      const [dead, heir] = [yield* newHost(), yield* newHost()]
      const log: Array<string> = []
      yield* Effect.forkScoped(dead.on(Lease.hold("x", options)(working(log, "dead"))))
      yield* settle
      dead.pause.pipe(Effect.runSync)
      yield* Effect.forkScoped(heir.on(Lease.hold("x", options)(working(log, "heir"))))
      yield* pass(TTL - 1)
      expect(log).toEqual(["dead begins"])
      yield* pass(1)
      expect(log).toEqual(["dead begins", "heir begins"])
      yield* dead.resume
      yield* settle
      expect(log).toEqual(["dead begins", "heir begins", "dead ends"])
    })
  )

  testing(
    "gets LeaseLost after two thirds of the time when its store fails",
    Effect.gen(function* () {
      const host = yield* newHost()
      const log: Array<string> = []
      const fiber = yield* Effect.forkScoped(host.on(Lease.hold("x", options)(working(log, "host"))))
      yield* settle
      host.reachable = false
      yield* pass((TTL * 2) / 3 - 1)
      expect(log).toEqual(["host begins"])
      yield* pass(1)
      expect(log).toEqual(["host begins", "host ends"])
      expect(yield* Effect.flip(Fiber.join(fiber))).toBeInstanceOf(Lease.LeaseLost)
    })
  )

  testing(
    "gets LeaseLost when its store hangs",
    Effect.gen(function* () {
      const host = yield* newHost()
      const log: Array<string> = []
      const fiber = yield* Effect.forkScoped(host.on(Lease.hold("x", options)(working(log, "host"))))
      yield* settle
      host.hanging = true
      yield* pass((TTL * 2) / 3)
      expect(log).toEqual(["host begins", "host ends"])
      yield* pass(TTL / 3)
      expect(yield* Effect.flip(Fiber.join(fiber))).toBeInstanceOf(Lease.LeaseLost)
    })
  )

  testing(
    "keeps the lease during a shorter outage and when renewals have no answer",
    Effect.gen(function* () {
      const [host, other] = [yield* newHost(), yield* newHost()]
      const log: Array<string> = []
      yield* Effect.forkScoped(host.on(Lease.hold("x", options)(working(log, "host"))))
      yield* settle
      yield* Effect.forkScoped(other.on(Lease.hold("x", options)(working(log, "other"))))
      for (let i = 0; i < 5; i++) {
        host.reachable = false
        yield* pass(TTL / 9)
        host.reachable = true
        host.doubtful = true
        yield* pass(TTL / 9)
        host.doubtful = false
        yield* pass(TTL)
      }
      expect(log).toEqual(["host begins"])
    })
  )

  testing(
    "acquires the lease although the answer to its first write was lost",
    Effect.gen(function* () {
      const host = yield* newHost()
      const log: Array<string> = []
      host.doubtful = true
      yield* Effect.forkScoped(host.on(Lease.hold("x", options)(working(log, "host"))))
      yield* settle
      host.doubtful = false
      expect(log).toEqual([])
      yield* pass(options.poll)
      expect(log).toEqual(["host begins"])
    })
  )
})

describe("writing under a lease", () => {
  testing(
    "is refused, with nothing written, once another holder has the lease",
    Effect.gen(function* () {
      const store = yield* StateStore
      const [old, heir] = [yield* newHost(), yield* newHost()]
      const late = yield* Deferred.make<void>()
      const fiber = yield* Effect.forkScoped(
        old.on(Lease.hold("x", options)((held) => Effect.uninterruptible(Effect.andThen(Deferred.await(late), held.write([put("old")])))))
      )
      yield* settle
      old.reachable = false
      yield* Effect.forkScoped(heir.on(Lease.hold("x", options)((held) => Effect.andThen(held.write([put("heir")]), Effect.never))))
      yield* pass(2 * TTL)
      old.reachable = true
      yield* Deferred.succeed(late, undefined)
      const exit = yield* Fiber.await(fiber)
      expect(Exit.isFailure(exit)).toBe(true)
      expect(yield* store.get("guarded", "old")).toBeUndefined()
      expect(yield* store.get("guarded", "heir")).toBeDefined()
    })
  )

  testing(
    "renews the lease, and reports a conflict on the written entry to the writer",
    Effect.gen(function* () {
      const host = yield* newHost()
      const work = (held: Lease.Held) =>
        Effect.gen(function* () {
          const version = yield* held.write([put("a")])
          expect(version).toBeGreaterThan(held.token)
          expect(yield* Effect.flip(held.write([put("a", version - 1)]))).toEqual(new StateConflict({ space: "guarded", key: "a" }))
          host.doubtful = true
          expect(yield* Effect.flip(held.write([put("a")]))).toBeInstanceOf(StateUnavailable)
          host.doubtful = false
          return yield* held.write([put("a")])
        })
      expect(yield* host.on(Lease.hold("x", options)(work))).toBeGreaterThan(0)
    })
  )
})

// any schedule

type Kind = "wait" | "cut off" | "hang" | "doubt" | "restart" | "pause" | "crash"

interface Act {
  readonly kind: Kind
  readonly host: number
  /** How long the fault lasts, in milliseconds. */
  readonly lasts: number
  /** Milliseconds until the next step. */
  readonly apart: number
}

const HOSTS = 3

const schedules = (...kinds: ReadonlyArray<Kind>): fc.Arbitrary<ReadonlyArray<Act>> =>
  fc.array(
    fc.record({
      kind: fc.constantFrom(...kinds),
      host: fc.nat({ max: HOSTS - 1 }),
      lasts: fc.nat({ max: 2 * TTL }),
      apart: fc.nat({ max: TTL })
    }),
    { maxLength: 30, size: "max" }
  )

/** Hosts with different wall clocks compete for the lease. Fails if no host holds it at the end, when all faults are over. */
const play = (schedule: ReadonlyArray<Act>, stubborn: boolean) =>
  Effect.gen(function* () {
    const base = yield* StateStore
    const clock = yield* Clock.Clock
    // Uninterruptible work still needs time to end
    const over = yield* Deferred.make<void>()
    yield* Effect.forkScoped(Effect.andThen(Deferred.await(over), Effect.forever(pass(TTL))))
    /** The tokens of guarded writes, in the order in which the store applied them. */
    const passed: Array<number> = []
    const seen = { refused: 0, mostActive: 0 }
    let active = 0
    const recording: Store = {
      ...base,
      write: (changes) =>
        Effect.tap(base.write(changes), () =>
          Effect.sync(() => {
            for (const change of changes)
              if (change._tag === "put" && change.space === "guarded") passed.push(Number(Buffer.from(change.value)))
          })
        )
    }

    const work = ({ token, write }: Lease.Held) =>
      Effect.gen(function* () {
        seen.mostActive = Math.max(seen.mostActive, ++active)
        const step = Effect.gen(function* () {
          yield* Effect.sleep(Math.ceil((yield* Random.next) * TTL))
          yield* write([{ _tag: "put", space: "guarded", key: "k", value: Buffer.from(String(token)) }]).pipe(
            Effect.tapErrorTag("LeaseLost", () =>
              Effect.sync(() => {
                seen.refused++
              })
            ),
            Effect.catchTag("StateUnavailable", () => Effect.void)
          )
        })
        return yield* Effect.forever(stubborn ? Effect.uninterruptible(step) : step)
      }).pipe(
        Effect.ensuring(
          Effect.sync(() => {
            active--
          })
        )
      )

    const begin = Effect.fnUntraced(function* (skew: number) {
      const host = makeHost(recording, clock, skew)
      const fiber = yield* Effect.forkScoped(host.on(Lease.keep("x", options)(work)))
      return { host, fiber, skew }
    })
    const places = yield* Effect.forEach(Array.from({ length: HOSTS }), (_, i) => begin((i - 1) * 3 * TTL))
    /** The fibers of crashed hosts: they never continue, and are interrupted at the end of the test. */
    const graves: Array<{ readonly host: ReturnType<typeof makeHost> }> = []

    for (const { kind, host: index, lasts, apart } of schedule) {
      const place = places[index]
      if (place === undefined) continue
      const { host, fiber, skew } = place
      const after = (heal: Effect.Effect<unknown>) => Effect.forkScoped(Effect.delay(heal, lasts))
      const flag = (name: "reachable" | "hanging" | "doubtful", to: boolean) =>
        Effect.sync(() => {
          host[name] = to
        })
      if (kind === "cut off") yield* Effect.andThen(flag("reachable", false), after(flag("reachable", true)))
      if (kind === "hang") yield* Effect.andThen(flag("hanging", true), after(flag("hanging", false)))
      if (kind === "doubt") yield* Effect.andThen(flag("doubtful", true), after(flag("doubtful", false)))
      if (kind === "pause") yield* Effect.andThen(host.pause, after(host.resume))
      if (kind === "restart") {
        yield* Effect.forkScoped(Fiber.interrupt(fiber))
        places[index] = yield* begin(skew)
      }
      if (kind === "crash") {
        yield* host.pause
        graves.push(place)
        places[index] = yield* begin(skew)
      }
      yield* pass(apart)
    }
    yield* pass(2 * TTL)
    const before = passed.length
    yield* pass(4 * TTL)
    expect(passed.length).toBeGreaterThan(before)
    expect([...passed].sort((a, b) => a - b)).toEqual(passed)
    for (const { host } of graves) {
      host.reachable = false
      yield* host.resume
    }
    yield* Deferred.succeed(over, undefined)
    return { ...seen, hosts: new Set(passed).size }
  })

describe("any schedule", () => {
  const all = async (
    schedule: fc.Arbitrary<ReadonlyArray<Act>>,
    stubborn: boolean,
    check: (seen: Effect.Success<ReturnType<typeof play>>) => void
  ) => {
    const total = { refused: 0, holders: 0 }
    await fc.assert(
      fc.asyncProperty(schedule, async (acts) => {
        const seen = await simulated(play(acts, stubborn))
        total.refused += seen.refused
        total.holders += seen.hosts - 1
        check(seen)
      }),
      { numRuns: 100 * SOAK, seed: SEED }
    )
    return total
  }

  test("one holder works at a time as long as no host is paused", async () => {
    const { holders } = await all(schedules("wait", "cut off", "hang", "doubt", "restart"), false, (seen) =>
      expect(seen.mostActive).toBe(1)
    )
    expect(holders).toBeGreaterThan(20)
  })

  test("an older holder never writes after a newer one, even when hosts pause, crash or ignore interruption", async () => {
    const { holders, refused } = await all(schedules("wait", "cut off", "doubt", "restart", "pause", "crash"), true, () => {})
    expect(holders).toBeGreaterThan(20)
    expect(refused).toBeGreaterThan(10)
  })
})
