/** The reasons of failed calls for operators: in the host's log, and sealed beside the event that released the hold. */
import { EventStore } from "@millrace/event-sourcing"
import { Effect, Logger, Schema, Stream } from "effect"
import { describe, expect } from "vitest"
import * as Operation from "../../src/Operation.ts"
import { ofAccount } from "../../src/vault/Vault.ts"
import { UpstreamUnavailable } from "../../src/work/OperationError.ts"
import { type Stores, setting, testing, told } from "./Bench.ts"

interface Line {
  readonly level: string
  readonly message: ReadonlyArray<unknown>
}

const logging = <A, E, R>(lines: Array<Line>, effect: Effect.Effect<A, E, R>) =>
  Effect.provide(
    effect,
    Logger.layer([Logger.make(({ logLevel, message }) => void lines.push({ level: logLevel, message: [message].flat() }))])
  )

const Metadata = Schema.fromJsonString(Schema.Struct({ failure: Schema.optionalKey(Schema.String) }))

/** The opened reasons beside the events of accounts. */
const failuresIn = ({ events }: Stores, decode: (sealed: string) => Effect.Effect<string, unknown>) =>
  Effect.gen(function* () {
    const all = yield* Stream.runCollect(events.readAll(EventStore.start))
    const sealed = all.flatMap(({ metadata, type }) => {
      const { failure } = Schema.decodeUnknownSync(Metadata)(metadata)
      return failure === undefined ? [] : [{ type, failure }]
    })
    return yield* Effect.forEach(sealed, ({ type, failure }) => Effect.map(decode(failure), (reason) => ({ type, reason })))
  })

describe("the reason of an upstream's failure", () => {
  testing(
    "is logged with the request's id and sealed beside the refund, without the input",
    Effect.gen(function* () {
      const { shared, bench, here, accountId } = yield* setting()
      const lines: Array<Line> = []
      bench.answer = () => Effect.fail(new UpstreamUnavailable({ upstream: "bench", reason: "503 for SECRET-QUESTION from 10.1.2.3" }))
      const call = here.call(accountId, { text: "secret-question", requestId: "req_a" })
      expect(yield* told(logging(lines, call))).toBe("UpstreamUnavailable")
      expect(lines).toEqual([
        {
          level: "Warn",
          message: [
            "An upstream failed",
            { requestId: "req_a", accountId, operation: "bench.work", reason: "503 for [input] from 10.1.2.3" }
          ]
        }
      ])
      const opened = yield* failuresIn(shared, (sealed) => here.vault.open(ofAccount(accountId), "failure", sealed))
      expect(opened).toEqual([{ type: "Refunded", reason: "503 for [input] from 10.1.2.3" }])
    })
  )

  testing(
    "is logged as an error of the operation if its result breaks its schema or it returns no Effect, and no circuit opens",
    Effect.gen(function* () {
      const { bench, here, accountId } = yield* setting({ breaker: { failures: 2 } })
      const lines: Array<Line> = []
      const { answer } = bench
      bench.answer = () => Effect.succeed({ data: { text: "half", count: 0.5 } })
      for (let i = 0; i < 5; i++) expect(yield* told(logging(lines, here.call(accountId)))).toBe("OperationFailed")
      // As a host in JavaScript may
      const run = (() => Promise.resolve({ data: 1 })) as unknown as () => Effect.Effect<{ data: number }>
      const route = { method: "GET", path: "/promise" } as const
      const operation = Operation.make("bench.work", { summary: "Promises", route, success: Schema.Int, run })
      const called = here.charge.run(operation, {}, { accountId, requestId: "req" })
      expect(yield* Effect.flip(logging(lines, called))).toMatchObject({
        _tag: "OperationFailed",
        message: "The operation bench.work is faulty: run returned a Promise; it must return an Effect"
      })
      expect(new Set(lines.map(({ level, message }) => `${level} ${String(message[0])}`))).toEqual(
        new Set(["Error An operation is faulty"])
      )
      bench.answer = answer
      expect(yield* told(here.call(accountId))).toBe("reply")
    })
  )

  testing(
    "is not logged again for calls that an open circuit refuses",
    Effect.gen(function* () {
      const { bench, here, accountId } = yield* setting({ breaker: { failures: 2 } })
      const lines: Array<Line> = []
      bench.answer = () => Effect.fail(new UpstreamUnavailable({ upstream: "bench", reason: "down" }))
      for (let i = 0; i < 20; i++) expect(yield* told(logging(lines, here.call(accountId)))).toBe("UpstreamUnavailable")
      expect(lines).toHaveLength(2)
    })
  )
})
