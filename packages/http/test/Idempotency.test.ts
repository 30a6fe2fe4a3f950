/** One key, one call: replays, races, reuse, and what counts as the same key. */
import { Deferred, Effect, Fiber } from "effect"
import fc from "fast-check"
import { describe, expect } from "vitest"
import { eventually, host, testing } from "./Host.ts"

const PATH = "/api/v1/test/a/work"

describe("a call with an idempotency key", () => {
  testing(
    "is replayed byte for byte, with the first id, its own id, and the current balance",
    Effect.gen(function* () {
      const { call, account, bench, log, lines } = yield* host()
      const { bearer } = yield* account()
      const request = { method: "POST", headers: { ...bearer, "idempotency-key": "order-1" }, body: { how: "at once", password: "p" } }
      const first = yield* call(`${PATH}?times=2`, request)
      expect([first.status, first.headers["x-credits-charged"], first.headers["x-credits-balance"]]).toEqual([201, "4", "196"])
      expect(first.headers["idempotent-replayed"]).toBeUndefined()
      yield* call("/api/v1/bin/457173", { headers: bearer })
      const events = (yield* log).length

      const again = yield* call(`${PATH}?times=2`, request)
      expect(again.status).toBe(201)
      expect(again.body).toBe(first.body)
      expect(again.headers).toMatchObject({
        "x-request-id": first.headers["x-request-id"],
        "idempotent-replayed": "true",
        "x-credits-charged": "0",
        "x-credits-balance": "195.5",
        "cache-control": "private, no-store"
      })
      const own = again.headers["x-replay-request-id"]
      expect(own).toMatch(/^[0-9a-f-]{36}$/u)
      expect(own).not.toBe(first.headers["x-request-id"])
      expect(JSON.parse(lines.at(-1) ?? "")).toMatchObject({ requestId: own, charged: 0 })
      expect(bench.started).toEqual(["a"])
      expect((yield* log).length).toBe(events)
    })
  )

  testing(
    "runs once for concurrent requests",
    Effect.gen(function* () {
      const { call, account, bench, balance } = yield* host()
      const { accountId, bearer } = yield* account()
      const request = { method: "POST", headers: { ...bearer, "idempotency-key": "one" }, body: { how: "when told" } }
      const race = yield* Effect.forkChild(
        Effect.all(
          Array.from({ length: 64 }, () => call(PATH, request)),
          { concurrency: "unbounded" }
        )
      )
      yield* eventually(
        Effect.sync(() => bench.started.length),
        (started) => started === 1
      )
      const late = yield* call(PATH, request)
      expect(late.status).toBe(409)
      expect(late.json).toMatchObject({ error: { code: "idempotency_key_in_use" } })
      expect(late.headers).toMatchObject({ "retry-after": "1", "x-should-retry": "true" })
      yield* Deferred.succeed(bench.finish, undefined)
      const answers = yield* Fiber.join(race)
      const statuses = answers.map(({ status }) => status)
      expect(statuses.filter((status) => status === 201)).toHaveLength(1)
      expect(statuses.filter((status) => status === 409)).toHaveLength(63)
      expect(bench.started).toEqual(["a"])
      const replay = yield* call(PATH, request)
      expect(replay.body).toBe(answers.find(({ status }) => status === 201)?.body)
      expect(yield* balance(accountId)).toMatchObject({ available: 198_000, held: 0 })
    })
  )

  testing(
    "is another request if its path, query or body differs",
    Effect.gen(function* () {
      const { call, account, bench } = yield* host()
      const { bearer } = yield* account()
      const headers = { ...bearer, "idempotency-key": "k", "content-type": "application/json" }
      const body = `{"how":"at once"}`
      expect((yield* call(PATH, { method: "POST", headers, body })).status).toBe(201)
      const others = [
        call("/api/v1/test/b/work", { method: "POST", headers, body }),
        call(`${PATH}?times=1`, { method: "POST", headers, body }),
        call(PATH, { method: "POST", headers, body: `{"how": "at once"}` }),
        call("/api/v1/bin/457173", { headers })
      ]
      for (const other of others) {
        const { status, json } = yield* other
        expect(status).toBe(422)
        expect(json).toMatchObject({ error: { code: "idempotency_key_reused" } })
      }
      expect(bench.started).toEqual(["a"])
      // Another account's keys are its own
      const { bearer: theirs } = yield* account()
      expect((yield* call("/api/v1/test/b/work", { method: "POST", headers: { ...headers, ...theirs }, body })).status).toBe(201)
    })
  )

  testing(
    "frees the key when it fails",
    Effect.gen(function* () {
      const { call, account } = yield* host()
      const { bearer } = yield* account()
      const headers = { ...bearer, "idempotency-key": "k" }
      expect((yield* call(PATH, { method: "POST", headers, body: { how: "throw" } })).status).toBe(500)
      expect((yield* call(PATH, { method: "POST", headers, body: { how: "at once" } })).status).toBe(201)
    })
  )
})

