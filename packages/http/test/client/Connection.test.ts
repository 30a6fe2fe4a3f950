/** What happens on the way: connections that break at any byte, gateways that answer for themselves, servers that ask to wait. */
import { createServer as createHttpServer } from "node:http"
import { connect, createServer, type Socket } from "node:net"
import { Effect } from "effect"
import { describe, expect } from "vitest"
import { createClient, InvalidRequest, RateLimited, Unavailable, UnexpectedAnswer } from "../../src/client/index.ts"
import { api, eventually, host, testing } from "../Host.ts"
import { type Answer, answering, error, listening, success } from "./Answers.ts"
import { rejection, retry, surroundings } from "./Surroundings.ts"

/**
 * A connection to a server through which so many bytes of an answer come, for the first of `limits` on the first connection, and so on;
 * then it is reset. Undefined: before anything is sent on. After the last all comes through.
 */
const cutting = (port: number, limits: Array<number | undefined>) => {
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const upstream = connect(port, "127.0.0.1")
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      // Resets are what this is about
      socket.on("error", () => {})
      socket.on("close", () => [client, upstream].map((other) => other.destroy()))
    }
    const isWhole = limits.length === 0
    const limit = limits.shift()
    client.on("data", (chunk) => {
      if (!isWhole && limit === undefined) client.resetAndDestroy()
      else upstream.write(chunk)
    })
    let left = limit ?? Number.POSITIVE_INFINITY
    upstream.on("data", (chunk) => {
      client.write(chunk.subarray(0, left))
      left -= chunk.length
      if (left <= 0) client.resetAndDestroy()
    })
  })
  return listening(server, () => sockets.forEach((socket) => socket.destroy()))
}

describe("a connection that breaks", () => {
  testing(
    "at any byte leads to one run, one charge and one answer",
    Effect.gen(function* () {
      const { port, account, balance, bench, raw } = yield* host()
      const { accountId, key, bearer } = yield* account()
      const { around, waits } = yield* surroundings
      const body = `{"how":"at once"}`
      const head = `POST /api/v1/test/room-0/work HTTP/1.1\r\nHost: x\r\nAuthorization: ${bearer.authorization}\r\nContent-Type: application/json\r\n`
      const { length } = yield* raw([`${head}Content-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`])
      const limits = [undefined, ...Array.from({ length: 20 }, (_, part) => 1 + Math.floor((part / 20) * (length - 60)))]
      let calls = 0
      for (const limit of limits) {
        const baseUrl = yield* cutting(port, [limit])
        const millrace = createClient({ baseUrl, apiKey: key, api, retry, surroundings: around })
        const reply = yield* Effect.promise(() => millrace.test.work({ room: `room-${++calls}`, how: "at once" }))
        const replayed = limit !== undefined
        expect([limit, reply]).toMatchObject([limit, { charged: replayed ? 0 : 2, balance: 198 - 2 * calls, replayed }])
      }
      expect(bench.started).toEqual(["room-0", ...limits.map((_, call) => `room-${call + 1}`)])
      expect(waits).toEqual(limits.map(() => 125))
      expect(yield* balance(accountId)).toMatchObject({ available: 198_000 - 2_000 * calls, held: 0 })
    })
  )

  testing(
    "in every attempt uses up the attempts; the key then tells the outcome",
    Effect.gen(function* () {
      const { port, url, account, balance, bench } = yield* host()
      const { accountId, key } = yield* account()
      const { around, waits } = yield* surroundings
      const baseUrl = yield* cutting(port, [undefined, 20, 300, 1, undefined])
      const millrace = createClient({ baseUrl, apiKey: key, api, retry, surroundings: around })
      expect(yield* rejection(millrace.test.work({ room: "a", how: "at once" }))).toMatchObject({
        _tag: "NoAnswer",
        idempotencyKey: "key-1",
        cause: expect.any(TypeError)
      })
      expect(waits).toEqual([125, 250, 500, 1_000])
      const direct = createClient({ baseUrl: url, apiKey: key, api, retry, surroundings: around })
      const reply = yield* Effect.promise(() => direct.test.work({ room: "a", how: "at once" }, { idempotencyKey: "key-1" }))
      expect(reply).toMatchObject({ charged: 0, replayed: true })
      expect(bench.started).toEqual(["a"])
      expect(yield* balance(accountId)).toMatchObject({ available: 198_000, held: 0 })
    })
  )
})

const answered = Effect.fnUntraced(function* (answers: ReadonlyArray<Answer>) {
  const { baseUrl, asked } = yield* answering(answers)
  const { around, waits } = yield* surroundings
  return { asked, waits, millrace: createClient({ baseUrl, retry, surroundings: around }) }
})

