/** How calls end when not all goes its way: clients that leave, a server that stops, a port that is taken. */
import { Deferred, Effect, Exit, Fiber, Layer, Logger, Scope, Stream } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { TestClock } from "effect/testing"
import { describe, expect } from "vitest"
import { Http, Server, WebHandler } from "../src/index.ts"
import { api, eventually, host, send, services, testing } from "./Host.ts"

const silent = Logger.layer([])

const WAIT = { method: "POST", body: { how: "when told" } }

describe("a client that disconnects", () => {
  testing(
    "cancels and refunds a call that is not done",
    Effect.gen(function* () {
      const { url, account, bench, balance, lines, call } = yield* host()
      const { accountId, bearer } = yield* account()
      const abort = new AbortController()
      const left = send(`${url}/api/v1/test/gone/work`, {
        ...WAIT,
        headers: { ...bearer, "idempotency-key": "k" },
        signal: abort.signal
      }).catch(() => "left")
      yield* eventually(
        Effect.sync(() => bench.started),
        (started) => started.length === 1
      )
      expect(yield* balance(accountId)).toMatchObject({ available: 198_000, held: 2_000 })
      abort.abort()
      expect(yield* Effect.promise(() => left)).toBe("left")
      yield* eventually(balance(accountId), ({ available }) => available === 200_000)
      expect(bench.interrupted).toEqual(["gone"])
      yield* eventually(
        Effect.sync(() => lines.map((line) => JSON.parse(line))),
        (logged) => logged.some(({ status }) => status === 499)
      )
      // The key is free again
      yield* Deferred.succeed(bench.finish, undefined)
      expect((yield* call("/api/v1/test/gone/work", { ...WAIT, headers: { ...bearer, "idempotency-key": "k" } })).status).toBe(201)
    })
  )

  testing(
    "causes no hold while its body is still arriving",
    Effect.gen(function* () {
      const { raw, account, log, lines } = yield* host()
      const { bearer } = yield* account()
      const before = (yield* log).length
      const head = `POST /api/v1/grammar/check HTTP/1.1\r\nHost: x\r\nAuthorization: ${bearer.authorization}\r\nContent-Length: 100\r\n`
      // It leaves as soon as it is told to go on
      expect(yield* raw([`${head}Expect: 100-continue\r\n\r\n{"text`], /100 Continue/u)).toContain("100 Continue")
      yield* eventually(
        Effect.sync(() => lines.map((line) => JSON.parse(line))),
        (logged) => logged.some(({ status }) => status === 499 || status === 400)
      )
      expect((yield* log).length).toBe(before)
    })
  )
})

describe("a server that stops", () => {
  testing(
    "refuses new calls, and lets running calls end",
    Effect.gen(function* () {
      const { call, account, bench, handler } = yield* host()
      const { bearer } = yield* account()
      const running = yield* Effect.forkChild(call("/api/v1/test/last/work", { ...WAIT, headers: bearer }))
      yield* eventually(
        Effect.sync(() => bench.started),
        (started) => started.length === 1
      )
      const drained = yield* Effect.forkChild(handler.drain)
      const refused = yield* eventually(call("/health"), ({ status }) => status === 503)
      expect(refused.json).toMatchObject({ error: { code: "shutting_down", request_id: refused.headers["x-request-id"] } })
      expect(refused.headers).toMatchObject({ "retry-after": "1", "x-should-retry": "true" })
      yield* Deferred.succeed(bench.finish, undefined)
      yield* Fiber.join(drained)
      expect(yield* Fiber.join(running)).toMatchObject({ status: 201, headers: { "x-credits-charged": "2" } })
    })
  )

  testing(
    "cancels and refunds calls that exceed the bound, and reports it",
    Effect.gen(function* () {
      const { call, account, bench, handler, balance } = yield* host({ drainWithin: "10 seconds" })
      const { accountId, bearer } = yield* account()
      const running = yield* Effect.forkChild(call("/api/v1/test/late/work", { ...WAIT, headers: bearer }))
      yield* eventually(
        Effect.sync(() => bench.started),
        (started) => started.length === 1
      )
      const drained = yield* Effect.forkChild(handler.drain, { startImmediately: true })
      yield* TestClock.adjust("9999 millis")
      expect(bench.interrupted).toEqual([])
      yield* TestClock.adjust("1 millis")
      yield* Fiber.join(drained)
      expect(bench.interrupted).toEqual(["late"])
      expect(yield* balance(accountId)).toMatchObject({ available: 200_000, held: 0 })
      const answer = yield* Fiber.join(running)
      expect(answer.status).toBe(503)
      expect(answer.json).toMatchObject({ error: { code: "shutting_down" } })
    })
  )

  testing(
    "closes its port, its connections, including kept-alive ones, and its layers",
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { raw, url } = yield* Scope.provide(host(), scope)
      const idle = yield* Effect.forkChild(raw(["GET /health HTTP/1.1\r\nHost: x\r\n\r\n"]), { startImmediately: true })
      yield* Effect.promise(() => send(`${url}/health`))
      yield* Scope.close(scope, Exit.void)
      expect(yield* Fiber.join(idle)).toMatch(/^HTTP\/1\.1 200 /u)
      expect(yield* Effect.promise(() => send(`${url}/health`).catch((error: NodeJS.ErrnoException) => error.code))).toBe("ECONNREFUSED")
    })
  )
})