describe("an idempotency key", () => {
  testing(
    "may be quoted or bare, with up to 255 characters; others are refused before the call",
    Effect.gen(function* () {
      const { call, account, bench } = yield* host()
      const { bearer } = yield* account()
      const send = (key: string | Array<string>) =>
        call(PATH, { method: "POST", headers: { ...bearer, "idempotency-key": key }, body: { how: "at once" } })
      const same = [`"a\\"b\\\\c"`, `"a\\"b\\\\c"`]
      for (const key of ["abc", ` abc\t`, `"abc"`, "k".repeat(255), `"${"k".repeat(255)}"`, `"with space, and comma"`, ...same]) {
        expect([key, (yield* send(key)).status]).toEqual([key, 201])
      }
      // abc, 255 k, the one with a space, and the one with escapes
      expect(bench.started).toHaveLength(4)
      const wrong = [
        "",
        `""`,
        "k".repeat(256),
        `"${"k".repeat(256)}"`,
        "a b",
        "a,b",
        `"a`,
        `a"`,
        `"a\\x"`,
        "caf\u00e9",
        `"caf\u00e9"`,
        ["one", "two"]
      ]
      for (const key of wrong) {
        const { status, json } = yield* send(key)
        expect([key, status]).toEqual([key, 422])
        expect(json).toMatchObject({ error: { message: "Idempotency-Key: expected one key of 1 to 255 visible ASCII characters" } })
      }
      expect(bench.started).toHaveLength(4)
    })
  )
})

describe("the reported charges", () => {
  testing(
    "add up to what the account paid, and each balance is the current one",
    Effect.gen(function* () {
      const { account, balance, call } = yield* host()
      const step = fc.record({
        key: fc.constantFrom(undefined, "a", "b", "c"),
        path: fc.constantFrom(PATH, `${PATH}?times=3`, "/api/v1/bin/457173", "/api/v1/bin/000000", "/api/v1/account/billing")
      })
      for (const steps of fc.sample(fc.array(step, { minLength: 5, maxLength: 20 }), { seed: 1, numRuns: 20 })) {
        const { accountId, bearer } = yield* account()
        let paid = 0
        for (const { key, path } of steps) {
          const post = path.startsWith(PATH) ? { method: "POST", body: { how: "at once" } } : {}
          const headers = { ...bearer, ...(key === undefined ? {} : { "idempotency-key": key }) }
          const answer = yield* call(path, { ...post, headers })
          paid += Number(answer.headers["x-credits-charged"] ?? 0)
          if (answer.status < 300) expect([steps, answer.headers["x-credits-balance"]]).toEqual([steps, String(200 - paid)])
        }
        expect([steps, (yield* balance(accountId)).available]).toEqual([steps, (200 - paid) * 1_000])
      }
    })
  )
})
