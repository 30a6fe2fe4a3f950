/** What a client takes from where it runs, owned by a test: waits move the clock of the server, too, and nothing is random. */
import { type Clock, Effect } from "effect"
import { TestClock } from "effect/testing"
import type { RetryOptions, Surroundings } from "../../src/client/index.ts"

/** So long that an attempt ends for other reasons. */
const TIMEOUT = 1_000_000

export const retry = { timeout: TIMEOUT, within: 1_000 * TIMEOUT } as const satisfies RetryOptions

/** Every wait between attempts, in milliseconds; keys are `key-1`, `key-2`, ... */
export const surroundings = Effect.gen(function* () {
  const clock: Clock.Clock = yield* Effect.clockWith(Effect.succeed)
  const run = Effect.runPromiseWith(yield* Effect.context<never>())
  const waits: Array<number> = []
  let keys = 0
  const around: Surroundings = {
    fetch: (request) => fetch(request),
    now: () => clock.currentTimeMillisUnsafe(),
    random: () => 0.5,
    sleep: (millis, signal) => {
      if (millis === TIMEOUT) return new Promise((resolve) => signal.addEventListener("abort", () => resolve()))
      waits.push(millis)
      return run(TestClock.adjust(millis))
    },
    newIdempotencyKey: () => `key-${++keys}`
  }
  return { around, waits }
})

/** What a promise is rejected with. */
export const rejection = (promise: Promise<unknown>): Effect.Effect<unknown> =>
  Effect.promise(() =>
    promise.then(
      (value) => {
        throw new Error(`It was to fail, and gave ${JSON.stringify(value)}`)
      },
      (error: unknown) => error
    )
  )
