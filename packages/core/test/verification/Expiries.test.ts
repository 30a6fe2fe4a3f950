import { Clock, Effect } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { expect, test } from "vitest"
import * as Expiries from "../../src/verification/Expiries.ts"

/** Waits that begin one after another, each of one of three lengths; some are answered before their time is over. */
const plan = fc.array(
  fc.record({
    pause: fc.nat(40),
    millis: fc.constantFrom(30, 60, 120),
    answeredAfter: fc.option(fc.nat(29), { nil: undefined })
  }),
  { maxLength: 30 }
)

test("each wait ends at its time, to the millisecond, unless it was answered before", async () => {
  await fc.assert(
    fc.asyncProperty(plan, (waits) =>
      Effect.gen(function* () {
        const expiries = yield* Expiries.make
        const ended = new Map<number, number>()
        const expected = new Map<number, number>()
        for (const [i, { answeredAfter, millis, pause }] of waits.entries()) {
          yield* TestClock.adjust(pause)
          const began = yield* Clock.currentTimeMillis
          const clock = yield* Clock.Clock
          const answered = expiries.add(millis, () => ended.set(i, clock.currentTimeMillisUnsafe()))
          if (answeredAfter === undefined) expected.set(i, began + millis)
          else yield* Effect.forkScoped(Effect.delay(Effect.sync(answered), answeredAfter))
        }
        yield* TestClock.adjust(200)
        expect([...ended].sort()).toEqual([...expected].sort())
      }).pipe(Effect.scoped, Effect.provide(TestClock.layer()), Effect.runPromise)
    ),
    { numRuns: 50 }
  )
})
