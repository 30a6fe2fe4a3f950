import { MemoryStateStore, StateStore } from "@millrace/event-sourcing"
import { Clock, Context, Effect, Exit, Fiber, Layer, Scope } from "effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { describe, expect, test } from "vitest"
import { Pace, PaceAccount } from "../../src/work/Pace.ts"

const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> =>
  Effect.runPromise(Effect.scoped(effect).pipe(Effect.provide(TestClock.layer())))

const TERMS = { every: "1 second", patience: "1 hour" } as const

/** A host on a store. */
const hostOn = (store: StateStore.StateStore["Service"]) =>
  Effect.map(Layer.build(Layer.fresh(Pace.layer).pipe(Layer.provide(Layer.succeed(StateStore.StateStore, store)))), Context.get(Pace))

/** Moves the clock on in small steps until these have ended. */
const until = <A, E>(fibers: ReadonlyArray<Fiber.Fiber<A, E>>) =>
  Effect.repeat(
    Effect.andThen(
      TestClock.adjust("10 millis"),
      Effect.sync(() => fibers.every((fiber) => fiber.pollUnsafe() !== undefined))
    ),
    { until: (done) => done }
  )

/** When each of so many callers of each host had its turn, milliseconds. Callers come at these times. */
const turnsOf = Effect.fnUntraced(function* (hosts: ReadonlyArray<ReadonlyArray<number>>) {
  const store = yield* MemoryStateStore.make
  const turns: Array<number> = []
  const callers = yield* Effect.forEach(hosts, (arrivals) =>
    Effect.flatMap(hostOn(store), ({ turn }) =>
      Effect.forEach(arrivals, (arrival) =>
        Effect.forkChild(
          Effect.sleep(arrival).pipe(
            Effect.andThen(turn("a", TERMS)),
            Effect.andThen(Clock.currentTimeMillis),
            Effect.map((at) => void turns.push(at))
          ),
          { startImmediately: true }
        )
      )
    )
  )
  yield* until(callers.flat())
  return turns
})

const arrivals = fc.array(fc.array(fc.nat(3_000), { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 3 })

describe("the pace of an upstream", () => {
  test("is kept by all hosts together, and none waits long for nothing", () =>
    fc.assert(
      fc.asyncProperty(arrivals, async (hosts) => {
        const turns = await run(turnsOf(hosts))
        expect(turns).toHaveLength(hosts.flat().length)
        const gaps = turns.slice(1).map((at, i) => at - (turns[i] ?? 0))
        expect(gaps.filter((gap) => gap < 1_000)).toEqual([])
        // Whoever waits takes the turn as soon as it is free, up to a look at the store
        const last = Math.max(...hosts.flat())
        expect(Math.max(...turns)).toBeLessThanOrEqual(last + turns.length * 1_100)
      }),
      { seed: 1, numRuns: 30 }
    ))

  test("is shared fairly: who waits with sixty requests makes another account wait for one of them", () =>
    run(
      Effect.gen(function* () {
        const { turn } = yield* hostOn(yield* MemoryStateStore.make)
        const turns: Array<string> = []
        const ask = (account: string) =>
          Effect.forkChild(
            Effect.map(Effect.provideService(turn("a", TERMS), PaceAccount, account), () => turns.push(account)),
            { startImmediately: true }
          )
        const many = yield* Effect.forEach(Array.from({ length: 60 }), () => ask("busy"))
        const [other] = [yield* ask("other")]
        yield* until([other])
        expect(turns).toEqual(["busy", "busy", "other"])
        yield* Effect.forEach(many, Fiber.interrupt)
      })
    ))

  test("is refused to an account by its own requests that wait, and by one of each other account", () =>
    run(
      Effect.gen(function* () {
        const { turn } = yield* hostOn(yield* MemoryStateStore.make)
        const terms = { every: "1 second", patience: "3 seconds" } as const
        const asked = (account: string) => Effect.provideService(turn("a", terms), PaceAccount, account)
        yield* asked("busy")
        const waiting = yield* Effect.forEach([1, 2, 3, 4], () => Effect.forkChild(Effect.exit(asked("busy")), { startImmediately: true }))
        expect(yield* Effect.flip(asked("busy"))).toMatchObject({ _tag: "UpstreamUnavailable", retryAfter: 4 })
        const other = yield* Effect.forkChild(asked("other"), { startImmediately: true })
        yield* until([other])
        expect(Exit.isSuccess(yield* Fiber.await(other))).toBe(true)
        yield* until(waiting)
      })
    ))

  test("is its own for each upstream", () =>
    run(
      Effect.gen(function* () {
        const { turn } = yield* hostOn(yield* MemoryStateStore.make)
        yield* turn("a", TERMS)
        yield* turn("b", TERMS)
        expect(yield* Clock.currentTimeMillis).toBe(0)
      })
    ))

  test("is refused to callers who would wait longer than they may, at once", () =>
    run(
      Effect.gen(function* () {
        const { turn } = yield* hostOn(yield* MemoryStateStore.make)
        const terms = { every: "1 second", patience: "2500 millis" } as const
        yield* turn("a", terms)
        const waiting = yield* Effect.forEach([1, 2, 3], () => Effect.forkChild(Effect.exit(turn("a", terms)), { startImmediately: true }))
        expect(yield* Effect.flip(turn("a", terms))).toMatchObject({ _tag: "UpstreamUnavailable", isolated: true, retryAfter: 3 })
        yield* until(waiting)
        const exits = yield* Effect.forEach(waiting, Fiber.join)
        // The third would have had its turn after three seconds
        expect(exits.map(Exit.isSuccess)).toEqual([true, true, false])
      })
    ))

  test("goes on after a caller who has left, and after a host that died", () =>
    run(
      Effect.gen(function* () {
        const store = yield* MemoryStateStore.make
        const host = yield* hostOn(store)
        yield* host.turn("a", TERMS)
        const left = yield* Effect.forkChild(host.turn("a", TERMS), { startImmediately: true })
        yield* Fiber.interrupt(left)
        const next = yield* Effect.forkChild(host.turn("a", TERMS), { startImmediately: true })
        yield* until([next])
        expect(yield* Clock.currentTimeMillis).toBeLessThanOrEqual(1_100)

        const mortal = yield* Scope.make()
        const other = yield* Scope.provide(hostOn(store), mortal)
        const dying = yield* Effect.forkChild(other.turn("b", TERMS), { startImmediately: true })
        yield* Fiber.join(dying)
        yield* Scope.close(mortal, Exit.void)
        const heir = yield* Effect.forkChild(host.turn("b", TERMS), { startImmediately: true })
        yield* until([heir])
        expect(Exit.isSuccess(yield* Fiber.await(heir))).toBe(true)
      })
    ))

  test("cannot be kept without the store, so nothing is sent", () =>
    run(
      Effect.gen(function* () {
        const store = yield* MemoryStateStore.make
        const { turn } = yield* hostOn({ ...store, write: () => Effect.fail(new StateStore.StateUnavailable({ reason: "out of reach" })) })
        expect(yield* Effect.flip(turn("a", TERMS))).toMatchObject({ _tag: "UpstreamUnavailable", isolated: true })
        // The turn of the next caller is not lost
        expect(yield* Effect.flip(turn("a", TERMS))).toMatchObject({ reason: "out of reach" })
      })
    ))
})
