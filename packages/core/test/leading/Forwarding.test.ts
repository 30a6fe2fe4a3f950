/** What a caller is told of each outcome of a forwarded call, and what is stored for it. */
import { StateStore } from "@millrace/event-sourcing"
import { Effect, Exit, Schema } from "effect"
import { expect, test } from "vitest"
import type { CallInDoubt } from "../../src/billing/CallsInDoubt.ts"
import { OutcomeUnknown, type Reply } from "../../src/billing/charge/Call.ts"
import { forwardable } from "../../src/leading/Codec.ts"
import { forward } from "../../src/leading/Forwarding.ts"
import type { Outcome } from "../../src/leading/Link.ts"
import type { Forwarded } from "../../src/leading/Message.ts"
import * as Operation from "../../src/work/Operation.ts"
import { NotFound } from "../../src/work/OperationError.ts"

const operation = Operation.make("test.say", {
  summary: "Says",
  route: { method: "POST", path: "/say", body: { text: Schema.String } },
  price: 1,
  success: Schema.Struct({}),
  run: () => Effect.succeed({ data: {} })
})

const replyOf = (data: string): Reply => ({ requestId: "req_1", data, replayed: false })

/** Forwards a call over a link on which it has this outcome; undefined if it cannot be sent. */
const forwarded = async (outcome: Outcome | undefined, key: string | undefined, input: unknown = { text: "a" }) => {
  const sent: Array<Forwarded> = []
  const promised: Array<Omit<CallInDoubt, "at">> = []
  let adds = 0
  const needs = {
    callsInDoubt: {
      // The store answers only when it is asked again
      add: (call: Omit<CallInDoubt, "at">) =>
        Effect.suspend(() => {
          if (++adds === 1) return Effect.fail(new StateStore.StateUnavailable({ reason: "gone" }))
          promised.push(call)
          return Effect.void
        }),
      remove: () => Effect.void,
      page: () => Effect.succeed([])
    },
    count: () => {}
  }
  const link = {
    call: (call: Forwarded, _: number, told: (outcome: Outcome) => void) => {
      if (outcome === undefined) return undefined
      sent.push(call)
      queueMicrotask(() => told(outcome))
      return () => {}
    }
  }
  const known = forwardable(operation)
  if (known === undefined) throw new Error("It can be forwarded")
  const caller = { accountId: "acc_1", requestId: "req_1", ...(key === undefined ? {} : { idempotency: { key, request: "a" } }) }
  const exit = await Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        const scope = yield* Effect.scope
        return yield* Effect.exit(forward({ ...needs, scope }, link, known, input, caller, Effect.succeed(replyOf("here"))))
      })
    )
  )
  return { exit, sent, promised }
}

test.each<readonly [string, Outcome | undefined, unknown]>([
  ["cannot be sent", undefined, { text: "a" }],
  ["was not begun", { _tag: "NotBegun" }, { text: "a" }],
  ["has no JSON form", { _tag: "Lost" }, { text: 5 }]
])("a call that %s runs here", async (_, outcome, input) => {
  const { exit, promised } = await forwarded(outcome, undefined, input)
  expect(exit).toEqual(Exit.succeed(replyOf("here")))
  expect(promised).toEqual([])
})

test("a call that ended is told as it ended", async () => {
  const { exit, sent } = await forwarded({ _tag: "Ended", ended: { reply: replyOf("there") } }, undefined)
  expect(exit).toEqual(Exit.succeed(replyOf("there")))
  expect(sent).toMatchObject([{ operation: "test.say", input: { text: "a" }, caller: { accountId: "acc_1", requestId: "req_1" } }])
  const failed = await forwarded({ _tag: "Ended", ended: { error: { _tag: "NotFound", resource: "word" } } }, undefined)
  expect([failed.exit, failed.promised]).toEqual([Exit.fail(new NotFound({ resource: "word" })), []])
})

test.each<readonly [string, Outcome]>([
  ["was lost", { _tag: "Lost" }],
  ["was interrupted at its leader, which may have charged it", { _tag: "Ended", ended: { interrupted: true } }]
])("a call that %s has an unknown outcome; without a key it is promised to be free", async (_, outcome) => {
  const { exit, promised, sent } = await forwarded(outcome, undefined)
  expect(exit).toEqual(Exit.fail(new OutcomeUnknown()))
  expect(promised).toEqual([{ accountId: "acc_1", requestId: "req_1", reservationId: sent[0]?.caller.reservationId }])
  expect(promised[0]?.reservationId).toMatch(/^res_/u)
  const keyed = await forwarded(outcome, "key")
  expect([keyed.exit, keyed.promised]).toEqual([Exit.fail(new OutcomeUnknown()), []])
})
