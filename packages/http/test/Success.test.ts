/** What a success looks like: envelope, echo, headers, and the contract that a typed client and OpenAPI read. */

import { Operation } from "@millrace/core"
import { Effect, Schema } from "effect"
import { FetchHttpClient, HttpClient, HttpClientRequest } from "effect/http"
import { HttpApiClient, OpenApi } from "effect/http-api"
import { describe, expect, expectTypeOf, test } from "vitest"
import { Api } from "../src/index.ts"
import { api, host, testing } from "./Host.ts"

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/u

describe("an answer", () => {
  testing(
    "wraps the data, echoes the call, and reports its cost",
    Effect.gen(function* () {
      const { call, account } = yield* host()
      const { bearer } = yield* account()
      const { status, headers, json } = yield* call("/api/v1/bin/457173", { headers: bearer })
      const id = headers["x-request-id"]
      expect(id).toMatch(UUID)
      expect(status).toBe(200)
      expect(json).toEqual({
        status: "success",
        data: { bin: "457173", scheme: "visa", type: "debit", brand: null, country: null, bank: null },
        request: { id, method: "GET", path: "/api/v1/bin/457173", input: { bin: "457173" } }
      })
      expect(headers).toMatchObject({
        "content-type": "application/json",
        "cache-control": "private, no-store",
        "x-content-type-options": "nosniff",
        "x-credits-charged": "0.5",
        "x-credits-balance": "199.5",
        "ratelimit-policy": `"burst";q=10000;w=60`,
        ratelimit: `"burst";r=9999;t=60`
      })
    })
  )

  testing(
    "from a cache says so, and is charged like any other",
    Effect.gen(function* () {
      const { call, account } = yield* host()
      const { bearer } = yield* account()
      const asked = (how: string) =>
        call("/api/v1/test/a/work", {
          method: "POST",
          headers: { ...bearer, "content-type": "application/json", "idempotency-key": how.replace(" ", "-") },
          body: JSON.stringify({ how })
        })
      const { headers } = yield* asked("from cache")
      expect(headers).toMatchObject({ "x-cache": "hit", "x-credits-charged": (yield* asked("at once")).headers["x-credits-charged"] })
      // A replay asks neither the upstream nor the cache
      expect((yield* asked("from cache")).headers).not.toHaveProperty("x-cache")
      expect((yield* asked("at once")).headers).not.toHaveProperty("x-cache")
    })
  )

  testing(
    "of a free operation costs nothing, and echoes [] without input",
    Effect.gen(function* () {
      const { call, account } = yield* host()
      const { accountId, bearer } = yield* account(12.345)
      const { status, headers, json } = yield* call("/api/v1/account/billing?unknown=1", { headers: bearer })
      expect(status).toBe(200)
      expect(json).toEqual({
        status: "success",
        data: {
          balance: 12.345,
          held: 0,
          debt: 0,
          lots: [{ lot_id: `lot_${accountId}`, source: "promotion", remaining: 12.345, expires_at: null }],
          usage: expect.objectContaining({ month: "1970-01", calls: 0, operations: [] })
        },
        request: { id: headers["x-request-id"], method: "GET", path: "/api/v1/account/billing", input: [] }
      })
      expect(headers).toMatchObject({ "x-credits-charged": "0", "x-credits-balance": "12.345", "cache-control": "private, no-store" })
    })
  )

  testing(
    "echoes the decoded path, query and body together, without secrets and inline data",
    Effect.gen(function* () {
      const { call, account } = yield* host()
      const { bearer } = yield* account()
      const { status, headers, json } = yield* call("/api/v1/test/caf%C3%A9/work?times=3&tag[]=a&tag=b&other=x", {
        method: "POST",
        headers: { ...bearer, "content-type": "application/vnd.example+json; charset=UTF-8" },
        body: JSON.stringify({ how: "at once", password: "hunter2", image: "data:image/png;base64,AAAA", deep: { password: ["x"], ok: 1 } })
      })
      expect(status).toBe(201)
      expect(json).toMatchObject({
        data: { room: "café", times: 3 },
        request: {
          path: "/api/v1/test/caf%C3%A9/work",
          input: {
            room: "café",
            times: 3,
            tag: ["a", "b"],
            how: "at once",
            password: "***",
            image: "***",
            deep: { password: "***", ok: 1 }
          }
        }
      })
      expect(headers).toMatchObject({ "x-credits-charged": "6", "x-credits-balance": "194" })
    })
  )

  testing(
    "logs an inbound request id and uses it for nothing else",
    Effect.gen(function* () {
      const { call, lines } = yield* host()
      for (const sent of ["mine-1=", "x".repeat(256), "no spaces here"]) {
        const { headers } = yield* call("/health", { headers: { "x-request-id": sent } })
        expect(headers["x-request-id"]).toMatch(UUID)
      }
      expect(lines.map((line) => JSON.parse(line).correlationId)).toEqual(["mine-1=", undefined, undefined])
    })
  )

  testing(
    "takes the method from the request line alone",
    Effect.gen(function* () {
      const { call, account } = yield* host()
      const { bearer } = yield* account()
      const headers = { ...bearer, "x-http-method-override": "DELETE", "x-http-method": "DELETE", "x-method-override": "DELETE" }
      const { status, json } = yield* call("/api/v1/bin/457173?_method=DELETE", { headers })
      expect(status).toBe(200)
      expect(json).toMatchObject({ request: { method: "GET" } })
    })
  )
})

