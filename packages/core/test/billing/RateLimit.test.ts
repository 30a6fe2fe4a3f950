import { Effect } from "effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { describe, expect, test } from "vitest"
import { RateLimit, type RateLimitPolicy } from "../../src/billing/RateLimit.ts"
import { checkAsync } from "../vault/Property.ts"
import { range } from "./Bench.ts"

const testing = (policy: RateLimitPolicy, body: Effect.Effect<unknown, unknown, RateLimit>) =>
  Effect.runPromise(Effect.asVoid(body).pipe(Effect.provide(RateLimit.layer(policy)), Effect.provide(TestClock.layer())))

/** What is left after a call, or how long to wait. */
const consume = (key: string) =>
  Effect.flatMap(RateLimit, (limit) => limit.consume(key)).pipe(
    Effect.map(({ remaining, resetAfter }) => ({ remaining, resetAfter })),
    Effect.catch(({ resetAfter }) => Effect.succeed({ remaining: -1, resetAfter }))
  )

describe("a rate limit", () => {
  test("lets so many calls through in a window that begins with the first, and says when it ends", () =>
    testing(
      { limit: 3, window: 60 },
      Effect.gen(function* () {
        yield* TestClock.adjust(25_000)
        expect(yield* consume("a")).toEqual({ remaining: 2, resetAfter: 60 })
        yield* TestClock.adjust(30_500)
        expect(yield* consume("a")).toEqual({ remaining: 1, resetAfter: 30 })
        expect(yield* consume("a")).toEqual({ remaining: 0, resetAfter: 30 })
        const { consume: raw } = yield* RateLimit
        expect({ ...(yield* Effect.flip(raw("a"))) }).toEqual({ _tag: "RateLimited", limit: 3, window: 60, resetAfter: 30 })
        expect(yield* consume("b")).toEqual({ remaining: 2, resetAfter: 60 })
        yield* TestClock.adjust(29_499)
        expect(yield* consume("a")).toEqual({ remaining: -1, resetAfter: 1 })
        yield* TestClock.adjust(1)
        expect(yield* consume("a")).toEqual({ remaining: 2, resetAfter: 60 })
      })
    ))

  test("can be looked at without a call being counted", () =>
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
        expect(yield* peek("b")).toEqual(whole)
        yield* TestClock.adjust(29_500)
        expect(yield* peek("a")).toEqual(whole)
      })
    ))

  test("counts 64 calls at once one by one", () =>
    testing(
      { limit: 10, window: 1 },
      Effect.gen(function* () {
        const left = yield* Effect.forEach(range(64), () => consume("a"), { concurrency: "unbounded" })
        expect(left.map(({ remaining }) => remaining).sort((a, b) => b - a)).toEqual([...range(10).reverse(), ...range(54).map(() => -1)])
      })
    ))

  test("is a fixed window for each key, whoever else calls and whatever was forgotten meanwhile", () =>
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
              const windows = new Map<string, { calls: number; readonly endsAt: number }>()
              let now = 0
              for (const { key, wait } of calls) {
                yield* TestClock.adjust(wait)
                now += wait
                const known = windows.get(key)
                const current = known !== undefined && now < known.endsAt ? known : { calls: 0, endsAt: now + window * 1000 }
                windows.set(key, current)
                const remaining = current.calls < limit ? limit - ++current.calls : -1
                expect(yield* consume(key)).toEqual({ remaining, resetAfter: Math.ceil((current.endsAt - now) / 1000) })
              }
            })
          )
      ),
      200
    ))
})
