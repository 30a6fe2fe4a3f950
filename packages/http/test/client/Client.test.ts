/** The client against a whole host over a real socket: calls, replies, and an error of every kind. */

import { readFileSync } from "node:fs"
import { Deferred, Effect } from "effect"
import { describe, expect } from "vitest"
import * as StandardRoutes from "../../../../test/build/routes.ts"
import {
  CostExceedsLimit,
  createClient,
  Forbidden,
  InsufficientCredits,
  InvalidRequest,
  isFailure,
  MillraceError,
  NoAnswer,
  NotFound,
  type Routes,
  routesOf,
  STANDARD_ROUTES,
  Unauthorized,
  Unavailable
} from "../../src/client/index.ts"
import { Api } from "../../src/index.ts"
import { api, eventually, type Host, host, type Options, testing } from "../Host.ts"
import { rejection, retry, surroundings } from "./Surroundings.ts"

/** A host, and a client of an account at it. */
const opened = Effect.fnUntraced(function* (options: Options = {}, grant?: number) {
  const server = yield* host(options)
  const { accountId, key } = yield* server.account(grant)
  const { around, waits } = yield* surroundings
  const millrace = createClient({ baseUrl: `${server.url}/`, apiKey: key, api, retry, surroundings: around })
  return { ...server, accountId, key, around, waits, millrace, available: available(server, accountId) }
})

const available = ({ balance }: Host, accountId: string) => Effect.map(balance(accountId), ({ available, held }) => [available, held])

/** How many requests were logged. */
const requestsIn = (lines: ReadonlyArray<string>) =>
  new Set(lines.map((line) => JSON.parse(line).requestId).filter((id) => id !== undefined)).size

describe("a call", () => {
  testing(
    "takes one flat input, and returns a reply with its cost",
    Effect.gen(function* () {
      const { millrace, bench, lines } = yield* opened()
      const reply = yield* Effect.promise(() => millrace.bin.lookup({ bin: "457173" }))
      expect(reply).toEqual({
        data: { bin: "457173", scheme: "visa", type: "debit", brand: null, country: null, bank: null },
        charged: 0.5,
        balance: 199.5,
        requestId: JSON.parse(lines.at(-1) ?? "").requestId,
        replayed: false,
        pending: false
      })
      // Path, query and body
      const worked = yield* Effect.promise(() => millrace.test.work({ room: "a/b ü", times: 3, tag: ["x", "y"], how: "at once" }))
      expect([worked.data, worked.charged, worked.balance]).toEqual([{ room: "a/b ü", times: 3 }, 6, 193.5])
      expect(bench.started).toEqual(["a/b ü"])
      // What is undefined is not sent
      expect((yield* Effect.promise(() => millrace.test.work({ room: "b", times: undefined, how: "at once" }))).data.times).toBe(1)
      const free = yield* Effect.promise(() => millrace.account.billing())
      expect([free.charged, free.balance, free.data.balance, free.data.lots[0]?.expires_at]).toEqual([0, 191.5, 191.5, null])
    })
  )

  testing(
    "runs once under the caller's own key",
    Effect.gen(function* () {
      const { millrace, bench, available } = yield* opened()
      const call = () => millrace.test.work({ room: "a", how: "at once" }, { idempotencyKey: 'order "1" \\' })
      const [first, again] = [yield* Effect.promise(call), yield* Effect.promise(call)]
      expect([first.replayed, again]).toEqual([false, { ...first, charged: 0, replayed: true }])
      expect(bench.started).toEqual(["a"])
      expect(yield* available).toEqual([198_000, 0])
      const other = yield* rejection(millrace.test.work({ room: "b", how: "at once" }, { idempotencyKey: 'order "1" \\' }))
      expect(other).toMatchObject({ _tag: "Conflict", code: "idempotency_key_reused", status: 422 })
    })
  )

  testing(
    "escapes path parameters",
    Effect.gen(function* () {
      const { millrace, lines } = yield* opened()
      const before = requestsIn(lines)
      for (const room of [".", "..", ""]) {
        expect(yield* rejection(millrace.test.work({ room, how: "at once" }))).toBeInstanceOf(TypeError)
      }
      for (const room of ["../../health", "%2e%2e", "a?b#c", "...", "a;b"]) {
        expect((yield* Effect.promise(() => millrace.test.work({ room, how: "at once" }))).data.room).toBe(room)
      }
      expect(requestsIn(lines)).toBe(before + 5)
    })
  )
})

describe("a client without a key", () => {
  testing(
    "can call public operations only",
    Effect.gen(function* () {
      const { url, around } = yield* opened()
      const anyone = createClient({ baseUrl: url, retry, surroundings: around })
      const { data, charged, balance } = yield* Effect.promise(() => anyone.catalog.capability({ key: "bin.lookup" }))
      expect([data.key, charged, balance]).toEqual(["bin.lookup", 0, undefined])
      expect(yield* rejection(anyone.bin.lookup({ bin: "457173" }))).toBeInstanceOf(Unauthorized)
    })
  )
})

