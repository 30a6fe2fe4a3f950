/** Every way a call can be refused: status, code, message, headers, and that it costs nothing. */
import type { OutgoingHttpHeaders } from "node:http"
import { Credits, Decisions, KeyRing, Ledger, Registration } from "@millrace/core"
import { EventStore, MemoryEventStore } from "@millrace/event-sourcing"
import { Effect, Layer, Schema } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect } from "vitest"
import { ErrorBody, termsOf } from "../src/ErrorCode.ts"
import { type Answer, type Call, eventually, host, testing } from "./Host.ts"

/** What all errors share; gives back the rest. */
const errorOf = ({ status, headers, json, body }: Answer) => {
  const { error } = Schema.decodeUnknownSync(ErrorBody)(json)
  expect(Object.keys(JSON.parse(body))).toEqual(["error"])
  expect(Object.keys(error)).toEqual(["code", "message", "request_id"])
  expect(error.request_id).toBe(headers["x-request-id"])
  const terms = termsOf(error.code)
  expect({ status, retry: headers["x-should-retry"], isLater: headers["retry-after"] !== undefined }).toEqual({
    status: terms.status,
    retry: String(terms.retry),
    isLater: terms.after !== undefined
  })
  expect(headers).toMatchObject({
    "content-type": "application/json",
    "cache-control": "private, no-store",
    "x-content-type-options": "nosniff"
  })
  expect(headers["x-credits-charged"]).toBeUndefined()
  return { status, code: error.code, message: error.message, headers }
}

const credits = (decimal: number) => Credits.of(decimal * 1_000)

const check = (body: string | object, headers: OutgoingHttpHeaders = {}): Call => ({ method: "POST", body, headers })

describe("a call without a valid API key", () => {
  testing(
    "gets the same answer for a missing, malformed, unknown, revoked or closed key",
    Effect.gen(function* () {
      const { call, account, run } = yield* host()
      const { accountId, key, bearer } = yield* account()
      const closed = yield* account()
      yield* run(Effect.flatMap(Registration, (registration) => registration.close(closed.accountId)))
      const wrong = key.slice(0, -8) + (key.endsWith("0") ? "1" : "0").repeat(8)
      const before = yield* call("/api/v1/account/billing", { headers: bearer })
      expect(before.status).toBe(200)
      yield* run(Effect.flatMap(KeyRing, (keys) => keys.revoke(accountId, key.split("_")[2] ?? "")))
      const tries = [
        {},
        { authorization: "" },
        { authorization: "Basic abc" },
        { authorization: `Bearer ${wrong}` },
        { authorization: `Bearer ${"a".repeat(5000)}` },
        { authorization: "Bearer" },
        { authorization: `Bearer ${key} x` },
        bearer,
        closed.bearer
      ]
      for (const headers of tries) {
        const error = errorOf(yield* call("/api/v1/account/billing", { headers }))
        expect(error).toMatchObject({ status: 401, code: "unauthorized", message: "Missing or invalid API key." })
        expect(error.headers["www-authenticate"]).toBe("Bearer")
        expect(error.headers["ratelimit"]).toBeUndefined()
      }
    })
  )

  testing(
    "is refused before its input and body are read",
    Effect.gen(function* () {
      const { call } = yield* host()
      expect(errorOf(yield* call("/api/v1/grammar/check", check("{nonsense", { "content-type": "text/plain" }))).status).toBe(401)
      expect(errorOf(yield* call("/api/v1/bin/nonsense")).status).toBe(401)
    })
  )

  testing(
    "is answered 429 after too many failures of its address, which still accepts valid keys",
    Effect.gen(function* () {
      const { call, account } = yield* host({ authFailures: 3 })
      const { bearer } = yield* account()
      const statuses = []
      for (let i = 0; i < 4; i++) statuses.push(errorOf(yield* call("/api/v1/account/billing")))
      expect(statuses.map(({ status, code }) => `${status} ${code}`)).toEqual([
        "401 unauthorized",
        "401 unauthorized",
        "401 unauthorized",
        "429 rate_limited"
      ])
      expect(statuses[3]?.headers["retry-after"]).toBe("20")
      expect((yield* call("/api/v1/account/billing", { headers: bearer })).status).toBe(200)
      yield* TestClock.adjust("20 seconds")
      expect(errorOf(yield* call("/api/v1/account/billing")).status).toBe(401)
    })
  )

  testing(
    "names the scope that the key lacks",
    Effect.gen(function* () {
      const { call, account } = yield* host()
      const reader = yield* account(200, ["read"])
      const denied = errorOf(yield* call("/api/v1/bin/457173", { headers: reader.bearer }))
      expect(denied).toMatchObject({ status: 403, code: "insufficient_scope", message: "This API key lacks the scope operations." })
      expect(denied.headers["www-authenticate"]).toBe(`Bearer error="insufficient_scope", scope="operations"`)
      expect((yield* call("/api/v1/account/billing", { headers: reader.bearer })).status).toBe(200)
      const usual = yield* account()
      expect(errorOf(yield* call("/api/v1/test/money", { method: "DELETE", headers: usual.bearer })).status).toBe(403)
      const rich = yield* account(200, ["billing"])
      expect((yield* call("/api/v1/test/money", { method: "DELETE", headers: rich.bearer })).status).toBe(200)
    })
  )
})

