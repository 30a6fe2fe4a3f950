/** What nobody should send. Whatever it is, it is answered or cut off, never served, and the next request is. */
import { Effect } from "effect"
import { describe, expect } from "vitest"
import { eventually, type Host, host as hostWith, type Options, testing } from "./Host.ts"

/** The answers in what a connection gave back. */
const answersIn = (text: string) =>
  text
    .split(/(?=HTTP\/1\.1 \d{3} )/u)
    .filter((part) => part !== "")
    .map((part) => {
      const [head = "", body = ""] = part.split("\r\n\r\n")
      return { status: Number(head.slice(9, 12)), id: /^x-request-id: (.+)$/imu.exec(head)?.[1], body, head }
    })

const isWell = ({ call }: Host) => Effect.map(call("/health"), ({ status }) => status === 200)

/** Each test is run with the direct way of plain calls and without it. */
describe.each([true, false])("with direct answers: %s", (direct) => {
  const host = (options: Options = {}) => hostWith({ ...options, direct })

  describe("on the wire", () => {
    testing(
      "bytes that are no HTTP get an error object and a closed connection",
      Effect.gen(function* () {
        const it = yield* host()
        const nonsense = [
          "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a handshake\r\n\r\n",
          "FOO /health HTTP/1.1\r\n\r\n",
          "GET /health HTTP/1.1\r\nBad Header: x\r\n\r\n",
          "GET /health HTTP/1.1\r\nX: a\0b\r\n\r\n",
          "GET /he\0alth HTTP/1.1\r\n\r\n",
          "GET /health HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
          // Two lengths for one body: https://datatracker.ietf.org/doc/html/rfc9112#section-11.2
          "POST /health HTTP/1.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
          "POST /health HTTP/1.1\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
          "POST /health HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n"
        ]
        for (const bytes of nonsense) {
          const answer = answersIn(yield* it.raw([Buffer.from(bytes, "latin1")])).at(-1)
          expect([bytes, answer?.status]).toEqual([bytes, 400])
          expect(JSON.parse(answer?.body ?? "")).toMatchObject({ error: { code: "bad_request", request_id: answer?.id } })
        }
        expect(yield* isWell(it)).toBe(true)
      })
    )

    testing(
      "a request of HTTP/1.1 must have exactly one host",
      Effect.gen(function* () {
        const it = yield* host()
        const ask = (line: string, ...hosts: ReadonlyArray<string>) =>
          Effect.map(it.raw([[line, ...hosts, "Connection: close", "", ""].join("\r\n")]), (text) => answersIn(text)[0])
        for (const hosts of [[], ["Host: a", "Host: a"], ["Host: a", "host: b"]]) {
          const answer = yield* ask("GET /health HTTP/1.1", ...hosts)
          expect([hosts, answer?.status]).toEqual([hosts, 400])
          expect(JSON.parse(answer?.body ?? "")).toMatchObject({ error: { code: "bad_request", request_id: answer?.id } })
        }
        expect((yield* ask("GET /health HTTP/1.1", "Host: a"))?.status).toBe(200)
        expect((yield* ask("GET /health HTTP/1.0"))?.status).toBe(200)
      })
    )

    testing(
      "headers are limited in size",
      Effect.gen(function* () {
        const it = yield* host()
        const many = Array.from({ length: 3_000 }, (_, i) => `x-${i}: ${i}\r\n`).join("")
        for (const headers of [`x: ${"a".repeat(20_000)}\r\n`, many]) {
          const [answer] = answersIn(yield* it.raw([`GET /health HTTP/1.1\r\n${headers}\r\n`]))
          expect(answer?.status).toBe(431)
          expect(JSON.parse(answer?.body ?? "")).toMatchObject({ error: { code: "headers_too_large", request_id: answer?.id } })
        }
        const [long] = answersIn(yield* it.raw([`GET /${"a".repeat(20_000)} HTTP/1.1\r\n\r\n`]))
        expect(long?.status).toBe(431)
        expect(yield* isWell(it)).toBe(true)
      })
    )

    testing(
      "a slow client is cut off, in its headers and in its body",
      Effect.gen(function* () {
        const it = yield* host({ server: { headersTimeout: "200 millis", requestTimeout: "400 millis" } })
        const { bearer } = yield* it.account()
        const before = (yield* it.log).length
        const [slow] = answersIn(yield* it.raw(["GET /health HTTP/1.1\r\nX: "]))
        expect(slow?.status).toBe(408)
        expect(JSON.parse(slow?.body ?? "")).toMatchObject({ error: { code: "request_timeout", request_id: slow?.id } })
        const head = `POST /api/v1/grammar/check HTTP/1.1\r\nHost: x\r\nAuthorization: ${bearer.authorization}\r\nContent-Length: 100\r\n\r\n`
        const [half] = answersIn(yield* it.raw([head, `{"text":`]))
        expect(half?.status).toBe(408)
        expect((yield* it.log).length).toBe(before)
        expect(yield* isWell(it)).toBe(true)
      })
    )

    testing(
      "pipelined requests are answered in order",
      Effect.gen(function* () {
        const it = yield* host()
        const { bearer } = yield* it.account()
        const get = (path: string, more = "") => `GET ${path} HTTP/1.1\r\nHost: x\r\n${more}\r\n`
        const body = `{"text":"Oh"}`
        const post = `POST /api/v1/grammar/check HTTP/1.1\r\nHost: x\r\nAuthorization: ${bearer.authorization}\r\nContent-Length: ${body.length}\r\n\r\n${body}`
        // A body that nobody reads must not become the next request
        const unread = `POST /api/v1/grammar/check HTTP/1.1\r\nHost: x\r\nContent-Length: ${get("/health").length}\r\n\r\n${get("/health")}`
        const close = get("/nowhere", "Connection: close\r\n")
        const answers = answersIn(
          yield* it.raw([get("/health") + post + unread + get("/api/v1/bin/457173", `Authorization: ${bearer.authorization}\r\n`) + close])
        )
        expect(answers.map(({ status }) => status)).toEqual([200, 200, 401, 200, 404])
        expect(new Set(answers.map(({ id }) => id)).size).toBe(5)
      })
    )

    testing(
      "only the first of repeated singleton headers counts",
      Effect.gen(function* () {
        const it = yield* host()
        const { bearer } = yield* it.account()
        const ask = (...headers: ReadonlyArray<string>) =>
          Effect.map(
            it.raw([`GET /api/v1/bin/457173 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${headers.join("\r\n")}\r\n\r\n`]),
            (text) => answersIn(text)[0]?.status
          )
        const good = `Authorization: ${bearer.authorization}`
        expect(yield* ask(good, "Authorization: Bearer x")).toBe(200)
        expect(yield* ask("Authorization: Bearer x", good)).toBe(401)
        expect(yield* ask(good, "Idempotency-Key: a", "Idempotency-Key: b")).toBe(422)
        expect(yield* ask(good, "X-Max-Credits: 1000", "X-Max-Credits: 0")).toBe(422)
        expect(yield* ask(good, "Expect: something-else")).toBe(200)
        expect(yield* ask(good, "Upgrade: websocket", "Connection: upgrade")).toBe(200)
      })
    )
  })

  describe("in the path", () => {
    testing(
      "hostile paths neither fail nor reach other routes",
      Effect.gen(function* () {
        const it = yield* host()
        const { bearer } = yield* it.account()
        const ask = (target: string) =>
          Effect.map(
            it.raw([
              Buffer.from(
                `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: ${bearer.authorization}\r\n\r\n`,
                "latin1"
              )
            ]),
            (text) => answersIn(text)[0]?.status
          )
        const expected: Record<string, number> = {
          "/api/v1/bin/%zz": 404,
          "/api/v1/bin/%": 404,
          "/api/v1/bin/%ff%fe": 404,
          "/api/v1/bin/%00": 422,
          "/api/v1/bin/457173%00": 422,
          "/api/v1/bin/457173%0d%0aX-Injected:1": 422,
          "/api/v1/bin/..%2f..%2fready": 422,
          "/api/v1/bin/%2e%2e": 404,
          "/api/v1/bin/../account/billing": 200,
          "/api/v1/bin/457173?%zz=%zz&__proto__=1&constructor[]=1&bin=000000": 200,
          "/api/v1/bin/457173;bin=000000": 200,
          "/api/v1/bin/457173#bin=000000": 200,
          "/api/v1/bin/١٢٣٤٥٦": 422,
          [`/api/v1/bin/${"1".repeat(8_000)}`]: 422,
          [`/api/v1/bin/${"1".repeat(9_000)}`]: 404,
          // A backslash is no slash
          "/api/v1\\bin/457173": 404,
          "/api/v1/bin\\457173": 404,
          "\\api\\v1\\bin\\457173": 400,
          "/api/v1/bin/45717\\3": 422,
          "http://evil.example/api/v1\\bin/457173": 404,
          "/api/v1/bin/457173?\\": 200,
          "//evil.example/health": 404,
          "http://evil.example/health": 200,
          "http://evil.example:99999/health": 404,
          "*": 404
        }
        for (const [target, status] of Object.entries(expected))
          expect([target.slice(0, 80), yield* ask(target)]).toEqual([target.slice(0, 80), status])
      })
    )
  })

  describe("in the body", () => {
    testing(
      "any bytes get a success or an error object of the caller's",
      Effect.gen(function* () {
        const it = yield* host()
        const { bearer } = yield* it.account(10_000)
        // A linear congruential generator: the same bytes each time
        let seed = 42
        const next = (below: number) => {
          seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
          return seed % below
        }
        const pieces = [
          `{"text":`,
          `"ok"`,
          `"\\u0000"`,
          "\0",
          "{",
          "}",
          "[",
          "]",
          ",",
          ":",
          `"language"`,
          `"en"`,
          "1e999",
          "-0",
          "null",
          "\\ud800",
          `"\\ud800"`,
          " ",
          "\xff"
        ]
        for (let i = 0; i < 300; i++) {
          const body = Buffer.from(Array.from({ length: 1 + next(8) }, () => pieces[next(pieces.length)]).join(""), "latin1")
          const { status, headers, json } = yield* it.call("/api/v1/grammar/check", { method: "POST", body, headers: bearer })
          expect([200, 422]).toContain(status)
          if (status === 422) expect(json).toMatchObject({ error: { request_id: headers["x-request-id"] } })
        }
        const nul = yield* it.call("/api/v1/grammar/check", { method: "POST", headers: bearer, body: { text: "\0A\ud800" } })
        expect(nul.json).toMatchObject({ data: { matches: [{ offset: 1 }] }, request: { input: { text: "\0A\ud800" } } })
      })
    )
  })

  describe("secrets", () => {
    testing(
      "appear in no log line and no event",
      Effect.gen(function* () {
        const it = yield* host()
        const { key, bearer } = yield* it.account()
        const canary = "canary-7f3a"
        const headers = {
          ...bearer,
          "idempotency-key": canary,
          "user-agent": canary,
          cookie: canary,
          "x-request-id": "fine",
          "x-other": canary
        }
        let posts = 0
        const post = (path: string, body: string | object, more = {}) =>
          it.call(path, { method: "POST", headers: { ...headers, "idempotency-key": `${canary}-${posts++}`, ...more }, body })
        yield* post(`/api/v1/test/${canary}/work?tag=${canary}`, { how: "at once", password: canary, image: canary, deep: { a: canary } })
        yield* post(`/api/v1/test/${canary}/work`, { how: canary, [canary]: canary })
        yield* post(`/api/v1/test/${canary}/work`, { how: "throw", password: canary })
        yield* post(`/api/v1/test/${canary}/work`, `{"how":"${canary}`, { "content-type": "application/json" })
        yield* post(`/api/v1/test/${canary}/work`, canary, { "content-type": canary })
        yield* post(`/api/v1/${canary}?q=${canary}`, { canary })
        yield* post("/api/v1/grammar/check", { text: "upstream down", language: "en" })
        yield* post("/api/v1/grammar/check", { text: canary, language: canary.slice(0, 8) })
        yield* it.call("/api/v1/bin/457173", { headers: { ...headers, authorization: `Bearer ${canary}` } })
        yield* it.call("/api/v1/bin/457173", { method: "PATCH", headers })
        const { "idempotency-key": _, ...plain } = headers
        for (const path of [`/api/v1/open/${canary}?q=${canary}`, `/api/v1/content/prompts/topics?q=${canary}`])
          expect((yield* it.call(path, { headers: plain })).status).toBe(200)
        expect(it.answered.direct).toBe(direct ? 2 : 0)
        yield* it.raw([`GET /${canary} HTTP/1.1\r\nAuthorization: ${canary}\r\nBad Header: ${canary}\r\n\r\n`])
        const events = (yield* it.log).map((event) => JSON.stringify(event))
        yield* eventually(
          Effect.sync(() => it.lines.length),
          (lines) => lines >= 13
        )
        for (const line of [...it.lines, ...events]) {
          expect(line).not.toContain(canary)
          expect(line).not.toContain(key.slice(-36))
        }
        const allowed = new Set([
          "logLevel",
          "message",
          "cause",
          "method",
          "route",
          "status",
          "durationMs",
          "requestId",
          "correlationId",
          "accountId",
          "charged"
        ])
        for (const line of it.lines) expect(Object.keys(JSON.parse(line)).filter((field) => !allowed.has(field))).toEqual([])
      })
    )
  })
})
