import type { ServerResponse } from "node:http"
import { gzipSync } from "node:zlib"
import { NotFound, TraceContext, UpstreamUnavailable } from "@millrace/core"
import { Deferred, Effect, Fiber, Logger, Schema, type Scope, Tracer } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect, test } from "vitest"
import * as PublicReader from "../../src/shared/PublicReader.ts"
import { type Answer, faults, hangs, json, nobody, serve } from "./LocalService.ts"

const HERE = "127.0.0.1"

const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> =>
  Effect.runPromise(Effect.scoped(effect).pipe(Effect.provide(TestClock.layer())))

const Thing = Schema.Struct({ name: Schema.String })

const LIMITS = { upstream: "things", retries: 0, byteLimit: 10_000, timeLimit: "10 seconds" } as const

/** Reads from a service that the host has configured. */
const configured = (base: URL, options: Partial<PublicReader.Options> = {}) =>
  Effect.map(PublicReader.make({ ...LIMITS, base, resolve: nowhere, ...options }), (reader) => {
    const read = reader.json(Thing, "thing")
    return (path = "/thing", request: Partial<PublicReader.Request> = {}) => read({ url: new URL(path, base), ...request })
  })

const nowhere = () => Promise.reject(Object.assign(new Error("getaddrinfo ENOTFOUND"), { code: "ENOTFOUND" }))

/** Reads from callers' hosts. The one address of this machine passes for a public one. `names` are resolved in turn. */
const ofCallers = (
  { port }: URL,
  names: Readonly<Record<string, ReadonlyArray<string>>> = {},
  options: Partial<PublicReader.Options> = {}
) => {
  const asked: Array<string> = []
  const resolve = (name: string) => {
    const turns = names[name]
    const address = turns?.[Math.min(asked.filter((other) => other === name).length, turns.length - 1)]
    asked.push(name)
    return address === undefined ? nowhere() : Promise.resolve([{ address, family: 4 as const }])
  }
  const isAllowed = (address: string) => address === HERE
  return Effect.map(PublicReader.make({ ...LIMITS, isAllowed, resolve, ports: [Number(port)], ...options }), (reader) => {
    const read = reader.json(Thing, "thing")
    return { asked, read: (url: string) => read({ url: new URL(url.replace("PORT", port)) }) }
  })
}

const good = { name: "a thing" }

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

describe("a compressed reply", () => {
  const zipped =
    (bytes: Uint8Array, encoding = "gzip"): Answer =>
    (response) =>
      response.writeHead(200, { "content-encoding": encoding }).end(bytes)

  const text = Buffer.from(JSON.stringify(good))

  test.each([
    ["once", zipped(gzipSync(text))],
    ["twice", zipped(gzipSync(gzipSync(text)), "gzip, gzip")]
  ])("is read, compressed %s", (_, answer) =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(answer)
        const read = yield* configured(service.url)
        expect(yield* read()).toMatchObject({ data: good })
        expect((yield* service.received).headers["accept-encoding"]).toContain("gzip")
      })
    )
  )

  const zeros = Buffer.alloc(50 * 1024 * 1024)

  test.each([
    ["a bomb", zipped(gzipSync(zeros))],
    ["a bomb in a bomb", zipped(gzipSync(gzipSync(zeros)), "gzip, gzip")]
  ])("that is %s is not unpacked beyond the limit", (_, answer) =>
    run(
      Effect.gen(function* () {
        const { url } = yield* serve(answer)
        const read = yield* configured(url)
        const before = process.memoryUsage().arrayBuffers
        expect(yield* Effect.flip(read())).toMatchObject({ reason: "its reply exceeds 10000 bytes", invalidReply: true })
        expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(10 * 1024 * 1024)
      })
    )
  )

  test.each([
    ["cut off", zipped(gzipSync(text).subarray(0, 15))],
    ["not compressed at all", zipped(text)],
    ["compressed too often", zipped(text, Array.from({ length: 20 }, () => "gzip").join(", "))]
  ])("that is %s is unavailable", (_, answer) =>
    run(
      Effect.gen(function* () {
        const { url } = yield* serve(answer)
        const read = yield* configured(url)
        expect(yield* Effect.flip(read())).toBeInstanceOf(UpstreamUnavailable)
      })
    )
  )
})

