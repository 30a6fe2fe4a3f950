/** The direct way of plain calls: it answers as the route of the operation does, or declines before anything was counted or written. */

import { Operation } from "@millrace/core"
import type { EventStore } from "@millrace/event-sourcing"
import { Deferred, Effect, Fiber, Layer, Schema } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { describe, expect } from "vitest"
import { Api, Http, Server, WebHandler } from "../src/index.ts"
import { PLAIN_TARGET } from "../src/NodeHandler.ts"
import { api, eventually, type Host, host, type Options, send, testing } from "./Host.ts"
import { type Json, type Request, requests } from "./Requests.ts"

/** What differs from one request to the next, and from one host to the other. */
const CHANCE =
  /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b(?:[a-z]+_)+[0-9a-hjkmnp-tv-z]{26}\b|(?<="keyHash":")[^"]+/giu

const withoutChance = (text: string): string => text.replaceAll(CHANCE, "<id>")

/** Keys by their names in the requests. */
type Keys = Readonly<Record<string, string>>

const answerOf = async (url: string, keys: Keys, { body, headers, method, target }: Request) => {
  const { authorization = "" } = headers
  const [, name = ""] = /^Bearer (.+)$/u.exec(authorization) ?? []
  const sent = { ...headers, ...(name in keys ? { authorization: `Bearer ${keys[name]}` } : {}) }
  const answer = await send(`${url}${target}`, { method, headers: sent, ...(body === undefined ? {} : { body }) })
  const { date: _, ...rest } = answer.headers
  return { status: answer.status, headers: withoutChance(JSON.stringify(rest)), body: withoutChance(answer.body) }
}

/** What calls did to accounts. */
const historyOf = (log: ReadonlyArray<EventStore.RecordedEvent>) =>
  log
    .filter(({ stream, type }) => stream.startsWith("account-") && type !== "AccountOpened" && type !== "CreditsGranted")
    .map(({ data, type }) => [type, withoutChance(data)])

/** A host with a rich account, a poor one, a key that may only read, a revoked one, and one of an account on trial. */
const opened = Effect.fnUntraced(function* (options: Options) {
  const it = yield* host({ authFailures: 10, ...options })
  const rich = yield* it.account(1_000)
  const poor = yield* it.account(3)
  const reader = yield* it.account(10, ["read"])
  const none = yield* it.account(0)
  return { it, keys: { RICH: rich.key, POOR: poor.key, READER: reader.key, NONE: none.key, WRONG: `${rich.key}x` } satisfies Keys }
})

/** Calls that read, mostly by good keys, and a few of them with a body. */
const some = (document: Json) =>
  fc.array(
    requests(document, ["RICH", "RICH", "RICH", "POOR", "READER", "NONE", "WRONG"])
      .filter(({ method }) => method === "GET")
      .chain((request) => fc.constantFrom(request, ...Array.from({ length: 5 }, () => ({ ...request, body: undefined })))),
    { minLength: 60, maxLength: 60, size: "max" }
  )

