import { Effect, Exit } from "effect"
import * as fc from "fast-check"
import { describe, expect, test } from "vitest"
import * as CodeHost from "../../src/operations/CodeHost.ts"
import { InvalidInput } from "../../src/work/OperationError.ts"

const CALLER = { accountId: "acc_1", requestId: "req_1", reservationId: "res_1" }

const { check, run } = CodeHost.searchRepositories

/** A platform on which so many repositories match. */
const finding = (total_count: number) =>
  Effect.provideService(CodeHost.CodeHost, {
    configured: Effect.void,
    user: () => Effect.die("not asked"),
    repository: () => Effect.die("not asked"),
    activity: () => Effect.die("not asked"),
    search: () => Effect.succeed({ cache: "miss", data: { total_count, incomplete_results: false, items: [] } })
  })

const pages = fc.record({ page: fc.integer({ min: 1, max: 1_000 }), per_page: fc.integer({ min: 1, max: 100 }) })

describe("a search of repositories", () => {
  test("leads only to pages that the platform gives", () =>
    fc.assert(
      fc.property(pages, fc.nat(3_000), ({ page, per_page }, total) => {
        const isGiven = page * per_page <= 1_000
        expect(Exit.isSuccess(Effect.runSyncExit(finding(total)(check({ q: "a", page, per_page }, CALLER))))).toBe(isGiven)
        if (!isGiven) return
        const outcome = Effect.runSync(finding(total)(run({ q: "a", page, per_page }, CALLER)))
        const last = Math.ceil((outcome.page?.total ?? 0) / per_page)
        expect(last * per_page).toBeLessThanOrEqual(Math.max(1_000, per_page))
        // All that can be read is led to
        if (total <= 900) expect(outcome.page).toEqual({ number: page, size: per_page, total })
      })
    ))

  test.each([" ", "\t", "\u00a0"])("for %j is for nothing", (q) => {
    const error = Effect.runSync(Effect.flip(finding(1)(check({ q }, CALLER))))
    expect(error).toEqual(new InvalidInput({ field: "q", message: "must have a word to search for" }))
  })
})
