import { MemoryStateStore } from "@millrace/event-sourcing"
import { Effect, Layer, Result } from "effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { describe, expect, test } from "vitest"
import { RateLimit, type RateLimitPolicy } from "../../src/billing/RateLimit.ts"
import { MasterKey } from "../../src/vault/MasterKey.ts"
import { Vault } from "../../src/vault/Vault.ts"
import { checkAsync } from "../vault/Property.ts"
import { MASTER } from "../vault/Vaults.ts"
import { range } from "./Bench.ts"

/** A shared limit of a single host counts like one that is not shared. */
const layers = {
  "a rate limit": RateLimit.layer,
  "a rate limit that could be shared": (policy: RateLimitPolicy) =>
    RateLimit.shared(policy).pipe(
      Layer.provide(Vault.layer),
      Layer.provide(Layer.fresh(Layer.mergeAll(MemoryStateStore.layer, MasterKey.layer(MASTER))))
    )
}

/** The remaining calls, or -1 and the wait. */
const consume = (key: string) =>
  Effect.flatMap(RateLimit, (limit) => limit.consume(key)).pipe(
    Effect.map(({ remaining, resetAfter }) => ({ remaining, resetAfter })),
    Effect.catch(({ resetAfter }) => Effect.succeed({ remaining: -1, resetAfter }))
  )

describe.each(Object.entries(layers))("%s", (_name, layer) => {
  const testing = (policy: RateLimitPolicy, body: Effect.Effect<unknown, unknown, RateLimit>) =>
    Effect.runPromise(Effect.asVoid(body).pipe(Effect.provide(layer(policy)), Effect.provide(TestClock.layer())))

  test("admits the limit of calls in a window and returns when it ends", () =>
    testing(
      { limit: 3, window: 60 },
      Effect.gen(function* () {
        yield* TestClock.adjust(25_000)
        expect(yield* consume("a")).toEqual({ remaining: 2, resetAfter: 35 })
        yield* TestClock.adjust(30_500)
        expect(yield* consume("a")).toEqual({ remaining: 1, resetAfter: 5 })
        expect(yield* consume("a")).toEqual({ remaining: 0, resetAfter: 5 })
        const { consume: raw } = yield* RateLimit
        expect({ ...(yield* Effect.flip(raw("a"))) }).toEqual({ _tag: "RateLimited", limit: 3, window: 60, resetAfter: 5 })
        expect(yield* consume("b")).toEqual({ remaining: 2, resetAfter: 5 })
        yield* TestClock.adjust(4_499)
        expect(yield* consume("a")).toEqual({ remaining: -1, resetAfter: 1 })
        yield* TestClock.adjust(1)
        expect(yield* consume("a")).toEqual({ remaining: 2, resetAfter: 60 })
      })
    ))

  test("can be read without counting a call", () =>
    testing(
      { limit: 2, window: 60 },
      Effect.gen(function* () {
        const { consume, peek, policy } = yield* RateLimit
        expect(policy).toEqual({ limit: 2, window: 60 })
        const whole = { limit: 2, window: 60, remaining: 2, resetAfter: 60 }
        for (const _ of range(3)) expect(yield* peek("a")).toEqual(whole)
        yield* consume("a")
        yield* TestClock.adjust(30_500)
        for (const _ of range(3)) expect(yield* peek("a")).toEqual({ ...whole, remaining: 1, resetAfter: 30 })
        yield* consume("a")
        yield* Effect.flip(consume("a"))
        expect(yield* peek("a")).toEqual({ ...whole, remaining: 0, resetAfter: 30 })
        expect(yield* peek("b")).toEqual({ ...whole, resetAfter: 30 })
        yield* TestClock.adjust(29_500)
        expect(yield* peek("a")).toEqual(whole)
      })
    ))

  test("counts at once in the same way", () =>
    testing(
      { limit: 2, window: 60 },
      Effect.gen(function* () {
        const { consume, peek } = yield* RateLimit
        const whole = { limit: 2, window: 60, remaining: 2, resetAfter: 60 }
        expect(consume.now("a")).toEqual(Result.succeed({ ...whole, remaining: 1 }))
        expect(yield* consume("a")).toEqual({ ...whole, remaining: 0 })
        expect(Result.isFailure(consume.now("a"))).toBe(true)
        expect(yield* peek("a")).toEqual({ ...whole, remaining: 0 })
      })
    ))

  test("works when the clock is set back", () =>
    testing(
      { limit: 2, window: 60 },
      Effect.gen(function* () {
        yield* TestClock.setTime(3_600_000)
        for (const _ of range(3)) yield* consume("a")
        // Less than a window shortens no window and begins none twice
        yield* TestClock.setTime(3_599_000)
        expect(yield* consume("a")).toEqual({ remaining: -1, resetAfter: 61 })
        yield* TestClock.setTime(1_000)
        expect(yield* consume("a")).toEqual({ remaining: 1, resetAfter: 59 })
        yield* TestClock.setTime(61_000)
        expect(yield* consume("a")).toEqual({ remaining: 1, resetAfter: 59 })
      })
    ))

  test("counts each of 64 concurrent calls", () =>
    testing(
      { limit: 10, window: 1 },
      Effect.gen(function* () {
        const left = yield* Effect.forEach(range(64), () => consume("a"), { concurrency: "unbounded" })
        expect(left.map(({ remaining }) => remaining).sort((a, b) => b - a)).toEqual([...range(10).reverse(), ...range(54).map(() => -1)])
      })
    ))

  test("has a fixed window for each key, independent of other and of dropped keys", () =>
    checkAsync(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 4 }),
        fc.integer({ min: 1, max: 5 }),
        fc.array(fc.record({ key: fc.constantFrom("a", "b", "c"), wait: fc.oneof(fc.constant(0), fc.nat(3_000), fc.nat(20_000)) }), {
          maxLength: 60
        }),
        (limit, window, calls) =>
          testing(
            { limit, window },
            Effect.gen(function* () {
              const windows = new Map<string, number>()
              let now = 0
              for (const { key, wait } of calls) {
                yield* TestClock.adjust(wait)
                now += wait
                const number = Math.floor(now / (window * 1000))
                const calls = windows.get(`${key} ${number}`) ?? 0
                windows.set(`${key} ${number}`, Math.min(limit, calls + 1))
                const remaining = calls < limit ? limit - calls - 1 : -1
                expect(yield* consume(key)).toEqual({ remaining, resetAfter: Math.ceil((number + 1) * window - now / 1000) })
              }
            })
          )
      ),
      200
    ))
})