describe("a redirect", () => {
  /** Answers each path with a redirect to what it says there. */
  const chain = (to: (path: string) => string | undefined) =>
    serve((response, request) => {
      const location = to(request.path)
      if (location === undefined) json(good)(response, request)
      else response.writeHead(301, { location }).end()
    })

  test("is followed up to five times", () =>
    run(
      Effect.gen(function* () {
        const { url } = yield* chain((path) => (Number(path.slice(1)) < 6 ? `/${Number(path.slice(1)) + 1}` : undefined))
        const read = yield* configured(url)
        expect(yield* read("/1")).toMatchObject({ data: good })
        expect(yield* Effect.flip(read("/0"))).toMatchObject({ reason: "it redirects too often" })
      })
    ))

  test("to another host is not sent the host's credentials", () =>
    run(
      Effect.gen(function* () {
        const other = yield* serve(json(good))
        const service = yield* chain(() => `http://other.example:${other.url.port}/`)
        const read = yield* configured(service.url, {
          credentials: { authorization: "Bearer host" },
          resolve: () => Promise.resolve([{ address: HERE, family: 4 }]),
          isAllowed: (address) => address === HERE,
          ports: [Number(other.url.port)]
        })
        expect(yield* read()).toMatchObject({ data: good })
        expect((yield* service.received).headers).toHaveProperty("authorization")
        expect((yield* other.received).headers).not.toHaveProperty("authorization")
      })
    ))

  const forbidden = [
    "http://127.0.0.1/",
    "http://10.0.0.1/",
    "http://169.254.169.254/latest/meta-data/",
    "http://100.64.0.1/",
    "http://[::1]/",
    "http://[::ffff:10.0.0.1]/",
    "http://[64:ff9b::a00:1]/",
    "http://[fd00::1]/",
    "http://2130706433/",
    "http://nowhere.example/",
    "http://93.184.215.14:8080/",
    "http://user:password@93.184.215.14/",
    "ftp://93.184.215.14/",
    "file:///etc/passwd",
    "http://["
  ]

  test.each(forbidden)("of a configured service to %s is not followed", (location) =>
    run(
      Effect.gen(function* () {
        const { url } = yield* chain(() => location)
        const read = yield* configured(url)
        expect(yield* Effect.flip(read())).toMatchObject({ _tag: "UpstreamUnavailable", invalidReply: true })
      })
    )
  )

  test.each(forbidden)("of a caller's host to %s is not followed", (location) =>
    run(
      Effect.gen(function* () {
        const { url } = yield* chain(() => location)
        // Its own address is the only one that passes
        const { read } = yield* ofCallers(url, { "shop.example": [HERE] })
        expect(yield* Effect.flip(read("http://shop.example:PORT/"))).toEqual(new NotFound({ resource: "thing" }))
      })
    )
  )

  test("of a POST is not followed", () =>
    run(
      Effect.gen(function* () {
        const { url } = yield* chain((path) => (path === "/search" ? "/thing" : undefined))
        const read = yield* configured(url)
        expect(yield* Effect.flip(read("/search", { body: {} }))).toMatchObject({ reason: "it answered with status 301" })
      })
    ))
})

describe("a caller's host", () => {
  test("is connected to at the address that was checked, whatever its name leads to later", () =>
    run(
      Effect.gen(function* () {
        const { url } = yield* serve((response, request) =>
          request.path === "/away" ? response.writeHead(302, { location: "/thing" }).end() : json(good)(response, request)
        )
        const { asked, read } = yield* ofCallers(url, { "rebind.example": [HERE, "10.0.0.1"] })
        expect(yield* read("http://rebind.example:PORT/thing")).toMatchObject({ data: good })
        expect(asked).toHaveLength(1)
        expect(yield* Effect.flip(read("http://rebind.example:PORT/other"))).toEqual(new NotFound({ resource: "thing" }))
        const again = yield* ofCallers(url, { "rebind.example": [HERE, "10.0.0.1"] })
        expect(yield* Effect.flip(again.read("http://rebind.example:PORT/away"))).toEqual(new NotFound({ resource: "thing" }))
        expect(again.asked).toHaveLength(2)
      })
    ))

  test.each([
    "http://10.0.0.1:PORT/",
    "http://nowhere.example:PORT/",
    "http://behind.example:PORT/",
    "http://127.0.0.1:1/",
    "ftp://127.0.0.1/"
  ])("such as %s is none", (address) =>
    run(
      Effect.gen(function* () {
        const { url } = yield* serve(json(good))
        const { read } = yield* ofCallers(url, { "behind.example": ["192.168.0.1"] })
        expect(yield* Effect.flip(read(address))).toEqual(new NotFound({ resource: "thing" }))
      })
    )
  )

  test.each([
    ["500", json({}, 500)],
    ["403", json({}, 403)],
    ["429", json({}, 429)],
    ["nothing", (response: ServerResponse) => response.destroy()],
    ["nonsense", (response: ServerResponse) => response.writeHead(200).end("<html>")]
  ])("that answers with %s says nothing of others, and nothing to the log", (_, answer) =>
    run(
      Effect.gen(function* () {
        const lines: Array<unknown> = []
        const log = Logger.layer([Logger.make(({ message }) => void lines.push(message))])
        const { url } = yield* serve(answer)
        const { read } = yield* ofCallers(url)
        const error = yield* Effect.flip(read(`http://${HERE}:PORT/`)).pipe(Effect.provide(log))
        expect(error).toMatchObject({ _tag: "UpstreamUnavailable", isolated: true })
        expect(lines).toEqual([])
      })
    )
  )

  test("whose name servers do not answer is unavailable", () =>
    run(
      Effect.gen(function* () {
        const { read } = yield* ofCallers(yield* nobody, {}, { resolve: () => Promise.reject(new Error("SERVFAIL")) })
        expect(yield* Effect.flip(read("http://shop.example:PORT/"))).toMatchObject({ _tag: "UpstreamUnavailable", isolated: true })
      })
    ))
})
