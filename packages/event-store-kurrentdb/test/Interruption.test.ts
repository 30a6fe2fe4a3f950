/** A caller that is interrupted, at whatever moment, takes nothing from later callers: a turn, an answer, the subscription, a fresh client. */
import { Interruption } from "@millrace/testing"
import { Effect, type Scope } from "effect"
import { expect, it } from "vitest"
import { Fault } from "../src/Driver.ts"
import * as Turns from "../src/Turns.ts"
import { open, openOn } from "./Store.ts"

const atEachOperation = (title: string, made: Effect.Effect<Interruption.Interrupted, unknown, Scope.Scope>) =>
  it(title, async () => {
    expect(await Effect.runPromise(Interruption.atEachOperation(made))).toBeGreaterThan(5)
  })

atEachOperation(
  "the next append to a stream gets its turn",
  Effect.sync(() => {
    const inTurn = Turns.make(10_000, () => Effect.succeed(0))
    const send = Effect.as(Effect.yieldNow, { revision: 0, position: undefined })
    return { interrupted: inTurn("facts-1", "noStream", "a", send), later: inTurn("facts-1", 0, "b", send) }
  })
)

atEachOperation(
  "the next caller gets the answer to a shared request",
  Effect.sync(() => {
    const ask = Turns.shared(() => Effect.as(Effect.yieldNow, 7))
    return { interrupted: ask("facts-1"), later: Effect.map(ask("facts-1"), (answer) => expect(answer).toBe(7)) }
  })
)

atEachOperation(
  "the next follower has a subscription",
  Effect.map(open(), ({ db }) => ({
    interrupted: db.feed.begin,
    later: Effect.andThen(db.feed.begin, Effect.repeat(Effect.andThen(Effect.sleep(1), db.status), { until: ({ connected }) => connected }))
  }))
)

atEachOperation(
  "the next call has a fresh client if one was due",
  Effect.gen(function* () {
    const { clients } = (yield* openOn("kurrentdb://127.0.0.1:1?tls=false")).db
    const driver = clients.call((used) => Effect.succeed(used))
    const first = yield* driver
    return {
      interrupted: clients.call(() => Effect.fail(new Fault({ kind: "noAnswer", message: "silence" }))),
      later: Effect.map(driver, (used) => expect(used !== first).toBe(clients.renewals() > 0))
    }
  })
)
