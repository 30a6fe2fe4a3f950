/** The client for programs in Effect, against a whole host over a real socket. */
import { Credits } from "@millrace/core"
import { Deferred, Effect, Exit, Fiber } from "effect"
import { FetchHttpClient } from "effect/http"
import { TestClock } from "effect/testing"
import { describe, expect } from "vitest"
import * as EffectClient from "../../src/client/EffectClient.ts"
import { api, eventually, host, type Options, testing } from "../Host.ts"
import { answering, error, success } from "./Answers.ts"

const opened = Effect.fnUntraced(function* (options: Options = {}, grant?: number) {
  const server = yield* host(options)
  const { accountId, key } = yield* server.account(grant)
  const millrace = yield* Effect.provide(
    EffectClient.make(api, { baseUrl: server.url, apiKey: key, retry: { within: 10_000_000, timeout: 5_000_000 } }),
    FetchHttpClient.layer
  )
  return { ...server, accountId, millrace }
})

describe("a call", () => {
  testing(
    "returns the decoded data of its operation, with amounts in thousandths",
    Effect.gen(function* () {
      const { millrace, bench } = yield* opened()
      const reply = yield* millrace.bin.lookup({ bin: "457173" })
      expect([reply.data.scheme, reply.charged, reply.balance, reply.replayed]).toEqual(["visa", 500, 199_500, false])
      const worked = yield* millrace.test.work({ room: "a/b ü", times: 3, tag: ["x", "y"], how: "at once" })
      expect([worked.data, worked.charged]).toEqual([{ room: "a/b ü", times: 3 }, 6_000])
      expect(bench.started).toEqual(["a/b ü"])
      const { data } = yield* millrace.account.billing()
      expect([data.balance, data.lots.map(({ remaining }) => remaining)]).toEqual([193_500, [193_500]])
    })
  )

  testing(
    "fails with tagged errors that the caller can act on",
    Effect.gen(function* () {
      const { millrace } = yield* opened({}, 1.5)
      const short = yield* Effect.flip(millrace.test.work({ room: "a", how: "at once" }))
      expect(short).toMatchObject({ _tag: "InsufficientCredits", required: 2, available: 1.5, shortfall: 0.5 })
      const message = yield* millrace.bin.lookup({ bin: "000000" }).pipe(
        Effect.map(({ data }) => data.scheme),
        Effect.catchTag("NotFound", ({ status }) => Effect.succeed(`not found: ${status}`))
      )
      expect(message).toBe("not found: 404")
      const dear = yield* Effect.flip(millrace.bin.lookup({ bin: "457173" }, { maxCost: Credits.of(499) }))
      expect(dear).toMatchObject({ _tag: "CostExceedsLimit" })
    })
  )

  testing(
    "waits on the current clock for as long as the server asks",
    Effect.gen(function* () {
      const { millrace, lines } = yield* opened({ rateLimit: { limit: 1, window: 60 } })
      yield* millrace.bin.lookup({ bin: "457173" })
      const second = yield* Effect.forkChild(millrace.bin.lookup({ bin: "457174" }))
      const refused = () => lines.filter((line) => line.includes('"status":429')).length
      yield* eventually(Effect.sync(refused), (count) => count > 0)
      yield* TestClock.adjust("2 minutes")
      expect((yield* Fiber.join(second)).data.bin).toBe("457174")
      expect(refused()).toBe(1)
    })
  )

  testing(
    "is cancelled and refunded when interrupted",
    Effect.gen(function* () {
      const { millrace, bench, balance, accountId } = yield* opened()
      const call = yield* Effect.forkChild(millrace.test.work({ room: "gone", how: "when told" }))
      yield* eventually(
        Effect.sync(() => bench.started),
        (started) => started.length === 1
      )
      yield* Fiber.interrupt(call)
      yield* eventually(balance(accountId), ({ available, held }) => available === 200_000 && held === 0)
      expect(bench.interrupted).toEqual(["gone"])
    })
  )

  testing(
    "runs once under the caller's own key",
    Effect.gen(function* () {
      const { millrace, bench } = yield* opened()
      yield* Deferred.succeed(bench.finish, undefined)
      const call = millrace.test.work({ room: "a", how: "when told" }, { idempotencyKey: "order-1" })
      const first = yield* call
      expect(yield* call).toEqual({ ...first, charged: Credits.zero, replayed: true })
      expect(bench.started).toEqual(["a"])
    })
  )
})

describe("a reply that is no answer of the API", () => {
  const client = (baseUrl: string) =>
    Effect.provide(EffectClient.make(api, { baseUrl, retry: { attempts: 2, base: 0 } }), FetchHttpClient.layer)

  testing(
    "fails: a broken connection, a gateway, data of another shape",
    Effect.gen(function* () {
      const { baseUrl, asked } = yield* answering([
        [502, {}, "Bad Gateway"],
        [502, {}, "Bad Gateway"],
        [200, {}, JSON.stringify({ status: "success", data: { matches: [{}] }, request: { id: "req" } })],
        [503, { "x-should-retry": "true" }, error("busy")],
        [200, {}, success]
      ])
      const millrace = yield* client(baseUrl)
      const call = millrace.grammar.check({ text: "a" })
      expect(yield* Effect.flip(call)).toMatchObject({ _tag: "UnexpectedAnswer", status: 502 })
      expect(asked).toHaveLength(2)
      expect(yield* Effect.flip(call)).toMatchObject({
        _tag: "UnexpectedAnswer",
        status: 200,
        message: /not have the shape/u,
        retryable: false
      })
      expect(yield* call).toEqual({
        data: { matches: [] },
        charged: 0,
        balance: undefined,
        requestId: "req",
        replayed: false,
        pending: false
      })
      expect(new Set(asked.map(({ key }) => key)).size).toBe(3)
      // Nothing listens at port 1 of this machine
      const nobody = yield* client("http://127.0.0.1:1")
      expect(yield* Effect.flip(nobody.bin.lookup({ bin: "457173" }))).toMatchObject({ _tag: "NoAnswer", retryable: true })
    })
  )

  testing(
    "is a defect if the request could not be sent",
    Effect.gen(function* () {
      const broken = yield* client("http://[")
      expect(Exit.hasDies(yield* Effect.exit(broken.bin.lookup({ bin: "457173" })))).toBe(true)
      const millrace = yield* client("http://127.0.0.1:1")
      expect(Exit.hasDies(yield* Effect.exit(millrace.test.work({ room: "..", how: "at once" })))).toBe(true)
    })
  )
})
