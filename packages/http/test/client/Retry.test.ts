/** When a call is sent again: properties of the policy. */
import * as fc from "fast-check"
import { describe, expect, test } from "vitest"
import { NoAnswer } from "../../src/client/Failure.ts"
import { policyOf, timeoutOfNext, waitBeforeNext } from "../../src/client/Retry.ts"

const policies = fc
  .record({
    attempts: fc.integer({ min: 1, max: 20 }),
    within: fc.integer({ min: 0, max: 1_000_000 }),
    timeout: fc.integer({ min: 1, max: 1_000_000 }),
    base: fc.integer({ min: 0, max: 10_000 }),
    cap: fc.integer({ min: 0, max: 100_000 })
  })
  .map(policyOf)
const progress = fc.record({ attempts: fc.integer({ min: 1, max: 25 }), spent: fc.integer({ min: 0, max: 1_100_000 }) })
const randoms = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
const errors = fc
  .record({ retryable: fc.boolean(), retryAfter: fc.option(fc.integer({ min: 0, max: 1_000_000 }), { nil: undefined }) })
  .map((terms) => new NoAnswer("", { idempotencyKey: "k", ...terms }))

describe("the next attempt", () => {
  test("waits at least as long as asked, not much longer, and only if it can succeed in time", () => {
    fc.assert(
      fc.property(policies, errors, progress, randoms, (policy, error, progress, random) => {
        const wait = waitBeforeNext(policy, error, progress, random)
        const { retryAfter = 0 } = error
        if (wait === undefined) {
          const isLate = progress.spent + retryAfter + policy.cap >= policy.within
          expect(!error.retryable || progress.attempts >= policy.attempts || isLate).toBe(true)
          return
        }
        expect(error.retryable && progress.attempts < policy.attempts).toBe(true)
        expect(wait).toBeGreaterThanOrEqual(retryAfter)
        expect(wait).toBeLessThanOrEqual(retryAfter + Math.min(policy.cap, policy.base * 2 ** (progress.attempts - 1)))
        expect(progress.spent + wait).toBeLessThan(policy.within)
        expect(timeoutOfNext(policy, progress.spent + wait)).toBeGreaterThan(0)
      })
    )
  })

  test("gets no more time than is left", () => {
    fc.assert(
      fc.property(policies, fc.integer({ min: 0, max: 2_000_000 }), (policy, spent) => {
        const timeout = timeoutOfNext(policy, spent)
        expect(timeout).toBeLessThanOrEqual(policy.timeout)
        expect(timeout).toBe(spent >= policy.within ? 0 : Math.min(policy.timeout, policy.within - spent))
      })
    )
  })
})
