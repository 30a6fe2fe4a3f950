import { createServer, type ServerResponse } from "node:http"
import { UpstreamUnavailable } from "@millrace/core"
import { Effect, Fiber, type Scope } from "effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { describe, expect, test } from "vitest"
import * as SafeFetch from "../../src/shared/SafeFetch.ts"
import { nobody, serve } from "./LocalService.ts"

const HERE = "127.0.0.1"

const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> =>
  Effect.runPromise(Effect.scoped(effect).pipe(Effect.provide(TestClock.layer())))

/** Names as a test has them; `asked` are those that were resolved. */
const names = (answers: Readonly<Record<string, ReadonlyArray<ReadonlyArray<string>>>>) => {
  const asked: Array<string> = []
  const resolve = (name: string): Promise<ReadonlyArray<SafeFetch.Address>> => {
    const turns = answers[name]
    const addresses = turns?.[Math.min(asked.filter((other) => other === name).length, turns.length - 1)]
    asked.push(name)
    return addresses === undefined
      ? Promise.reject(Object.assign(new Error("getaddrinfo ENOTFOUND"), { code: "ENOTFOUND" }))
      : Promise.resolve(addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })))
  }
  return { asked, resolve }
}

const reader = (options: Partial<SafeFetch.Options> = {}) =>
  SafeFetch.make({ field: "image_url", accept: "image/png", byteLimit: 1_000, timeLimit: "10 seconds", ...options })

/** Where the one address of this host passes for a public one. */
const local = ({ port }: URL, options: Partial<SafeFetch.Options> = {}) =>
  reader({ isAllowed: (address) => address === HERE, ports: [Number(port)], ...options })

const text = Effect.map((bytes: Uint8Array) => Buffer.from(bytes).toString())

const hello = (response: ServerResponse) => response.writeHead(200).end("hello")

const invalid = (message: string) => ({ _tag: "InvalidInput", field: "image_url", message: `image_url ${message}` })

const NOT_PUBLIC = invalid("must lead to a public address")

describe("the content at an address", () => {
  test("is read from the address that its name was resolved to, once", () =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(hello)
        const { asked, resolve } = names({ "pictures.example": [[HERE]] })
        const read = local(service.url, { resolve })
        expect(yield* text(read(`http://pictures.example:${service.url.port}/a?b=c#d`))).toBe("hello")
        const request = yield* service.received
        expect(request).toMatchObject({
          method: "GET",
          path: "/a?b=c",
          headers: { host: `pictures.example:${service.url.port}`, accept: "image/png", "accept-encoding": "identity" }
        })
        expect(Object.keys(request.headers).sort()).toEqual(["accept", "accept-encoding", "connection", "host", "user-agent"])
        expect(asked).toEqual(["pictures.example"])
      })
    ))

  test("is not read elsewhere if the name changes meanwhile", () =>
    run(
      Effect.gen(function* () {
        const service = yield* serve((response, { path }) =>
          path === "/first" ? hello(response) : response.writeHead(302, { location: "/first" }).end()
        )
        // To be checked it is here, from then on it is behind
        const { asked, resolve } = names({ "rebind.example": [[HERE], ["10.0.0.1"]] })
        const read = local(service.url, { resolve })
        const at = (path: string) => `http://rebind.example:${service.url.port}${path}`
        expect(yield* text(read(at("/first")))).toBe("hello")
        expect(asked).toHaveLength(1)
        expect(yield* Effect.flip(read(at("/first")))).toMatchObject(NOT_PUBLIC)
        const again = names({ "rebind.example": [[HERE], ["10.0.0.1"]] })
        expect(yield* Effect.flip(local(service.url, { resolve: again.resolve })(at("/second")))).toMatchObject(NOT_PUBLIC)
        expect(again.asked).toHaveLength(2)
      })
    ))

  test("is not read if any address of its name is not public", () =>
    run(
      Effect.gen(function* () {
        const { asked, resolve } = names({ "both.example": [["93.184.215.14", "10.0.0.1"]], "none.example": [[]] })
        const read = reader({ resolve })
        expect(yield* Effect.flip(read("http://both.example/"))).toMatchObject(NOT_PUBLIC)
        expect(yield* Effect.flip(read("http://none.example/"))).toMatchObject(NOT_PUBLIC)
        expect(yield* Effect.flip(read("http://missing.example/"))).toMatchObject(NOT_PUBLIC)
        expect(asked).toEqual(["both.example", "none.example", "missing.example"])
      })
    ))

  test("is not read from this host by any of its names", () =>
    run(
      Effect.gen(function* () {
        const { url } = yield* serve(hello)
        const read = reader({ ports: [Number(url.port)] })
        for (const host of [
          "localhost",
          "127.0.0.1",
          "[::1]",
          "[::ffff:127.0.0.1]",
          "0.0.0.0",
          "[::]",
          "127.1",
          "2130706433",
          "0x7f.1",
          "017700000001"
        ])
          expect([host, yield* Effect.flip(read(`http://${host}:${url.port}/`))]).toMatchObject([host, NOT_PUBLIC])
      })
    ))
})

