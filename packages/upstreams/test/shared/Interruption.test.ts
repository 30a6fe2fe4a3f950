/** A call that is interrupted, at whatever moment, keeps nothing that others share. */
import { Interruption } from "@millrace/testing"
import { Effect } from "effect"
import { expect, it } from "vitest"
import * as Batches from "../../src/shared/Batches.ts"
import * as FairTurns from "../../src/shared/FairTurns.ts"
import * as InFlight from "../../src/shared/InFlight.ts"

const turns = FairTurns.make([1], { upstream: "test", waitLimit: "1 minute", queueLimit: 1 })

it("the next call gets the resource", async () => {
  const made = Effect.map(turns, ({ use }) => {
    const call = use("acc_1", () => Effect.yieldNow)
    return { interrupted: call, later: use("acc_2", Effect.succeed) }
  })
  expect(await Effect.runPromise(Interruption.atEachOperation(made))).toBeGreaterThan(5)
})

it("the next call is admitted", async () => {
  const made = Effect.map(turns, ({ admit }) => ({ interrupted: admit("acc_1")(Effect.yieldNow), later: admit("acc_2")(Effect.void) }))
  expect(await Effect.runPromise(Interruption.atEachOperation(made))).toBeGreaterThan(5)
})

it("the next read gets its reply", async () => {
  const made = Effect.map(InFlight.make, (shared) => {
    const read = shared("key", Effect.as(Effect.yieldNow, 7))
    return { interrupted: read, later: Effect.map(read, ({ value }) => expect(value).toBe(7)) }
  })
  expect(await Effect.runPromise(Interruption.atEachOperation(made))).toBeGreaterThan(5)
})

it("the next request is sent", async () => {
  const send = (requests: ReadonlyArray<number>) => Effect.as(Effect.yieldNow, requests)
  const made = Effect.map(Batches.make({ send, lanes: 1, count: 2, isLarge: () => false }), (ask) => ({
    interrupted: ask(1),
    later: Effect.map(ask(2), (answer) => expect(answer).toBe(2))
  }))
  // It begins, and waits: there is no moment in between
  expect(await Effect.runPromise(Interruption.atEachOperation(made))).toBe(2)
})