describe("a call that fails", () => {
  testing(
    "rejects with an error that the caller can act on, and is free",
    Effect.gen(function* () {
      const { millrace, key, url, around, available, waits } = yield* opened()
      const stranger = createClient({ baseUrl: url, apiKey: `${key}x`, retry, surroundings: around })
      const cases = [
        [() => stranger.bin.lookup({ bin: "457173" }), Unauthorized, { code: "unauthorized", status: 401 }],
        [() => millrace.test.money(), Forbidden, { code: "insufficient_scope", status: 403 }],
        [() => millrace.bin.lookup({ bin: "000000" }), NotFound, { code: "not_found", status: 404 }],
        [
          () => millrace.bin.lookup({ bin: "x" }),
          InvalidRequest,
          { code: "invalid_request", message: "bin: expected six to eight digits" }
        ],
        [
          () => millrace.bin.lookup({ bin: "457173" }, { maxCredits: 0.499 }),
          CostExceedsLimit,
          { code: "cost_exceeds_limit", status: 422 }
        ],
        [() => millrace.test.work({ room: "a", how: "throw" }), Unavailable, { code: "internal_error", status: 500 }],
        [() => millrace.test.work({ room: "a", how: "not configured" }), Unavailable, { status: 503, retryAfter: 3_600_000 }],
        [() => millrace.test.unpriced(), Unavailable, { code: "operation_not_priced" }]
      ] as const
      for (const [call, Class, fields] of cases) {
        const error = yield* rejection(call())
        expect(error).toBeInstanceOf(Class)
        expect(error).toBeInstanceOf(MillraceError)
        expect(error).toMatchObject({ ...fields, name: Class.name, retryable: false })
      }
      expect(waits).toEqual([])
      expect(yield* available).toEqual([200_000, 0])
    })
  )

  testing(
    "reports the missing credits as numbers",
    Effect.gen(function* () {
      const { millrace, available } = yield* opened({}, 3.25)
      const error = yield* rejection(millrace.test.work({ room: "a", times: 2, how: "at once" }))
      expect(error).toBeInstanceOf(InsufficientCredits)
      expect(error).toMatchObject({ status: 402, required: 4, available: 3.25, shortfall: 0.75, retryable: false })
      expect(isFailure(error) && error._tag === "InsufficientCredits" ? error.shortfall : error).toBe(0.75)
      expect(isFailure(new Error())).toBe(false)
      expect(yield* available).toEqual([3_250, 0])
    })
  )

  testing(
    "is retried if it may succeed later, within the limits and not before the server allows",
    Effect.gen(function* () {
      const { millrace, waits, available, lines } = yield* opened()
      const error = yield* rejection(millrace.grammar.check({ text: "upstream down" }))
      expect(error).toMatchObject({ _tag: "Unavailable", code: "upstream_unavailable", retryable: true, retryAfter: 5_000 })
      // Five seconds as asked, and half of 250, 500, 1,000 and 2,000 ms
      expect(waits).toEqual([5_125, 5_250, 5_500, 6_000])
      expect(lines.filter((line) => line.includes('"status":503'))).toHaveLength(5)
      expect(yield* available).toEqual([200_000, 0])
    })
  )

  testing(
    "waits when the rate is exceeded",
    Effect.gen(function* () {
      const { millrace, waits } = yield* opened({ rateLimit: { limit: 2, window: 60 } })
      const replies = []
      for (const bin of ["457173", "457174", "457175"]) replies.push(yield* Effect.promise(() => millrace.bin.lookup({ bin })))
      expect(replies.map(({ data, balance }) => [data.bin, balance])).toEqual([
        ["457173", 199.5],
        ["457174", 199],
        ["457175", 198.5]
      ])
      expect(waits).toHaveLength(1)
      expect(waits[0]).toBeGreaterThanOrEqual(30_000)
      expect(waits[0]).toBeLessThanOrEqual(60_125)
    })
  )
})