const nowhere = () => Promise.reject(new Error("nothing may be resolved"))

/** Ways to write an IPv4 address in an address of the web. */
const forms = fc.nat(0xffffffff).chain((value) => {
  const parts = [24, 16, 8, 0].map((shift) => (value >>> shift) & 255)
  const [a = 0, b = 0, c = 0, d = 0] = parts
  const write = fc.constantFrom(
    (part: number) => String(part),
    (part: number) => `0x${part.toString(16)}`,
    (part: number) => `0X${part.toString(16).toUpperCase()}`,
    (part: number) => `0${part.toString(8)}`
  )
  const written = (numbers: ReadonlyArray<number>) =>
    fc.tuple(...numbers.map((number) => write.map((how) => how(number)))).map((texts) => texts.join("."))
  return fc.record({
    address: fc.constant(parts.join(".")),
    text: fc
      .oneof(written([value]), written([a, value & 0xffffff]), written([a, b, value & 0xffff]), written([a, b, c, d]))
      .chain((text) =>
        fc.constantFrom(
          text,
          `${text}.`,
          [...text].map((sign) => (/\d/u.test(sign) ? String.fromCodePoint(0xff10 + Number(sign)) : sign)).join("")
        )
      )
  })
})

describe("an address", () => {
  test("of numbers is checked in its normal form, without resolving", () =>
    fc.assert(
      fc.asyncProperty(forms, async ({ address, text }) => {
        const checked: Array<string> = []
        const isAllowed = (candidate: string) => {
          checked.push(candidate)
          return false
        }
        const error = await run(Effect.flip(reader({ isAllowed, resolve: nowhere })(`http://${text}/`)))
        expect([error, checked]).toMatchObject([NOT_PUBLIC, [address]])
      }),
      { seed: 1, numRuns: 200 }
    ))

  test("of IPv6 is checked in its normal form", () =>
    fc.assert(
      fc.asyncProperty(fc.ipV6(), async (address) => {
        const checked: Array<string> = []
        const isAllowed = (candidate: string) => {
          checked.push(candidate)
          return false
        }
        const error = await run(Effect.flip(reader({ isAllowed, resolve: nowhere })(`https://[${address}]/`)))
        expect(error).toMatchObject(NOT_PUBLIC)
        expect(checked.map((candidate) => new URL(`http://[${candidate}]/`).hostname)).toEqual([new URL(`http://[${address}]/`).hostname])
      }),
      { seed: 1, numRuns: 200 }
    ))

  test("beyond ASCII is resolved in its DNS form", () =>
    run(
      Effect.gen(function* () {
        const { asked, resolve } = names({})
        for (const name of ["bücher.example", "ＥＸＡＭＰＬＥ.com", "例え.テスト", "ⓛocalhost", "EXAMPLE.com."])
          expect(yield* Effect.flip(reader({ resolve })(`http://${name}/`))).toMatchObject(NOT_PUBLIC)
        expect(asked).toEqual(["xn--bcher-kva.example", "example.com", "xn--r8jz45g.xn--zckzah", "localhost", "example.com."])
      })
    ))

  test.each([
    ["", "must be an http or https address"],
    ["pictures.example/a.png", "must be an http or https address"],
    ["//pictures.example/a.png", "must be an http or https address"],
    ["ftp://pictures.example/", "must be an http or https address"],
    ["file:///etc/passwd", "must be an http or https address"],
    ["data:image/png;base64,AAAA", "must be an http or https address"],
    ["javascript:alert(1)", "must be an http or https address"],
    ["gopher://127.0.0.1:6379/_FLUSHALL", "must be an http or https address"],
    ["ws://pictures.example/", "must be an http or https address"],
    ["http://", "must be an http or https address"],
    ["http://[fe80::1%25eth0]/", "must be an http or https address"],
    ["http://[fe80::1%eth0]/", "must be an http or https address"],
    ["http://[::1/", "must be an http or https address"],
    ["http://exa mple.com/", "must be an http or https address"],
    ["http://pictures.example:99999/", "must be an http or https address"],
    ["http://256.256.256.256/", "must be an http or https address"],
    ["http://user@pictures.example/", "must not bear credentials"],
    ["http://:secret@pictures.example/", "must not bear credentials"],
    ["http://93.184.215.14@127.0.0.1/", "must not bear credentials"],
    ["http://pictures.example:8080/", "must be at port 80 or 443"],
    ["http://pictures.example:22/", "must be at port 80 or 443"],
    ["https://pictures.example:0/", "must be at port 80 or 443"]
  ])("such as %j is refused before it is resolved", (address, message) =>
    run(
      Effect.gen(function* () {
        const error = yield* Effect.flip(reader({ resolve: nowhere })(address))
        expect(error).toMatchObject(invalid(message))
      })
    )
  )

  test.each([
    "http://pictures.example",
    "https://pictures.example",
    "http://pictures.example:443",
    "https://pictures.example:80",
    " http:\\\\pictures.example\\a"
  ])("such as %j is read", (address) =>
    run(
      Effect.gen(function* () {
        const { asked, resolve } = names({})
        yield* Effect.flip(reader({ resolve })(address))
        expect(asked).toEqual(["pictures.example"])
      })
    )
  )
})

