import type { ServerResponse } from "node:http"
import { NotFound, TraceContext, UpstreamUnavailable } from "@millrace/core"
import { Deferred, Effect, Fiber, Logger, Tracer } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect, test } from "vitest"
import { type Answer, faults, hangs, json, nobody, serve } from "./LocalService.ts"
import { configured, good, LIMITS, run } from "./TestReaders.ts"

const cached =
  (maxAge: number): Answer =>
  (response) =>
    response.writeHead(200, { "cache-control": `max-age=${maxAge}`, etag: '"1"' }).end(JSON.stringify(good))

describe("a read", () => {
  test("is decoded, and answered from the cache for as long as the upstream allows", () =>
    run(
      Effect.gen(function* () {
        const service = yield* serve((response, request) => {
          if (request.headers["if-none-match"] === '"1"') response.writeHead(304, { "cache-control": "max-age=60", etag: '"1"' }).end()
          else cached(60)(response, request)
        })
        const read = yield* configured(service.url)
        expect(yield* read()).toMatchObject({ data: good, cache: "miss" })
        expect(yield* read()).toMatchObject({ data: good, cache: "hit" })
        expect((yield* service.received).headers).not.toHaveProperty("if-none-match")
        yield* TestClock.adjust("61 seconds")
        expect(yield* read()).toMatchObject({ data: good, cache: "miss" })
        expect((yield* service.received).headers).toMatchObject({ "if-none-match": '"1"' })
        // What was confirmed is fresh again
        expect(yield* read()).toMatchObject({ data: good, cache: "hit" })
      })
    ))

  test("that is identical to one in flight is that one", () =>
    run(
      Effect.gen(function* () {
        const goOn = yield* Deferred.make<void>()
        const context = yield* Effect.context<never>()
        const service = yield* serve(
          (response, request) => void Effect.runPromiseWith(context)(Deferred.await(goOn)).then(() => json(good)(response, request))
        )
        const read = yield* configured(service.url)
        const both = yield* Effect.forEach([1, 2], () => Effect.forkChild(read(), { startImmediately: true }))
        const other = yield* Effect.forkChild(read("/thing", { headers: { "accept-language": "nl" } }), { startImmediately: true })
        yield* service.received
        yield* service.received
        yield* Deferred.succeed(goOn, undefined)
        const found = yield* Effect.forEach([...both, other], (fiber) => Fiber.join(fiber))
        expect(found.map(({ cache }) => cache)).toEqual(["miss", "hit", "miss"])
        expect(yield* read()).toMatchObject({ cache: "miss" })
      })
    ))

  test("by POST is sent as JSON, and never kept", () =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(cached(60))
        const read = yield* configured(service.url)
        for (const _ of [1, 2]) {
          expect(yield* read("/search", { body: { q: "a" } })).toMatchObject({ cache: "miss" })
          expect(yield* service.received).toMatchObject({ method: "POST", path: "/search", body: '{"q":"a"}' })
        }
      })
    ))

  test("passes on the caller's trace, and nothing else of the call", () =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(json(good))
        const read = yield* configured(service.url, { credentials: { authorization: "Bearer host" } })
        const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        const caller = TraceContext.fromHeaders({ traceparent })
        yield* caller === undefined ? Effect.die("no trace") : Effect.provideService(read(), Tracer.ParentSpan, caller)
        const { headers } = yield* service.received
        expect(headers).toMatchObject({ traceparent, authorization: "Bearer host", accept: "application/json", "user-agent": "millrace" })
        expect(headers).not.toHaveProperty("cookie")
      })
    ))

  test.each([
    ["502", json(good, 502)],
    ["a connection that is closed", (response: ServerResponse) => response.destroy()]
  ] as const)("is repeated after %s", (_, failure) =>
    run(
      Effect.gen(function* () {
        let asked = 0
        const { url } = yield* serve((...exchange) => (++asked < 3 ? failure(...exchange) : json(good)(...exchange)))
        const read = yield* configured(url, { retries: 2, retryDelay: 0 })
        expect(yield* read()).toMatchObject({ data: good })
        expect(asked).toBe(3)
      })
    )
  )

  test.each([
    ["400", 400],
    ["404", 404],
    ["429", 429]
  ])("is not repeated after %s, nor after nonsense", (_, status) =>
    run(
      Effect.gen(function* () {
        let asked = 0
        const { url } = yield* serve((response, request) => {
          asked++
          request.path === "/nonsense" ? response.writeHead(200).end("<html>") : json(good, status)(response, request)
        })
        const read = yield* configured(url, { retries: 2, retryDelay: 0 })
        yield* Effect.flip(read("/nonsense"))
        yield* Effect.flip(read())
        expect(asked).toBe(2)
      })
    )
  )
})