describe("a download from a server that stops", () => {
  /** A download that has begun, the rest of which comes when the test says so. */
  const begun = Effect.gen(function* () {
    const rest = yield* Deferred.make<void>()
    const interrupted = yield* Deferred.make<void>()
    const bytes = (text: string) => new TextEncoder().encode(text)
    const later = Effect.onInterrupt(Effect.as(Deferred.await(rest), bytes(" b")), () => Deferred.succeed(interrupted, undefined))
    const file = HttpServerResponse.stream(Stream.concat(Stream.succeed(bytes("a")), Stream.fromEffect(later)))
    const handler = yield* WebHandler.make(HttpRouter.add("GET", "/file", file))
    const { url } = yield* Server.listen(handler)
    const response = yield* Effect.promise(() => fetch(`${url}/file`))
    const read = Effect.tryPromise(() => response.text())
    const drained = yield* Effect.forkChild(handler.drain, { startImmediately: true })
    return { rest, interrupted, read, drained }
  })

  testing(
    "ends before the server does",
    Effect.gen(function* () {
      const { drained, read, rest } = yield* begun
      yield* TestClock.adjust("29 seconds")
      expect(drained.pollUnsafe()).toBeUndefined()
      yield* Deferred.succeed(rest, undefined)
      expect(yield* read).toBe("a b")
      yield* Fiber.join(drained)
    })
  )

  testing(
    "is cut off at the bound, so that it does not look complete",
    Effect.gen(function* () {
      const { drained, interrupted, read } = yield* begun
      yield* TestClock.adjust("30 seconds")
      yield* Fiber.join(drained)
      yield* Deferred.await(interrupted)
      expect((yield* Effect.exit(read))._tag).toBe("Failure")
    })
  )
})

describe("a port in use", () => {
  testing(
    "is named in the failure",
    Effect.gen(function* () {
      const { port } = yield* host()
      const error = yield* Effect.flip(host({ server: { port } }))
      expect(error).toMatchObject({ _tag: "CannotListen", host: "127.0.0.1", port, code: "EADDRINUSE" })
      expect(String(error)).toContain(`Cannot listen on 127.0.0.1:${port}: the port is already in use`)
    })
  )
})

describe("without Effect", () => {
  testing(
    "a host gets one function, and a way to close it",
    Effect.gen(function* () {
      const { handle, ready, dispose } = WebHandler.fromLayer(Http.layer(api).pipe(Layer.provide(services()), Layer.provide(silent)))
      // Before all is built, too
      const early = yield* Effect.promise(() => handle(new Request("http://any.example/health")))
      expect(yield* Effect.promise(() => early.json())).toEqual({ status: "alive" })
      yield* Effect.promise(() => ready)
      const head = yield* Effect.promise(() => handle(new Request("http://any.example/health", { method: "HEAD" })))
      expect([head.status, head.body, head.headers.get("content-type")]).toEqual([200, null, "application/json"])
      const unknown = yield* Effect.promise(() => handle(new Request("http://any.example/api/v1/bin/457173")))
      expect(unknown.status).toBe(401)
      yield* Effect.promise(() => Promise.all([dispose(), dispose()]))
      const late = yield* Effect.promise(() => handle(new Request("http://any.example/health")))
      expect(late.status).toBe(503)
    })
  )

  testing(
    "a server is a layer that reports its address",
    Effect.gen(function* () {
      const layer = Server.Server.layer(WebHandler.make(Http.layer(api)), { host: "::1" }).pipe(
        Layer.provide(services()),
        Layer.provide(silent)
      )
      const answered = Effect.gen(function* () {
        const { url } = yield* Server.Server
        return [url, (yield* Effect.promise(() => send(`${url}/ready`))).status] as const
      })
      const [url, status] = yield* Effect.provide(answered, layer)
      expect(url).toMatch(/^http:\/\/\[::1\]:\d+$/u)
      expect(status).toBe(200)
    })
  )
})