describe("a redirect", () => {
  /** Answers each path with a redirect to what it says there. */
  const chain = (to: Readonly<Record<string, string>>) =>
    serve((response, { path }) => {
      const location = to[path]
      if (location === undefined) hello(response)
      else response.writeHead(path === "/307" ? 307 : 302, { location }).end("away")
    })

  test("is followed up to three times", () =>
    run(
      Effect.gen(function* () {
        const { url } = yield* chain({ "/0": "/1", "/1": "2", "/2": "/3", "/3": "/4" })
        const { asked, resolve } = names({ "pictures.example": [[HERE]] })
        const read = local(url, { resolve })
        expect(yield* text(read(`http://pictures.example:${url.port}/1`))).toBe("hello")
        expect(asked).toHaveLength(4)
        expect(yield* Effect.flip(read(`http://pictures.example:${url.port}/0`))).toMatchObject(invalid("redirects too often"))
        expect(yield* Effect.flip(local(url, { redirects: 0 })(`http://${HERE}:${url.port}/3`))).toMatchObject(
          invalid("redirects too often")
        )
      })
    ))

  test.each([
    ["http://10.0.0.1:PORT/", "must lead to a public address"],
    ["http://169.254.169.254:PORT/latest/meta-data/", "must lead to a public address"],
    ["//[::1]:PORT/", "must lead to a public address"],
    ["http://behind.example:PORT/", "must lead to a public address"],
    ["http://2130706434:PORT/", "must lead to a public address"],
    ["http://127.0.0.1:1/", "must be at port PORT"],
    ["http://user:password@127.0.0.1:PORT/", "must not bear credentials"],
    ["file:///etc/passwd", "must be an http or https address"],
    ["http://[", "must be an http or https address"]
  ])("to %s is not followed", (location, message) =>
    run(
      Effect.gen(function* () {
        const { resolve } = names({ "behind.example": [["192.168.1.1"]] })
        const at = { port: "" }
        const { url } = yield* serve((response) => response.writeHead(302, { location: location.replace("PORT", at.port) }).end())
        at.port = url.port
        const error = yield* Effect.flip(local(url, { resolve })(`http://${HERE}:${url.port}/`))
        expect(error).toMatchObject(invalid(message.replace("PORT", url.port)))
      })
    )
  )

  test("without a location is an error", () =>
    run(
      Effect.gen(function* () {
        const { url } = yield* serve((response) => response.writeHead(302).end())
        expect(yield* Effect.flip(local(url)(url.href))).toMatchObject(invalid("answers with status 302"))
      })
    ))
})

