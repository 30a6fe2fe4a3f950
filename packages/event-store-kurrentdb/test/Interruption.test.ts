/** A caller that is interrupted, at whatever moment, takes nothing from later callers: a turn, an answer, the subscription, a fresh client. */
import { Effect, Fiber, Scheduler, type Scope } from "effect"
import { expect, it } from "vitest"
import { Fault } from "../src/Driver.ts"
import * as Turns from "../src/Turns.ts"
import { failsafe, open, openOn } from "./Store.ts"

/** Lets the first fiber that it runs give way once, before an operation counted from zero, and interrupts it meanwhile. */
class Interrupting extends Scheduler.MixedScheduler {
  #left: number
  #fiber: Fiber.Fiber<unknown, unknown> | undefined

  constructor(operation: number) {
    super()
    this.#left = operation
  }

  /** Whether the fiber had as many operations. */
  get hasInterrupted(): boolean {
    return this.#left < 0
  }

  override shouldYield(fiber: Fiber.Fiber<unknown, unknown>): boolean {
    this.#fiber ??= fiber
    if (fiber !== this.#fiber || this.#left-- !== 0) return false
    queueMicrotask(() => fiber.interruptUnsafe())
    return true
  }
}

interface Case {
  readonly interrupted: Effect.Effect<unknown, unknown>
  readonly later: Effect.Effect<unknown, unknown>
}

/** Makes the case once for each operation of its first caller, and interrupts the caller at this operation. */
const atEachOperation = (title: string, make: Effect.Effect<Case, unknown, Scope.Scope>) =>
  it(title, () => {
    const from = (operation: number): Effect.Effect<number, unknown> =>
      Effect.gen(function* () {
        const { interrupted, later } = yield* make
        const scheduler = new Interrupting(operation)
        const fiber = yield* Effect.forkDetach(Effect.provideService(interrupted, Scheduler.Scheduler, scheduler))
        yield* failsafe(Fiber.await(fiber))
        yield* failsafe(later)
        return scheduler.hasInterrupted
      }).pipe(
        Effect.scoped,
        Effect.flatMap((hasInterrupted) => (hasInterrupted ? from(operation + 1) : Effect.succeed(operation)))
      )
    return Effect.runPromise(Effect.map(from(0), (operations) => expect(operations).toBeGreaterThan(5)))
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
