import type { ServerResponse } from "node:http"
import { gzipSync } from "node:zlib"
import { NotFound, UpstreamUnavailable } from "@millrace/core"
import { Effect, Logger } from "effect"
import { describe, expect, test } from "vitest"
import { type Answer, json, nobody, serve } from "./LocalService.ts"
import { configured, good, HERE, ofCallers, run } from "./TestReaders.ts"

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