describe("the rate limit", () => {
  testing(
    "is reported with each answer, and with the refusal",
    Effect.gen(function* () {
      const { call, account } = yield* host({ rateLimit: { limit: 2, window: 60 } })
      const one = yield* account()
      const other = yield* account()
      const first = yield* call("/api/v1/bin/457173", { headers: one.bearer })
      expect(first.headers["ratelimit"]).toBe(`"burst";r=1;t=60`)
      yield* TestClock.adjust("40 seconds")
      // Refused for another reason, and counted
      const second = errorOf(yield* call("/api/v1/bin/x", { headers: one.bearer }))
      expect([second.status, second.headers["ratelimit"]]).toEqual([422, `"burst";r=0;t=20`])
      const third = errorOf(yield* call("/api/v1/bin/457173", { headers: one.bearer }))
      expect(third).toMatchObject({ status: 429, code: "rate_limited", message: "More than 2 requests in 60 seconds." })
      expect(third.headers).toMatchObject({ "retry-after": "20", "ratelimit-policy": `"burst";q=2;w=60`, ratelimit: `"burst";r=0;t=20` })
      expect((yield* call("/api/v1/bin/457173", { headers: other.bearer })).status).toBe(200)
      yield* TestClock.adjust("20 seconds")
      expect((yield* call("/api/v1/bin/457173", { headers: one.bearer })).status).toBe(200)
    })
  )
})

