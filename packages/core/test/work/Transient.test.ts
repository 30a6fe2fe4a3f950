import { Clock, Effect, Fiber, Schedule } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { expect, test } from "vitest"
import { isTransient, retryTransient } from "../../src/work/Transient.ts"

const POLICY = { schedule: Schedule.exponential("20 millis"), times: 3 }

type Outcome = "StoreUnavailable" | "Busy" | "NotFound" | "done"

/** An effect with these outcomes, one after another, and when it was tried. */
const scripted = (outcomes: ReadonlyArray<Outcome>) => {
  const triedAt: Array<number> = []
  const effect = Effect.flatMap(Clock.currentTimeMillis, (now) => {
    const outcome = outcomes[triedAt.push(now) - 1] ?? "done"
    return outcome === "done" ? Effect.succeed("done") : Effect.fail({ _tag: outcome, at: triedAt.length })
  })
  return { effect, triedAt }
}

type Scripted = ReturnType<typeof scripted>["effect"]

/** How it ended, and when it was tried. */
const ended = (outcomes: ReadonlyArray<Outcome>, retry: (effect: Scripted) => Scripted) =>
  Effect.gen(function* () {
    const { effect, triedAt } = scripted(outcomes)
    const fiber = yield* Effect.forkChild(Effect.exit(retry(effect)))
    yield* TestClock.adjust("1 minute")
    return { exit: yield* Fiber.join(fiber), triedAt }
  }).pipe(Effect.provide(TestClock.layer()), Effect.runPromise)

test("a transient failure is retried as by a schedule that was made before the first attempt", () =>
  fc.assert(
    fc.asyncProperty(
      fc.array(fc.constantFrom<Outcome>("StoreUnavailable", "Busy", "NotFound", "done"), { maxLength: 6 }),
      async (outcomes) => {
        const expected = await ended(outcomes, Effect.retry({ while: isTransient, ...POLICY }))
        expect(await ended(outcomes, retryTransient(POLICY))).toEqual(expected)
      }
    ),
    { examples: [[["Busy", "Busy", "Busy", "Busy", "Busy"]], [["StoreUnavailable", "NotFound"]]] }
  ))

test("an effect that is run twice is retried both times", async () => {
  const { effect, triedAt } = scripted(["Busy", "done", "Busy", "done"])
  const retried = retryTransient(POLICY)(effect)
  await Effect.runPromise(Effect.andThen(retried, retried))
  expect(triedAt).toHaveLength(4)
})