describe("any request", () => {
  for (const [name, options] of Object.entries<Options>({
    "of hosts with high limits": { rateLimit: { limit: 100_000, window: 60 } },
    "of hosts whose callers reach their limits": { rateLimit: { limit: 20, window: 60 } }
  })) {
    testing(
      `${name} is answered alike with the direct way and without it, and leaves the same events`,
      Effect.gen(function* () {
        const [one, other] = [yield* opened(options), yield* opened({ ...options, direct: false })]
        const document: Json = (yield* one.it.call("/api/v1/openapi.json")).json
        yield* other.it.call("/api/v1/openapi.json")
        const statuses = new Set<number>()
        for (const [index, round] of fc.sample(some(document), { seed: 41, numRuns: 12 }).entries()) {
          for (const request of round) {
            const expected = yield* Effect.promise(() => answerOf(other.it.url, other.keys, request))
            const actual = yield* Effect.promise(() => answerOf(one.it.url, one.keys, request))
            expect({ request, ...actual }).toEqual({ request, ...expected })
            statuses.add(actual.status)
          }
          expect([index, historyOf(yield* one.it.log)]).toEqual([index, historyOf(yield* other.it.log)])
          // Streams that are unused for a minute leave memory
          yield* TestClock.adjust("40 seconds")
        }
        expect(other.it.answered.direct).toBe(0)
        expect(one.it.answered.direct).toBeGreaterThan(100)
        for (const status of [200, 401, 402, 403, 404, 422]) expect(statuses).toContain(status)
      })
    )
  }

  testing(
    "with a plain target has the path and the query that the URL standard writes",
    Effect.sync(() => {
      const targets = fc.stringMatching(/^(?:\/[\w~@%.-]{0,6}){1,4}(?:\?[\w~@.+&=%,:/'"<>\\-]{0,12})?$/u)
      let plain = 0
      fc.assert(
        fc.property(targets, (target) => {
          if (!PLAIN_TARGET.test(target)) return
          plain++
          const { hash, pathname, search } = new URL(`http://localhost${target}`)
          expect(`${pathname}${search}${hash}`).toBe(target)
        }),
        { numRuns: 5_000 }
      )
      expect(plain).toBeGreaterThan(200)
    })
  )
})

const WAIT = "/api/v1/bin/111111"

const untilStarted = ({ bench }: Host) =>
  eventually(
    Effect.sync(() => bench.started),
    (started) => started.includes("111111")
  )

const logged = ({ lines }: Host) => lines.map((line) => JSON.parse(line)).filter(({ message }) => String(message) === "request")

describe.each([true, false])("a call that waits, with direct answers: %s", (direct) => {
  testing(
    "is cancelled and refunded when its client disconnects",
    Effect.gen(function* () {
      const it = yield* host({ direct })
      const { accountId, bearer } = yield* it.account()
      const abort = new AbortController()
      const left = send(`${it.url}${WAIT}`, { headers: bearer, signal: abort.signal }).catch(() => "left")
      // The first call of a key reads it; the second has it
      yield* untilStarted(it)
      abort.abort()
      yield* Effect.promise(() => left)
      const again = new AbortController()
      yield* eventually(it.balance(accountId), ({ available }) => available === 200_000)
      it.bench.started.length = 0
      const leftAgain = send(`${it.url}${WAIT}`, { headers: bearer, signal: again.signal }).catch(() => "left")
      yield* untilStarted(it)
      expect(yield* it.balance(accountId)).toMatchObject({ available: 199_500, held: 500 })
      again.abort()
      yield* Effect.promise(() => leftAgain)
      yield* eventually(it.balance(accountId), ({ available }) => available === 200_000)
      expect(it.bench.interrupted).toEqual(["111111", "111111"])
      yield* eventually(
        Effect.sync(() => logged(it).map(({ route, status }) => `${status} ${route}`)),
        (told) => told.length === 2 && told.every((line) => line === "499 /api/v1/bin/:bin")
      )
      expect(it.answered.direct > 0).toBe(direct)
    })
  )

  testing(
    "ends before the server does, or is cancelled, refunded and told so",
    Effect.gen(function* () {
      for (const isInTime of [true, false]) {
        const it = yield* host({ direct, drainWithin: "10 seconds" })
        const { accountId, bearer } = yield* it.account()
        yield* it.call("/api/v1/bin/457173", { headers: bearer })
        const running = yield* Effect.forkChild(it.call(WAIT, { headers: bearer }))
        yield* untilStarted(it)
        const drained = yield* Effect.forkChild(it.handler.drain, { startImmediately: true })
        const refused = yield* it.call("/api/v1/bin/457173", { headers: bearer })
        expect([refused.status, refused.headers.connection]).toEqual([503, "close"])
        if (isInTime) yield* Deferred.succeed(it.bench.finish, undefined)
        else yield* TestClock.adjust("10 seconds")
        yield* Fiber.join(drained)
        const { headers, json, status } = yield* Fiber.join(running)
        expect(headers.connection).toBe("close")
        if (isInTime) expect([status, headers["x-credits-charged"]]).toEqual([200, "0.5"])
        else expect([status, json]).toMatchObject([503, { error: { code: "shutting_down" } }])
        expect(yield* it.balance(accountId)).toMatchObject({ available: isInTime ? 199_000 : 199_500, held: 0 })
        expect(it.answered.direct > 0).toBe(direct)
      }
    })
  )
})

describe("a bug", () => {
  testing(
    "in a schema or in the data of an answer ends its request with 500, and not the process",
    Effect.gen(function* () {
      const it = yield* host()
      const faulty = Schema.String.check(
        Schema.makeFilter(() => {
          throw new Error("a bug in a schema")
        })
      )
      const operation = Operation.make("test.open", {
        summary: "Has a bug",
        route: { method: "GET", path: "/faulty", query: { word: Schema.optionalKey(faulty) } },
        success: Schema.Struct({}),
        run: () => Effect.die(new Error("a bug in an operation"))
      })
      const made = yield* it.run(WebHandler.make(Http.layer(Api.make({ faulty: Api.publicGroup([operation]) }))))
      const { url } = yield* it.run(Server.listen(made))
      for (const target of ["/api/v1/faulty?word=1", "/api/v1/faulty", "/api/v1/faulty?word=1"]) {
        const { json, status } = yield* Effect.promise(() => send(`${url}${target}`))
        expect([target, status, json]).toMatchObject([target, 500, { error: { code: "internal_error" } }])
      }
      expect((yield* Effect.promise(() => send(`${url}/health`))).status).toBe(200)
      yield* eventually(
        Effect.sync(() => it.lines.filter((line) => line.includes("A request failed"))),
        (failed) => failed.length === 3
      )
    })
  )
})

describe("what a host adds to the router", () => {
  const WORD = "/api/v1/open/hello"
  const served = (layer: Layer.Layer<never, never, HttpRouter.HttpRouter>) =>
    Effect.gen(function* () {
      const it = yield* host()
      const made = yield* it.run(WebHandler.make(Layer.merge(Http.layer(api), layer)))
      const { url } = yield* it.run(Server.listen(made))
      return yield* Effect.promise(() => send(`${url}${WORD}`))
    })

  testing(
    "is never passed by: routes before its own, and middleware around all or some",
    Effect.gen(function* () {
      const own = HttpServerResponse.text("the host's own")
      expect((yield* served(Layer.empty)).status).toBe(200)
      expect((yield* served(HttpRouter.add("GET", WORD, own))).body).toBe("the host's own")
      expect((yield* served(HttpRouter.add("*", "/api/v1/open/hello/*", own))).body).toBe("the host's own")
      const marked = HttpRouter.middleware((app) => Effect.map(app, HttpServerResponse.setHeader("x-mark", "1")), { global: true })
      expect((yield* served(marked)).headers["x-mark"]).toBe("1")
      expect((yield* served(Layer.empty)).headers["x-mark"]).toBeUndefined()
    })
  )

  testing(
    "is never passed by, where its middleware is laid around the routes of the API alone",
    Effect.gen(function* () {
      const it = yield* host()
      const marked = HttpRouter.middleware((app) => Effect.map(app, HttpServerResponse.setHeader("x-mark", "1")))
      const made = yield* it.run(WebHandler.make(Http.layer(api).pipe(Layer.provide(marked.layer))))
      const { url } = yield* it.run(Server.listen(made))
      expect((yield* Effect.promise(() => send(`${url}${WORD}`))).headers["x-mark"]).toBe("1")
    })
  )
})
