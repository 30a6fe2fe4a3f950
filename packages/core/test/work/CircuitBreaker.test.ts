import { Deferred, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { describe, expect, test } from "vitest"
import { CircuitBreaker, type CircuitBreakerOptions } from "../../src/work/CircuitBreaker.ts"
import { range } from "../billing/Bench.ts"
import { checkAsync } from "../vault/Property.ts"

const testing = (options: CircuitBreakerOptions, body: Effect.Effect<unknown, unknown, CircuitBreaker>) =>
  Effect.runPromise(Effect.asVoid(body).pipe(Effect.provide(CircuitBreaker.layer(options)), Effect.provide(TestClock.layer())))

/** Whether a call gets through. If it does, it records `found`, if given. */
const call = (found?: "success" | "failure", upstream = "a") =>
  Effect.flatMap(CircuitBreaker, (breaker) =>
    breaker.guard(upstream, found === undefined ? Effect.void : breaker.record(upstream, found)).pipe(
      Effect.as(true),
      Effect.catch(() => Effect.succeed(false))
    )
  )

describe("a circuit", () => {
  test("is told with its failures in a row, and for how long its calls fail at once", () =>
    testing(
      { failures: 2, openFor: 1_000 },
      Effect.gen(function* () {
        const { circuits } = yield* CircuitBreaker
        expect(yield* circuits).toEqual([])
        yield* call("success", "b")
        yield* call("failure")
        expect(yield* circuits).toEqual([
          { upstream: "a", failures: 1, openFor: 0 },
          { upstream: "b", failures: 0, openFor: 0 }
        ])
        yield* call("failure")
        yield* TestClock.adjust(400)
        expect((yield* circuits)[0]).toEqual({ upstream: "a", failures: 2, openFor: 600 })
        yield* TestClock.adjust(600)
        yield* call("success")
        expect((yield* circuits)[0]).toEqual({ upstream: "a", failures: 0, openFor: 0 })
      })
    ))

  test("opens after consecutive failures, with an error that names its upstream", () =>
    testing(
      { failures: 3, openFor: 1_000 },
      Effect.gen(function* () {
        for (const found of ["failure", "failure", "success", "failure", "failure", undefined, "failure"] as const) {
          expect(yield* call(found)).toBe(true)
        }
        const breaker = yield* CircuitBreaker
        const error = yield* Effect.flip(breaker.guard("a", Effect.die("it ran")))
        expect({ ...error }).toEqual({ _tag: "UpstreamUnavailable", upstream: "a", reason: "its circuit is open" })
        expect(yield* call("success", "b")).toBe(true)
      })
    ))

  test("lets one of 64 calls through as a trial, and the others after the trial has succeeded", () =>
    testing(
      { failures: 1, openFor: 1_000 },
      Effect.gen(function* () {
        yield* call("failure")
        yield* TestClock.adjust(999)
        expect(yield* call()).toBe(false)
        yield* TestClock.adjust(1)
        const breaker = yield* CircuitBreaker
        const proceed = yield* Deferred.make<void>()
        let running = 0
        const trial = Effect.suspend(() => {
          running++
          return Effect.andThen(Deferred.await(proceed), breaker.record("a", "success"))
        })
        const fibers = yield* Effect.forEach(range(64), () => Effect.forkChild(Effect.exit(breaker.guard("a", trial))))
        yield* Effect.yieldNow
        expect(running).toBe(1)
        yield* Deferred.succeed(proceed, undefined)
        const exits = yield* Effect.forEach(fibers, Fiber.join)
        expect(exits.filter(({ _tag }) => _tag === "Success")).toHaveLength(1)
        for (const _ of range(5)) expect(yield* call()).toBe(true)
      })
    ))

  test("stays open again if the trial fails; a trial without a result leaves the trial to the next call", () =>
    testing(
      { failures: 1, openFor: 1_000 },
      Effect.gen(function* () {
        yield* call("failure")
        yield* TestClock.adjust(1_000)
        for (const _ of range(3)) expect(yield* call()).toBe(true)
        expect(yield* call("failure")).toBe(true)
        yield* TestClock.adjust(999)
        expect(yield* call()).toBe(false)
        yield* TestClock.adjust(1)
        const breaker = yield* CircuitBreaker
        const leaving = yield* Effect.forkChild(breaker.guard("a", Effect.never), { startImmediately: true })
        expect(yield* call()).toBe(false)
        expect(yield* breaker.openFor("a")).toBe(1_000)
        yield* Fiber.interrupt(leaving)
        expect(yield* breaker.openFor("a")).toBe(0)
        expect(yield* call("success")).toBe(true)
        expect(yield* call()).toBe(true)
      })
    ))

  test("starts another trial if the first takes longer than the circuit stays open", () =>
    testing(
      { failures: 1, openFor: 1_000 },
      Effect.gen(function* () {
        yield* call("failure")
        yield* TestClock.adjust(1_000)
        const breaker = yield* CircuitBreaker
        const slow = yield* Effect.forkChild(breaker.guard("a", Effect.never), { startImmediately: true })
        yield* TestClock.adjust(999)
        expect(yield* call()).toBe(false)
        yield* TestClock.adjust(1)
        expect(yield* call("failure")).toBe(true)
        // The slow call ends, but it is not the trial any more
        yield* Fiber.interrupt(slow)
        expect(yield* call()).toBe(false)
      })
    ))

  test("lets the same calls through as its model, for any sequence of calls", () =>
    checkAsync(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 4 }),
        fc.array(
          fc.record({ wait: fc.constantFrom(0, 1, 400, 1_000), found: fc.constantFrom("success", "failure", "failure", undefined) }),
          { maxLength: 60 }
        ),
        (failures, calls) =>
          testing(
            { failures, openFor: 1_000 },
            Effect.gen(function* () {
              let now = 0
              let inARow = 0
              let failedAt = 0
              for (const { wait, found } of calls) {
                yield* TestClock.adjust(wait)
                now += wait
                const passes = inARow < failures || now >= failedAt + 1_000
                const { openFor } = yield* CircuitBreaker
                expect(yield* openFor("a")).toBe(passes ? 0 : failedAt + 1_000 - now)
                expect(yield* openFor("b")).toBe(0)
                expect(yield* call(found)).toBe(passes)
                if (!passes || found === undefined) continue
                inARow = found === "success" ? 0 : inARow + 1
                if (found === "failure") failedAt = now
              }
            })
          )
      ),
      200
    ))
})
