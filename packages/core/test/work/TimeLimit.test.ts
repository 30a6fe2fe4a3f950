import { Context, Deferred, Effect, Exit } from "effect"
import { TestClock } from "effect/testing"
import { afterEach, describe, expect, test, vi } from "vitest"
import * as TimeLimit from "../../src/work/TimeLimit.ts"

const late = () => Exit.fail("late")
const nothing = Context.empty()

/** Runs work for at most a second. `ends`: what was told. */
const started = (work: Effect.Effect<string, string>, context = nothing) => {
  const ends: Array<Exit.Exit<string, string>> = []
  const running = TimeLimit.start(work, context, "1 second", late, (exit) => ends.push(exit))
  return { ends, interrupt: running.interrupt }
}

/** Lets a second pass by each kind of clock. */
const CLOCKS = {
  "the system's clock": async (use: (context: Context.Context<never>, pass: (millis: number) => Promise<unknown>) => Promise<unknown>) => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
    await use(nothing, (millis) => vi.advanceTimersByTimeAsync(millis))
    expect(vi.getTimerCount()).toBe(0)
  },
  "a clock of a test": (use: (context: Context.Context<never>, pass: (millis: number) => Promise<unknown>) => Promise<unknown>) =>
    Effect.runPromise(
      Effect.gen(function* () {
        const context = yield* Effect.context<never>()
        yield* Effect.promise(() => use(context, (millis) => Effect.runPromiseWith(context)(TestClock.adjust(millis))))
      }).pipe(Effect.provide(TestClock.layer()))
    )
} as const

afterEach(() => void vi.useRealTimers())

describe.each(Object.entries(CLOCKS))("a time limit by %s", (_, withClock) => {
  test("tells work that ends in time, once, and leaves no timer", () =>
    withClock(async (context, pass) => {
      const { ends, interrupt } = started(Effect.delay(Effect.succeed("done"), 999), context)
      await pass(998)
      expect(ends).toEqual([])
      await pass(10_000)
      interrupt()
      expect(ends).toEqual([Exit.succeed("done")])
    }))

  test("interrupts work that takes longer, and tells so once the work has ended", () =>
    withClock(async (context, pass) => {
      const { ends, interrupt } = started(
        Effect.onInterrupt(Effect.never, () => Effect.sleep(500)),
        context
      )
      await pass(1_000)
      expect(ends).toEqual([])
      interrupt()
      await pass(500)
      expect(ends).toEqual([Exit.fail("late")])
    }))

  test("tells an interruption, whatever the work then ends with", () =>
    withClock(async (context, pass) => {
      const gate = Deferred.makeUnsafe<void>()
      const { ends, interrupt } = started(Effect.uninterruptible(Effect.as(Deferred.await(gate), "done")), context)
      interrupt()
      await pass(2_000)
      expect(ends).toEqual([])
      Deferred.doneUnsafe(gate, Exit.void)
      expect(ends).toEqual([Exit.interrupt()])
    }))
})

test("work that ends at once is told before `start` returns, and arms no timer", () => {
  const armed = vi.spyOn(globalThis, "setTimeout")
  for (const [work, end] of [
    [Effect.succeed("done"), Exit.succeed("done")],
    [Effect.suspend(() => Effect.succeed("done")), Exit.succeed("done")],
    [Effect.suspend(() => Effect.fail("no")), Exit.fail("no")]
  ] as const)
    expect(started(work).ends).toEqual([end])
  expect(armed).not.toHaveBeenCalled()
})