describe("a configured service", () => {
  test.each(faults(good, LIMITS.byteLimit))("is unavailable if it answers with %s", (_, answer) =>
    run(
      Effect.gen(function* () {
        const { url } = yield* serve(answer)
        const read = yield* configured(url)
        expect(yield* Effect.flip(read())).toBeInstanceOf(UpstreamUnavailable)
      })
    )
  )

  test.each([
    ["something that is not JSON", (response: ServerResponse) => response.writeHead(200).end("<html></html>"), "its reply is malformed"],
    ["JSON of another shape", json({ name: 7 }), "its reply is malformed at name"],
    ["a body that is too large", json({ name: "x".repeat(LIMITS.byteLimit) }), "its reply exceeds 10000 bytes"],
    ["a 304 that nobody asked for", (response: ServerResponse) => response.writeHead(304).end(), "it answered with status 304, unasked"]
  ] as const)("sends an invalid reply with %s", (_, answer, reason) =>
    run(
      Effect.gen(function* () {
        const { url } = yield* serve(answer)
        const read = yield* configured(url)
        expect(yield* Effect.flip(read())).toMatchObject({ _tag: "UpstreamUnavailable", invalidReply: true, reason })
      })
    )
  )

  test.each([404, 410, 451])("that answers with %i has no such thing", (status) =>
    run(
      Effect.gen(function* () {
        const { url } = yield* serve(json({}, status))
        const read = yield* configured(url)
        expect(yield* Effect.flip(read())).toEqual(new NotFound({ resource: "thing" }))
      })
    )
  )

  test.each([401, 403])("that answers with %i is an error in the host's log", (status) =>
    run(
      Effect.gen(function* () {
        const lines: Array<string> = []
        const log = Logger.layer([Logger.make(({ logLevel, message }) => void lines.push(`${logLevel} ${message}`))])
        const { url } = yield* serve(json({}, status))
        const read = yield* configured(url)
        const error = yield* Effect.flip(read()).pipe(Effect.provide(log))
        expect(error).toMatchObject({ _tag: "UpstreamUnavailable", reason: `it answered with status ${status}` })
        expect(lines).toEqual([`Error things refuses this host or its credentials: it answered with status ${status}`])
      })
    )
  )

  test.each([
    ["a time", { "retry-after": "30" }, 30],
    ["no time", {}, 5]
  ])("that serves no more requests, with %s, is left alone for so long, by bucket", (_, headers, seconds) =>
    run(
      Effect.gen(function* () {
        let asked = 0
        const { url } = yield* serve((response, { path }) => {
          asked++
          path === "/limited" && asked === 1 ? response.writeHead(429, headers).end() : response.writeHead(200).end(JSON.stringify(good))
        })
        const read = yield* configured(url)
        const bucket = "search"
        const limited = { _tag: "UpstreamUnavailable", isolated: true }
        expect(yield* Effect.flip(read("/limited", { bucket }))).toMatchObject({ ...limited, retryAfter: seconds })
        yield* TestClock.adjust("2 seconds")
        expect(yield* Effect.flip(read("/limited", { bucket }))).toMatchObject({ ...limited, retryAfter: seconds - 2 })
        expect(asked).toBe(1)
        expect(yield* read("/other")).toMatchObject({ data: good })
        yield* TestClock.adjust(`${seconds - 2} seconds`)
        expect(yield* read("/limited", { bucket })).toMatchObject({ data: good })
      })
    )
  )

  test("that is to be left alone for years is asked again after an hour", () =>
    run(
      Effect.gen(function* () {
        let asked = 0
        const { url } = yield* serve((response) => {
          asked++
          if (asked === 1) response.writeHead(429, { "retry-after": "99999999" }).end()
          else response.writeHead(200).end(JSON.stringify(good))
        })
        const read = yield* configured(url)
        yield* Effect.flip(read("/limited"))
        yield* TestClock.adjust("59 minutes")
        yield* Effect.flip(read("/limited"))
        expect(asked).toBe(1)
        yield* TestClock.adjust("1 minute")
        expect(yield* read("/limited")).toMatchObject({ data: good })
      })
    ))

  test("that is down tells when to come again", () =>
    run(
      Effect.gen(function* () {
        const { url } = yield* serve((response) => response.writeHead(503, { "retry-after": "120" }).end())
        const read = yield* configured(url)
        expect(yield* Effect.flip(read())).toMatchObject({ _tag: "UpstreamUnavailable", retryAfter: 120 })
      })
    ))

  test("that cannot be reached is unavailable", () =>
    run(
      Effect.gen(function* () {
        const read = yield* configured(yield* nobody)
        const error = yield* Effect.flip(read("/secret"))
        expect(error).toBeInstanceOf(UpstreamUnavailable)
        expect(JSON.stringify(error)).not.toContain("secret")
      })
    ))

  test.each([...hangs(good), ["between two drips", (response: ServerResponse) => drip(response)] as const])(
    "that hangs %s longer than allowed is unavailable, and the connection is closed",
    (_, answer) =>
      run(
        Effect.gen(function* () {
          const service = yield* serve(answer)
          const read = yield* configured(service.url, { retries: 2 })
          const asked = yield* Effect.forkChild(Effect.flip(read()), { startImmediately: true })
          yield* service.received
          yield* TestClock.adjust("10 seconds")
          expect(yield* Fiber.join(asked)).toMatchObject({ _tag: "UpstreamUnavailable" })
          yield* service.abandoned
        })
      )
  )
})

/** A byte now and then, for ever. */
const drip = (response: ServerResponse): void => {
  response.writeHead(200)
  const next = () => void (response.destroyed || response.write(" ", () => setImmediate(next)))
  next()
}