describe("the request", () => {
  testing(
    "must have a known path and method",
    Effect.gen(function* () {
      const { call, account } = yield* host()
      const { bearer: headers } = yield* account()
      for (const path of [
        "/",
        "/api/v1",
        "/api/v1/nothing",
        "/API/V1/bin/457173",
        "/api//v1/bin/457173",
        "/api/v1/bin/457173/more",
        "/health/x"
      ]) {
        expect(errorOf(yield* call(path, { headers }))).toMatchObject({ status: 404, code: "route_not_found" })
      }
      for (const method of ["POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "PROPFIND"]) {
        const answer = yield* call("/api/v1/bin/457173", { method, headers })
        expect([method, answer.status, answer.headers["allow"]]).toEqual([method, 405, "GET"])
        if (method !== "HEAD") expect(errorOf(answer).code).toBe("method_not_allowed")
      }
      const missing = errorOf(yield* call("/api/v1/bin/000000", { headers }))
      expect(missing).toMatchObject({ status: 404, code: "not_found", message: "There is no such resource, or it is not yours." })
    })
  )

  testing(
    "is refused with all its issues at once",
    Effect.gen(function* () {
      const { call, account, bench } = yield* host()
      const { bearer } = yield* account()
      const { status, code, message } = errorOf(
        yield* call(
          `/api/v1/test/${"r".repeat(301)}/work?times=12`,
          check({ how: "never", extra: 1 }, { ...bearer, "idempotency-key": `"${"k".repeat(256)}"`, "x-max-credits": "-1" })
        )
      )
      expect([status, code]).toEqual([422, "invalid_request"])
      const issues = Object.fromEntries(message.split("; ").map((issue) => issue.split(/: (.*)/u).slice(0, 2)))
      expect(Object.keys(issues).sort()).toEqual(["Idempotency-Key", "X-Max-Credits", "extra", "how", "room", "times"])
      expect(issues["room"]).toMatch(/at most 300/u)
      expect(issues["times"]).toMatch(/between 1 and 9/u)
      expect(issues["extra"]).toBe("is not a field of this operation")
      expect(bench.started).toEqual([])
    })
  )

  testing(
    "is neither echoed in a refusal, nor without a length limit",
    Effect.gen(function* () {
      const { call, account } = yield* host()
      const { bearer } = yield* account()
      const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`field${i}${"x".repeat(300)}`, i]))
      const { message } = errorOf(yield* call("/api/v1/grammar/check", check({ text: "ok", ...many }, bearer)))
      expect(message).toMatch(/and 980 more$/u)
      expect(message.length).toBeLessThan(5_000)
      const secret = errorOf(yield* call("/api/v1/grammar/check", check({ text: ["canary"], language: "canary".repeat(9) }, bearer)))
      expect(secret.message).toBe("text: expected string; language: expected a string with at most 20 code points")
      const language = errorOf(yield* call("/api/v1/grammar/check", check({ text: "ok", language: "xx" }, bearer)))
      expect(language).toMatchObject({ status: 422, code: "invalid_request", message: `language: language "xx" is not supported` })
    })
  )

  testing(
    "must have a JSON object as its body",
    Effect.gen(function* () {
      const { call, account } = yield* host()
      const { bearer } = yield* account()
      const json = { ...bearer, "content-type": "application/json" }
      const at = (body: string | Uint8Array, headers: OutgoingHttpHeaders = json) =>
        Effect.map(call("/api/v1/grammar/check", { method: "POST", body, headers }), errorOf)
      for (const type of [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json; charset=latin1",
        "json",
        "application/jsonp"
      ]) {
        expect(yield* at(`{"text":"ok"}`, { ...bearer, "content-type": type })).toMatchObject({
          status: 415,
          code: "unsupported_media_type"
        })
      }
      expect(yield* at(`{"text":"ok"}`, { ...json, "content-encoding": "gzip" })).toMatchObject({ status: 415 })
      const nested = "[".repeat(100_000) + "]".repeat(100_000)
      const malformed = [
        "{",
        "{nope",
        `{"text":"a"}}`,
        "\uFEFF{}",
        `{"text":"\u0001"}`,
        nested,
        `{"text":${nested}}`,
        Uint8Array.of(0x22, 0xff, 0x22)
      ]
      for (const body of malformed) expect(yield* at(body)).toMatchObject({ status: 422, code: "malformed_json" })
      for (const body of ["null", "[]", `"text"`, "1", "true"]) {
        expect(yield* at(body)).toMatchObject({ status: 422, code: "invalid_request", message: "body: expected an object" })
      }
      expect((yield* at(`{"__proto__":{"text":"a"}}`)).message).toMatch(/^__proto__: is not a field of this operation; text: is required$/u)
      expect((yield* at("")).message).toBe("text: is required")
      expect(yield* at(`{"text":"ok"}`, { ...bearer, "content-type": "" })).toMatchObject({ status: 415 })
      const bare = yield* call("/api/v1/grammar/check", { method: "POST", body: `{"text":"ok"}`, headers: bearer })
      expect(bare.status).toBe(200)
    })
  )

  testing(
    "must not exceed the body limit, by its headers and by its bytes",
    Effect.gen(function* () {
      const { call, account, raw } = yield* host({ bodyLimit: 1_000 })
      const { bearer } = yield* account()
      const large = JSON.stringify({ text: "a".repeat(1_000) })
      const announced = errorOf(yield* call("/api/v1/grammar/check", check(large, { ...bearer, "content-type": "application/json" })))
      expect(announced).toMatchObject({ status: 413, code: "payload_too_large", message: "The request body is larger than 1000 bytes." })
      // Before the key is looked at
      expect(errorOf(yield* call("/api/v1/grammar/check", check(large))).status).toBe(413)
      const chunk = `${(600).toString(16)}\r\n${"a".repeat(600)}\r\n`
      const head = `POST /api/v1/grammar/check HTTP/1.1\r\nHost: x\r\nAuthorization: ${bearer.authorization}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`
      // The rest never comes, and is not waited for
      expect(yield* raw([head, chunk, chunk], /\r\n\r\n.*\}/su)).toMatch(/^HTTP\/1\.1 413 .*payload_too_large/su)
      const exact = JSON.stringify({ text: "a".repeat(1_000 - `{"text":""}`.length) })
      expect((yield* call("/api/v1/grammar/check", check(exact, { ...bearer, "content-type": "application/json" }))).status).toBe(200)
    })
  )
})

