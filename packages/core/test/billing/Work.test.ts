import { Effect, Schema } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect, test } from "vitest"
import { CircuitBreaker } from "../../src/billing/CircuitBreaker.ts"
import * as Work from "../../src/billing/Work.ts"
import * as Operation from "../../src/operations/Operation.ts"
import { NotFound, type OperationError, UpstreamNotConfigured, UpstreamUnavailable } from "../../src/operations/OperationError.ts"

const caller = { accountId: "acc_1", requestId: "request-1", reservationId: "res_1" }

/** Whether an upstream is still asked after ten calls have ended so. */
const isAskedAfter = (end: Effect.Effect<{ readonly data: string }, OperationError>) =>
  Effect.gen(function* () {
    const breaker = yield* CircuitBreaker
    const attempt = yield* Work.make
    const operation = Operation.make("test.ask", {
      summary: "Ask",
      route: { method: "GET", path: "/ask" },
      success: Schema.String,
      run: () => end
    })
    for (let n = 0; n < 10; n++) yield* Effect.exit(attempt(operation, {}, caller))
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
