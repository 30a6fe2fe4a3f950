/** The trial of an account whose address was not verified yet, over HTTP. */
import { KeyRing, Registration } from "@millrace/core"
import { Deferred, Effect, Fiber, Redacted } from "effect"
import { describe, expect } from "vitest"
import { type Answer, eventually, type Host, host, testing } from "./Host.ts"

const BIN = "/api/v1/bin/457173"
const WORK = "/api/v1/test/a/work"

/** An account that was opened for an address, and nothing more, and a key of it. */
const newcomer = ({ run }: Host) =>
  run(
    Effect.gen(function* () {
      const registration = yield* Registration
      const accountId = yield* registration.open("newcomer@example.org")
      const { key } = yield* (yield* KeyRing).issue(accountId)
      return { accountId, bearer: { authorization: `Bearer ${Redacted.value(key)}` } }
    })
  )

const codeOf = ({ json }: Answer) => (json as { readonly error?: { readonly code: string } }).error?.code

const slotsIn = (log: ReadonlyArray<{ readonly type: string }>) => {
  const count = (wanted: string) => log.filter(({ type }) => type === wanted).length
  return { reserved: count("TrialReserved"), used: count("TrialUsed"), released: count("TrialReleased") }
}

describe("an account that was not verified", () => {
  testing(
    "makes exactly ten of 64 calls at once; the others are refused with 402",
    Effect.gen(function* () {
      const served = yield* host()
      const { call, log } = served
      const { bearer } = yield* newcomer(served)
      const answers = yield* Effect.all(
        Array.from({ length: 64 }, () => call(BIN, { headers: bearer })),
        { concurrency: "unbounded" }
      )
      const [good, refused] = [answers.filter(({ status }) => status === 200), answers.filter(({ status }) => status === 402)]
      expect([good.length, refused.length]).toEqual([10, 54])
      for (const { headers } of good) expect(headers).toMatchObject({ "x-credits-charged": "0", "x-credits-balance": "0" })
      for (const answer of refused) {
        expect(codeOf(answer)).toBe("trial_used_up")
        expect(answer.json).toMatchObject({ error: { message: expect.stringMatching(/10 calls.*[Vv]erify the address.*buy credits/u) } })
        expect(answer.headers).toMatchObject({ "x-trial-remaining": "0", "x-should-retry": "false" })
      }
      expect(slotsIn(yield* log)).toEqual({ reserved: 10, used: 10, released: 0 })
    })
  )

  testing(
    "is told how many calls remain: in a header of each answer, and by its limits",
    Effect.gen(function* () {
      const served = yield* host()
      const { call } = served
      const { bearer } = yield* newcomer(served)
      const limits = Effect.map(call("/api/v1/account/limits", { headers: bearer }), ({ json, headers }) => {
        const { data } = json as { readonly data: { readonly trial?: unknown } }
        return [data.trial, headers["x-trial-remaining"]]
      })
      expect(yield* limits).toEqual([{ total: 10, used: 0, remaining: 10 }, "10"])
      const remaining: Array<unknown> = []
      for (const path of [BIN, BIN, "/api/v1/bin/000000", "/api/v1/bin/letters", BIN]) {
        const { headers } = yield* call(path, { headers: bearer })
        remaining.push(headers["x-trial-remaining"])
      }
      // A call that fails does not use its slot
      expect(remaining).toEqual(["9", "8", "8", "8", "7"])
      expect(yield* limits).toEqual([{ total: 10, used: 3, remaining: 7 }, "7"])
    })
  )

  testing(
    "pays by credits once it is verified, and is told of no trial",
    Effect.gen(function* () {
      const served = yield* host()
      const { call, run } = served
      const { accountId, bearer } = yield* newcomer(served)
      yield* call(BIN, { headers: bearer })
      yield* run(Registration.use((registration) => registration.verify(accountId)))
      const paid = yield* call(BIN, { headers: bearer })
      expect(paid.headers).toMatchObject({ "x-credits-charged": "0.5", "x-credits-balance": "199.5" })
      expect(paid.headers["x-trial-remaining"]).toBeUndefined()
      const { json } = yield* call("/api/v1/account/limits", { headers: bearer })
      expect((json as { readonly data: object }).data).not.toHaveProperty("trial")
    })
  )

  testing(
    "gets a call back that it left, or that failed by our fault",
    Effect.gen(function* () {
      const served = yield* host()
      const { bench, call, log } = served
      const { bearer } = yield* newcomer(served)
      const failed = yield* call(WORK, { method: "POST", headers: bearer, body: { how: "throw" } })
      expect([failed.status, codeOf(failed)]).toEqual([500, "internal_error"])
      const leaving = new AbortController()
      const request = { method: "POST", headers: bearer, body: { how: "when told" }, signal: leaving.signal }
      yield* Effect.forkChild(Effect.exit(call(WORK, request)))
      yield* eventually(
        Effect.sync(() => bench.started.length),
        (started) => started === 2
      )
      leaving.abort()
      yield* eventually(Effect.orDie(log), (events) => slotsIn(events).released === 2)
      expect((yield* call(BIN, { headers: bearer })).headers["x-trial-remaining"]).toBe("9")
    })
  )

  testing(
    "gets the same answer again under its idempotency key, for one call of the trial",
    Effect.gen(function* () {
      const served = yield* host()
      const { bench, call, log } = served
      const { bearer } = yield* newcomer(served)
      const request = { method: "POST", headers: { ...bearer, "idempotency-key": "one" }, body: { how: "when told" } }
      const calls = yield* Effect.forkChild(
        Effect.all(
          Array.from({ length: 16 }, () => call(WORK, request)),
          { concurrency: "unbounded" }
        )
      )
      yield* eventually(
        Effect.sync(() => bench.started.length),
        (started) => started === 1
      )
      yield* Deferred.succeed(bench.finish, undefined)
      const answers = yield* Fiber.join(calls)
      for (const { status } of answers) expect([201, 409]).toContain(status)
      const again = yield* call(WORK, request)
      expect([again.status, again.headers["idempotent-replayed"], again.headers["x-trial-remaining"]]).toEqual([201, "true", "9"])
      expect(slotsIn(yield* log)).toEqual({ reserved: 1, used: 1, released: 0 })
    })
  )

  testing(
    "is told that its trial has no jobs",
    Effect.gen(function* () {
      const served = yield* host()
      const { call, log } = served
      const { bearer } = yield* newcomer(served)
      const body = { emails: ["a@example.org"] }
      const answer = yield* call("/api/v1/email/validation-jobs", { method: "POST", headers: bearer, body })
      expect([answer.status, codeOf(answer), answer.headers["x-trial-remaining"]]).toEqual([402, "trial_excludes_jobs", "10"])
      expect(slotsIn(yield* log).reserved).toBe(0)
    })
  )
})
