import { Effect, Schema } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect, test } from "vitest"
import { CircuitBreaker } from "../../src/work/CircuitBreaker.ts"
import { NotFound, type OperationError, UpstreamNotConfigured, UpstreamUnavailable } from "../../src/work/OperationError.ts"
import * as Perform from "../../src/work/Perform.ts"

/** Whether an upstream is still asked after ten calls have ended so. */
const isAskedAfter = (end: Effect.Effect<{ readonly data: string }, OperationError>) =>
  Effect.gen(function* () {
    const breaker = yield* CircuitBreaker
    const perform = yield* Perform.make
    const task = { key: "test.ask", timeout: "30 seconds", success: Schema.String, work: end } as const
    for (let n = 0; n < 10; n++) yield* Effect.exit(perform(task))
    return yield* breaker.guard("test", Effect.succeed(true)).pipe(Effect.catch(() => Effect.succeed(false)))
  }).pipe(Effect.provide(CircuitBreaker.layer({ failures: 5 })), Effect.provide(TestClock.layer()), Effect.runPromise)

const unavailable = (isolated?: boolean) =>
  Effect.fail(new UpstreamUnavailable({ upstream: "test", reason: "down", ...(isolated === undefined ? {} : { isolated }) }))

describe("what a call says of its upstream", () => {
  test("is that it is down, where it was", async () => {
    expect(await isAskedAfter(unavailable())).toBe(false)
    expect(await isAskedAfter(unavailable(false))).toBe(false)
  })

  test("is nothing, where only this question failed: else a caller could close the door to all", async () => {
    expect(await isAskedAfter(unavailable(true))).toBe(true)
  })

  test("is that it lives, where it says no", async () => {
    expect(await isAskedAfter(Effect.fail(new NotFound({ resource: "thing" })))).toBe(true)
    expect(await isAskedAfter(Effect.succeed({ data: "yes" }))).toBe(true)
    expect(await isAskedAfter(Effect.fail(new UpstreamNotConfigured({ upstream: "test" })))).toBe(true)
  })
})