describe("an answer", () => {
  testing(
    "with Retry-After, in seconds or as a time, delays the next attempt of the same request",
    Effect.gen(function* () {
      const { millrace, waits, asked } = yield* answered([
        [429, { "retry-after": "7", "x-should-retry": "true" }, error("rate_limited")],
        // The test's clock begins with 1970
        [503, { "retry-after": "Thu, 01 Jan 1970 00:01:00 GMT", "x-should-retry": "true" }, error("busy")],
        [503, { "retry-after": "Wed, 31 Dec 1969 00:00:00 GMT", "x-should-retry": "true" }, error("busy")],
        [503, { "retry-after": "soon", "x-should-retry": "true" }, error("busy")],
        [200, {}, success]
      ])
      const reply = yield* Effect.promise(() => millrace.grammar.check({ text: "a" }))
      expect(reply).toEqual({
        data: { matches: [], more: 1 },
        charged: 0,
        balance: undefined,
        requestId: "req",
        replayed: false,
        pending: false
      })
      expect(waits).toEqual([7_125, 60_000 - 7_125 + 250, 500, 1_000])
      expect(asked).toEqual(Array.from({ length: 5 }, () => ({ key: '"key-1"', body: '{"text":"a"}' })))
    })
  )

  testing(
    "is retried as its header says, or by its status without the header",
    Effect.gen(function* () {
      const page = "<html>Bad Gateway</html>"
      const { millrace, waits, asked } = yield* answered([
        [503, { "x-should-retry": "false" }, error("busy")],
        [502, {}, page],
        [504, {}, page],
        [200, {}, page],
        [500, {}, page],
        [307, { location: "/elsewhere" }, ""],
        [200, {}, `{"error":"in disguise"}`]
      ])
      const call = () => rejection(millrace.grammar.check({ text: "a" }))
      expect(yield* call()).toBeInstanceOf(Unavailable)
      expect(asked).toHaveLength(1)
      const unexpected = yield* call()
      expect(unexpected).toBeInstanceOf(UnexpectedAnswer)
      expect(unexpected).toMatchObject({ status: 200, retryable: false, idempotencyKey: "key-2" })
      expect(asked).toHaveLength(4)
      for (const status of [500, 307, 200]) expect(yield* call()).toMatchObject({ _tag: "UnexpectedAnswer", status })
      expect(asked).toHaveLength(7)
      expect(waits).toEqual([125, 250])
    })
  )

  testing(
    "of a newer server is classified by its status if its code is unknown",
    Effect.gen(function* () {
      const { millrace } = yield* answered([
        [429, { "x-should-retry": "false" }, error("too_eager")],
        [418, {}, error("teapot")],
        [507, {}, error("full")],
        [402, { "x-credits-required": "", "x-credits-available": "1", "x-credits-shortfall": "1" }, error("insufficient_credits")]
      ])
      const call = () => rejection(millrace.grammar.check({ text: "a" }))
      const [first, second, third] = [yield* call(), yield* call(), yield* call()]
      expect(first).toBeInstanceOf(RateLimited)
      expect(second).toBeInstanceOf(InvalidRequest)
      expect(third).toBeInstanceOf(Unavailable)
      expect(third).toMatchObject({ code: "full", message: "It says so.", status: 507, requestId: "req", retryable: false })
      expect(yield* call()).toMatchObject({ _tag: "InsufficientCredits", shortfall: undefined })
    })
  )
})

describe("a client with the surroundings of the platform", () => {
  testing(
    "waits, times out and makes idempotency keys",
    Effect.gen(function* () {
      const { baseUrl, asked } = yield* answering([
        [503, { "x-should-retry": "true" }, error("busy")],
        [200, {}, success],
        [503, { "x-should-retry": "true" }, error("busy")]
      ])
      const millrace = createClient({ baseUrl, retry: { base: 1 } })
      expect(yield* Effect.promise(() => millrace.grammar.check({ text: "a" }))).toMatchObject({ requestId: "req" })
      expect(asked.map(({ key }) => key)).toEqual([expect.stringMatching(/^"[0-9a-f]{32}"$/u), asked[0]?.key])

      // An hour to wait, but not for a caller who leaves
      const patient = createClient({ baseUrl, retry: { base: 3_600_000, cap: 3_600_000, within: 1e9 } })
      const abort = new AbortController()
      const left = rejection(patient.grammar.check({ text: "a" }, { signal: abort.signal }))
      yield* eventually(
        Effect.sync(() => asked.length),
        (count) => count === 3
      )
      abort.abort("left")
      expect(yield* left).toBe("left")
    })
  )

  testing(
    "does not wait longer than its time limit",
    Effect.gen(function* () {
      const server = createHttpServer(() => {})
      const baseUrl = yield* listening(server, () => server.closeAllConnections())
      const millrace = createClient({ baseUrl, retry: { timeout: 20, attempts: 2, base: 1 } })
      expect(yield* rejection(millrace.grammar.check({ text: "a" }))).toMatchObject({ message: "There was no answer in time." })
    })
  )
})