describe("a server", () => {
  const failing = (answer: (response: ServerResponse) => unknown, options: Partial<SafeFetch.Options> = {}) =>
    Effect.flatMap(
      serve((response) => void answer(response)),
      ({ url }) => Effect.flip(local(url, options)(url.href))
    )

  test.each([201, 204, 304, 400, 401, 403, 404, 410, 418])("that answers %i is the caller's error", (status) =>
    run(
      Effect.gen(function* () {
        const error = yield* failing((response) => response.writeHead(status).end())
        expect(error).toMatchObject(invalid(`answers with status ${status}`))
      })
    )
  )

  test.each([
    ["429", (response: ServerResponse) => response.writeHead(429).end()],
    ["500", (response: ServerResponse) => response.writeHead(500).end("x".repeat(100_000))],
    ["503", (response: ServerResponse) => response.writeHead(503).end()],
    ["nothing", (response: ServerResponse) => response.destroy()],
    [
      "a body cut off",
      (response: ServerResponse) => response.writeHead(200, { "content-length": 100 }).write("x", () => response.destroy())
    ],
    ["what is no HTTP", (response: ServerResponse) => response.socket?.end("hello\r\n\r\n")]
  ])("that answers with %s is unavailable, isolated", (_, answer) =>
    run(
      Effect.gen(function* () {
        expect(yield* failing(answer)).toMatchObject({ _tag: "UpstreamUnavailable", isolated: true })
      })
    )
  )

  test("that cannot be reached or resolved is unavailable", () =>
    run(
      Effect.gen(function* () {
        const url = yield* nobody
        expect(yield* Effect.flip(local(url)(url.href))).toMatchObject({ _tag: "UpstreamUnavailable", isolated: true })
        const error = yield* Effect.flip(reader({ resolve: () => Promise.reject(new Error("SERVFAIL")) })("http://pictures.example/"))
        expect(error).toBeInstanceOf(UpstreamUnavailable)
      })
    ))

  test.each([
    ["says so", (response: ServerResponse) => response.writeHead(200, { "content-length": 1_001 }).end("x".repeat(1_001))],
    ["does not say so", (response: ServerResponse) => response.writeHead(200).end("x".repeat(1_001))],
    ["does not end", (response: ServerResponse) => endless(response)]
  ])("that sends too much and %s is disconnected", (_, answer) =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(answer)
        expect(yield* Effect.flip(local(service.url)(service.url.href))).toMatchObject(invalid("leads to more than 1000 bytes"))
      })
    )
  )

  test("may send the most bytes allowed", () =>
    run(
      Effect.gen(function* () {
        const { url } = yield* serve((response) => response.writeHead(200).end("x".repeat(1_000)))
        expect(yield* text(local(url)(url.href))).toHaveLength(1_000)
      })
    ))

  test.each([
    ["before its headers", (_: ServerResponse) => undefined],
    ["after its headers", (response: ServerResponse) => response.writeHead(200).flushHeaders()],
    ["within its body", (response: ServerResponse) => response.writeHead(200).write("x")]
  ])("that hangs %s longer than allowed is unavailable, and the connection is closed", (_, answer) =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(answer)
        const asked = yield* Effect.forkChild(Effect.flip(local(service.url)(service.url.href)), { startImmediately: true })
        yield* service.received
        yield* TestClock.adjust("10 seconds")
        expect(yield* Fiber.join(asked)).toMatchObject({ _tag: "UpstreamUnavailable", isolated: true })
        yield* service.abandoned
      })
    )
  )

  test("is disconnected as soon as its status decides", () =>
    run(
      Effect.gen(function* () {
        const service = yield* serve((response) => response.writeHead(404).write("x"))
        expect(yield* Effect.flip(local(service.url)(service.url.href))).toMatchObject(invalid("answers with status 404"))
        yield* service.abandoned
      })
    ))

  test("is disconnected when the call is interrupted", () =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(() => undefined)
        const asked = yield* Effect.forkChild(local(service.url)(service.url.href), { startImmediately: true })
        yield* service.received
        yield* Fiber.interrupt(asked)
        yield* service.abandoned
      })
    ))

  test("has no connection after it has answered", async () => {
    let open = 0
    const server = createServer((_, response) => response.writeHead(200).end("hello")).on("connection", (socket) => {
      open++
      socket.on("close", () => open--)
    })
    await new Promise<void>((resolve) => server.listen(0, HERE, resolve))
    const address = server.address()
    const url = new URL(`http://${HERE}:${typeof address === "object" ? address?.port : 0}`)
    await run(local(url)(url.href))
    await new Promise<void>((resolve) => server.close(() => resolve()))
    expect(open).toBe(0)
  })
})

const endless = (response: ServerResponse): void => {
  const more = () => {
    while (!response.destroyed && response.write("x".repeat(4_096)));
  }
  response.on("drain", more)
  more()
}