describe("a call that is aborted", () => {
  testing(
    "is cancelled, refunded, and rejects with the reason",
    Effect.gen(function* () {
      const { millrace, bench, available } = yield* opened()
      const abort = new AbortController()
      const left = rejection(millrace.test.work({ room: "gone", how: "when told" }, { signal: abort.signal }))
      yield* eventually(
        Effect.sync(() => bench.started),
        (started) => started.length === 1
      )
      const reason = new Error("changed my mind")
      abort.abort(reason)
      expect(yield* left).toBe(reason)
      yield* eventually(available, ([free]) => free === 200_000)
      expect([bench.started, bench.interrupted]).toEqual([["gone"], ["gone"]])
      // Before it was sent at all
      expect(yield* rejection(millrace.test.work({ room: "never", how: "at once" }, { signal: abort.signal }))).toBe(reason)
      expect(bench.started).toEqual(["gone"])
    })
  )

  testing(
    "is not sent again during a wait",
    Effect.gen(function* () {
      const { key, url, around, lines } = yield* opened()
      const abort = new AbortController()
      const sleep: typeof around.sleep = async (millis, signal) => {
        if (millis < retry.timeout) abort.abort("enough")
        else await around.sleep(millis, signal)
      }
      const millrace = createClient({ baseUrl: url, apiKey: key, retry, surroundings: { ...around, sleep } })
      expect(yield* rejection(millrace.grammar.check({ text: "upstream down" }, { signal: abort.signal }))).toBe("enough")
      expect(lines.filter((line) => line.includes('"status":503'))).toHaveLength(1)
    })
  )

  testing(
    "is sent again under its key after a timeout, and charged once",
    Effect.gen(function* () {
      const { key, url, around, bench, available } = yield* opened()
      const late = Promise.withResolvers<void>()
      let attempts = 0
      const sleep: typeof around.sleep = (millis, signal) => {
        if (millis !== retry.timeout) return around.sleep(millis, signal)
        return attempts++ === 0 ? late.promise : around.sleep(millis, signal)
      }
      const millrace = createClient({ baseUrl: url, apiKey: key, api, retry, surroundings: { ...around, sleep } })
      const call = millrace.test.work({ room: "slow", how: "when told" })
      yield* eventually(
        Effect.sync(() => bench.started),
        (started) => started.length === 1
      )
      late.resolve()
      yield* eventually(
        Effect.sync(() => bench.interrupted),
        (interrupted) => interrupted.length === 1
      )
      yield* Deferred.succeed(bench.finish, undefined)
      expect(yield* Effect.promise(() => call)).toMatchObject({ charged: 2, balance: 198, replayed: false })
      expect(yield* available).toEqual([198_000, 0])
    })
  )

  testing(
    "rejects after all attempts where no server answers, with its idempotency key",
    Effect.gen(function* () {
      const { around, waits } = yield* surroundings
      // Nothing listens at port 1 of this machine
      const millrace = createClient({ baseUrl: "http://127.0.0.1:1", surroundings: around, retry: { ...retry, attempts: 3 } })
      const error = yield* rejection(millrace.bin.lookup({ bin: "457173" }))
      expect(error).toBeInstanceOf(NoAnswer)
      expect(error).toMatchObject({ message: "The connection failed.", idempotencyKey: "key-1", retryable: true })
      expect(waits).toEqual([125, 250])
      // What cannot be sent is a bug, and not tried again
      const broken = createClient({ baseUrl: "http://[", surroundings: around, retry })
      expect(yield* rejection(broken.bin.lookup({ bin: "457173" }))).toBeInstanceOf(TypeError)
      expect(waits).toHaveLength(2)
    })
  )
})

describe("routes", () => {
  testing(
    "of the standard operations are those of the registry: `npm run routes` writes them",
    Effect.sync(() => {
      expect(routesOf(Api.make(Api.standard))).toEqual(STANDARD_ROUTES)
      expect(readFileSync(StandardRoutes.FILE, "utf8")).toBe(StandardRoutes.text())
    })
  )

  testing(
    "as data suffice for a page that has only the types of an API",
    Effect.gen(function* () {
      const { key, url, around } = yield* opened()
      const own = Api.make({ test: api.groups.test })
      const routes = {
        "test.work": "POST /test/:room/work?times&tag",
        "test.unpriced": "GET /test/unpriced"
      } satisfies Routes<(typeof own)["operations"][number]>
      expect(JSON.parse(JSON.stringify(routesOf(own)))).toEqual(routes)
      const millrace = createClient<typeof own>({ baseUrl: url, apiKey: key, routes, retry, surroundings: around })
      const { data } = yield* Effect.promise(() => millrace.test.work({ room: "a", times: 2, how: "at once" }))
      expect(data satisfies { readonly room: string; readonly times: number }).toEqual({ room: "a", times: 2 })
      // What must not compile
      const wrong = () => {
        // @ts-expect-error there is no such operation
        millrace.bin.lookup({ bin: "457173" })
        // @ts-expect-error a field is missing
        millrace.test.work({ room: "a" })
        // @ts-expect-error a field has another type
        millrace.test.work({ room: "a", how: "at once", times: "2" })
        // @ts-expect-error a route is missing
        createClient<typeof own>({ baseUrl: url, routes: { "test.work": routes["test.work"] } })
        // @ts-expect-error it is somewhere else
        createClient<typeof own>({ baseUrl: url, routes: { ...routes, "test.unpriced": "GET /test/priced" } })
      }
      expect(wrong).toBeTypeOf("function")
      expect(() => createClient<typeof own>({ baseUrl: url, routes: JSON.parse(`{"test.work":"nonsense"}`) })).toThrow(
        "Not a route: nonsense"
      )
    })
  )
})
