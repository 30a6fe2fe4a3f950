import { Effect, Schema } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect, test } from "vitest"
import { CircuitBreaker } from "../../src/work/CircuitBreaker.ts"
import { NotFound, type OperationError, UpstreamNotConfigured, UpstreamUnavailable } from "../../src/work/OperationError.ts"
import * as Perform from "../../src/work/Perform.ts"

/** Whether the circuit lets calls through after ten calls that ended this way. */
const staysClosedAfter = (end: Effect.Effect<{ readonly data: string }, OperationError>) =>
  Effect.gen(function* () {
    const breaker = yield* CircuitBreaker
    const perform = yield* Perform.make
    const task = { key: "test.ask", timeout: "30 seconds" } as const
    for (let n = 0; n < 10; n++) yield* Effect.exit(perform(task, Schema.String, end))
    return yield* breaker.guard("test", Effect.succeed(true)).pipe(Effect.catch(() => Effect.succeed(false)))
  }).pipe(Effect.provide(CircuitBreaker.layer({ failures: 5 })), Effect.provide(TestClock.layer()), Effect.runPromise)

const unavailable = (isolated?: boolean) =>
  Effect.fail(new UpstreamUnavailable({ upstream: "test", reason: "down", ...(isolated === undefined ? {} : { isolated }) }))

describe("Perform", () => {
  test("counts an unavailable upstream as a failure of the circuit", async () => {
    expect(await staysClosedAfter(unavailable())).toBe(false)
    expect(await staysClosedAfter(unavailable(false))).toBe(false)
  })

  test("does not count an isolated failure, so one caller cannot open the circuit for all", async () => {
    expect(await staysClosedAfter(unavailable(true))).toBe(true)
  })

  test("does not count refusals and successes as failures", async () => {
    expect(await staysClosedAfter(Effect.fail(new NotFound({ resource: "thing" })))).toBe(true)
    expect(await staysClosedAfter(Effect.succeed({ data: "yes" }))).toBe(true)
    expect(await staysClosedAfter(Effect.fail(new UpstreamNotConfigured({ upstream: "test" })))).toBe(true)
  })
})
