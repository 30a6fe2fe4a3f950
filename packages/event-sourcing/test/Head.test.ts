/** The end of a log that is polled: when, and by whose clock. */
import { Clock, Effect, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { expect, test } from "vitest"
import { EventStore, positionOf, WatchedHead } from "../src/index.ts"

test("a log is polled while a follower waits, by the clock of the store", async () => {
  let polls = 0
  let end = EventStore.start
  const look = Effect.sync(() => {
    polls++
    return end
  })
  await Effect.gen(function* () {
    const head = new WatchedHead(end, look, "1 second", yield* Effect.context<Scope.Scope>())
    yield* TestClock.adjust("1 hour")
    expect(polls).toBe(0)

    // The clock of the follower does not move
    const still = Clock.Clock.of({ ...(yield* Clock.Clock), sleep: () => Effect.never })
    const waiting = yield* Effect.forkChild(Effect.provideService(head.past(end), Clock.Clock, still))
    yield* TestClock.adjust("3 seconds")
    expect(polls).toBe(3)
    end = positionOf(1)
    yield* TestClock.adjust("1 second")
    expect(waiting.pollUnsafe()?._tag).toBe("Success")

    yield* TestClock.adjust("1 hour")
    expect(polls).toBe(4)
  }).pipe(Effect.scoped, Effect.provide(TestClock.layer()), Effect.runPromise)
})