describe("the cost", () => {
  testing(
    "must be covered by the balance, and may be limited by the caller",
    Effect.gen(function* () {
      const { call, account, balance, run } = yield* host()
      const poor = yield* account(0.4)
      const short = errorOf(yield* call("/api/v1/bin/457173", { headers: poor.bearer }))
      expect(short).toMatchObject({
        status: 402,
        code: "insufficient_credits",
        message: "This call needs 0.5 credits; 0.4 credits available, 0.1 credits short."
      })
      const rich = yield* account()
      const dear = errorOf(
        yield* call("/api/v1/test/a/work?times=3", check({ how: "at once" }, { ...rich.bearer, "x-max-credits": "5.9" }))
      )
      expect(dear).toMatchObject({ status: 422, code: "cost_exceeds_limit" })
      expect(dear.message).toContain("would cost 6 credits, more than the 5.9 credits")
      expect((yield* balance(rich.accountId)).available).toBe(200_000)
      const fair = yield* call("/api/v1/test/a/work?times=3", check({ how: "at once" }, { ...rich.bearer, "x-max-credits": "6.000" }))
      expect([fair.status, fair.headers["x-credits-charged"]]).toEqual([201, "6"])
      for (const limit of ["", "ten", "1e3", "0.0001", "1, 2", "NaN"]) {
        expect(errorOf(yield* call("/api/v1/bin/457173", { headers: { ...rich.bearer, "x-max-credits": limit } })).code).toBe(
          "invalid_request"
        )
      }
      yield* run(Effect.flatMap(Registration, (registration) => registration.suspend(rich.accountId)))
      expect(errorOf(yield* call("/api/v1/bin/457173", { headers: rich.bearer }))).toMatchObject({ status: 402, code: "account_suspended" })
      expect((yield* call("/api/v1/account/billing", { headers: rich.bearer })).status).toBe(200)
    })
  )

  testing(
    "is refused while the account is in debt",
    Effect.gen(function* () {
      const { call, account, run } = yield* host()
      const { accountId, bearer } = yield* account(0)
      yield* run(
        Effect.gen(function* () {
          const ledger = yield* Ledger
          yield* ledger.execute(
            accountId,
            Decisions.grant({ lotId: "lot_paid", amount: credits(0.5), source: "topup", paymentRef: "pay_1" })
          )
        })
      )
      expect((yield* call("/api/v1/bin/457173", { headers: bearer })).status).toBe(200)
      yield* run(Effect.flatMap(Ledger, (ledger) => ledger.execute(accountId, Decisions.clawBack("lot_paid", credits(0.5)))))
      const owing = errorOf(yield* call("/api/v1/bin/457173", { headers: bearer }))
      expect(owing).toMatchObject({
        status: 402,
        code: "account_in_debt",
        message: "The account owes 0.5 credits; nothing priced runs until that is repaid."
      })
      expect((yield* call("/api/v1/account/billing", { headers: bearer })).json).toMatchObject({ data: { balance: 0, debt: 0.5 } })
    })
  )
})