describe("the contract", () => {
  testing(
    "serves a client that is typed by the operations",
    Effect.gen(function* () {
      const { account, url } = yield* host()
      const { key } = yield* account()
      const client = yield* HttpApiClient.make(api.contract, {
        baseUrl: url,
        transformClient: HttpClient.mapRequest(HttpClientRequest.bearerToken(key))
      }).pipe(Effect.provide(FetchHttpClient.layer))
      const { data, request } = yield* client.lookups["bin.lookup"]({ params: { bin: "457173" } })
      expectTypeOf(data.scheme).toEqualTypeOf<string>()
      expect([data.scheme, request.method]).toEqual(["visa", "GET"])
      const checked = yield* client.lookups["grammar.check"]({ payload: { text: "Oh" } })
      expect(checked.data.matches[0]?.offset).toBe(0)
      const billing = yield* client.account["account.billing"]({})
      expect(billing.data.balance).toBe(198_500)
      const worked = yield* client.test["test.work"]({ params: { room: "a" }, query: { times: 2 }, payload: { how: "at once" } })
      expect(worked.data).toEqual({ room: "a", times: 2 })
      const refused = yield* Effect.flip(
        client.test["test.work"]({ params: { room: "a" }, query: { times: 9 }, payload: { how: "throw" } })
      )
      expect(refused).toMatchObject({ error: { code: "internal_error" } })
      expect(yield* client.system.health()).toEqual({ status: "alive" })
      expect(yield* client.system.ready()).toMatchObject({ status: "ready" })
    })
  )

  testing(
    "describes exactly the served operations in OpenAPI",
    Effect.gen(function* () {
      const { call } = yield* host()
      const document = OpenApi.fromApi(api.contract)
      const places = Object.entries(document.paths).flatMap(([path, item]) =>
        Object.keys(item).map((method) => ({ method: method.toUpperCase(), path }))
      )
      const operations = api.operations.map(({ route }) => `${route.method} /api/v1${route.path.replaceAll(/:(\w+)/gu, "{$1}")}`)
      expect(places.map(({ method, path }) => `${method} ${path}`).sort()).toEqual(
        [...operations, "GET /health", "GET /ready", "GET /api/v1/openapi.json", "GET /api/v1/account/events"].sort()
      )
      const keyless: Record<string, number> = {
        "/health": 200,
        "/ready": 200,
        "/api/v1/openapi.json": 200,
        "/api/v1/open/{word}": 200,
        "/api/v1/mispriced": 500,
        "/api/v1/catalog/capabilities/{key}": 404
      }
      for (const { method, path } of places) {
        const { status } = yield* call(path.replaceAll(/\{\w+\}/gu, "123456"), { method })
        expect([method, path, status]).toEqual([method, path, keyless[path] ?? (path.startsWith("/api/v1/catalog") ? 200 : 401)])
        const other = yield* call(path.replaceAll(/\{\w+\}/gu, "123456"), { method: "PATCH" })
        expect([other.status, other.headers["allow"]?.split(", ")]).toEqual([405, expect.arrayContaining([method])])
      }
      const operation = document.paths["/api/v1/bin/{bin}"]?.get
      expect(operation?.operationId).toBe("bin.lookup")
      const statuses = "200 400 401 402 403 404 405 408 409 413 422 429 431 500 503"
      expect(Object.keys(operation?.responses ?? {}).join(" ")).toBe(statuses)
    })
  )
})

describe("an API", () => {
  test("refuses operations that share a key or a route", () => {
    expect(Api.make(Api.standard).operations.map(({ key }) => key)).toEqual(
      Object.values(Api.standard).flatMap(({ operations }) => operations.map(({ key }) => key))
    )
    const like = (key: string, path: `/${string}`, params = {}) =>
      Operation.make(key, {
        summary: "",
        route: { method: "GET", path, params },
        success: Schema.Struct({}),
        run: () => Effect.succeed({ data: {} })
      })
    expect(() => Api.make({ ...Api.standard, mine: Api.group([like("bin.lookup", "/mine")]) })).toThrow(
      "Two operations share the key bin.lookup"
    )
    expect(() => Api.make({ ...Api.standard, mine: Api.group([like("mine", "/bin/:number", { number: Schema.String })]) })).toThrow(
      "bin.lookup and mine share GET /bin/:number"
    )
  })
})

describe("browsers", () => {
  testing(
    "may call only from a named origin",
    Effect.gen(function* () {
      const closed = yield* host()
      const preflight = { method: "OPTIONS", headers: { origin: "https://app.example", "access-control-request-method": "POST" } }
      const refused = yield* closed.call("/api/v1/grammar/check", preflight)
      expect([refused.status, refused.headers["access-control-allow-origin"]]).toEqual([405, undefined])

      const open = yield* host({ cors: { origins: ["https://app.example", "https://other.example"] } })
      const allowed = yield* open.call("/api/v1/grammar/check", preflight)
      expect(allowed.status).toBe(204)
      expect(allowed.headers).toMatchObject({ "access-control-allow-origin": "https://app.example" })
      expect(allowed.headers["access-control-allow-headers"]).toContain("Idempotency-Key")
      expect(allowed.headers["x-request-id"]).toMatch(UUID)
      const stranger = yield* open.call("/health", { headers: { origin: "https://evil.example" } })
      expect(stranger.headers["access-control-allow-origin"]).toBeUndefined()
      const error = yield* open.call("/nowhere", { headers: { origin: "https://app.example" } })
      expect([error.status, error.headers["access-control-allow-origin"]]).toEqual([404, "https://app.example"])
      expect(error.headers["access-control-expose-headers"]).toContain("X-Request-Id")
    })
  )
})