describe("our failures", () => {
  testing(
    "are refunded, and reveal nothing about upstreams",
    Effect.gen(function* () {
      const { call, account, balance, lines } = yield* host()
      const { accountId, bearer } = yield* account()
      const upstream = errorOf(yield* call("/api/v1/grammar/check", check({ text: "upstream down" }, bearer)))
      expect(upstream).toMatchObject({ status: 503, code: "upstream_unavailable" })
      expect(JSON.stringify(upstream)).not.toMatch(/10\.0\.0\.7|ECONNREFUSED/u)
      const absent = errorOf(yield* call("/api/v1/test/a/work", check({ how: "not configured" }, bearer)))
      expect(absent).toMatchObject({ status: 503, code: "upstream_not_configured" })
      const later = errorOf(yield* call("/api/v1/test/a/work", check({ how: "not now" }, bearer)))
      expect(later).toMatchObject({ status: 503, code: "upstream_unavailable", headers: { "retry-after": "90", "x-should-retry": "true" } })
      const nonsense = errorOf(yield* call("/api/v1/test/a/work", check({ how: "invalid reply" }, bearer)))
      expect(nonsense).toMatchObject({ status: 503, code: "upstream_invalid_reply", headers: { "retry-after": "60" } })
      expect(JSON.stringify(nonsense)).not.toContain("10.0.0.7")
      const bug = errorOf(yield* call("/api/v1/test/a/work", check({ how: "throw" }, bearer)))
      expect(bug).toMatchObject({ status: 500, code: "internal_error" })
      expect(JSON.stringify(bug)).not.toMatch(/a bug in an operation|\.ts/u)
      const logged = lines.map((line) => JSON.parse(line)).find(({ logLevel }) => logLevel === "Error")
      expect(logged).toMatchObject({ requestId: bug.headers["x-request-id"] })
      expect(logged.cause).toContain("a bug in an operation")
      expect(errorOf(yield* call("/api/v1/test/unpriced", { headers: bearer }))).toMatchObject({
        status: 503,
        code: "operation_not_priced"
      })
      expect(yield* balance(accountId)).toMatchObject({ available: 200_000, held: 0 })
    })
  )

  testing(
    "of the store are answered 503 until the store is back",
    Effect.gen(function* () {
      let isDown = false
      const events = Layer.effect(
        EventStore.EventStore,
        Effect.map(MemoryEventStore.make, (store) => {
          const down = Effect.suspend(() =>
            isDown ? Effect.fail(new EventStore.StoreUnavailable({ reason: "/var/lib/secret.db" })) : Effect.void
          )
          return EventStore.EventStore.of({
            ...store,
            append: (...given) => Effect.andThen(down, store.append(...given)),
            lastRevision: (stream) => Effect.andThen(down, store.lastRevision(stream)),
            head: Effect.andThen(down, store.head)
          })
        })
      )
      const { call, account } = yield* host({ events })
      const { bearer } = yield* account()
      isDown = true
      const refused = yield* call("/api/v1/bin/457173", { headers: bearer })
      expect(errorOf(refused)).toMatchObject({ status: 503, code: "store_unavailable" })
      const ready = yield* call("/ready")
      expect([ready.status, ready.headers["x-request-id"] !== undefined]).toEqual([503, true])
      expect(ready.json).toMatchObject({ status: "not_ready", reasons: expect.arrayContaining(["the event store does not answer"]) })
      expect(refused.body + ready.body).not.toContain("secret.db")
      expect((yield* call("/health")).json).toEqual({ status: "alive" })
      isDown = false
      expect((yield* call("/api/v1/bin/457173", { headers: bearer })).status).toBe(200)
      yield* eventually(call("/ready"), ({ status }) => status === 200)
    })
  )
})
