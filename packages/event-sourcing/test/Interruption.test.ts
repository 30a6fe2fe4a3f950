/** A caller that is interrupted, at whatever moment, takes nothing from later callers: a stream, a lease, a wake, a rebuild, a transaction. */
import { Effect, Layer, Schema, type Scope } from "effect"
import { expect, it } from "vitest"
import * as Interruption from "../../testing/src/Interruption.ts"
import * as Aggregate from "../src/Aggregate.ts"
import { type EventStore, position, start } from "../src/EventStore.ts"
import * as GroupCommit from "../src/GroupCommit.ts"
import { WatchedHead } from "../src/Head.ts"
import * as Lease from "../src/Lease.ts"
import * as MemoryEventStore from "../src/MemoryEventStore.ts"
import * as MemoryStateStore from "../src/MemoryStateStore.ts"
import * as Projection from "../src/Projection.ts"
import type { StateStore } from "../src/StateStore.ts"
import { pay, till } from "./Till.ts"

type Stores = EventStore | StateStore

const atEachOperation = (title: string, made: Effect.Effect<Interruption.Interrupted<unknown, Stores>, unknown, Stores | Scope.Scope>) =>
  it(title, { timeout: 60_000 }, async () => {
    const fresh = Effect.flatMap(Layer.build(Layer.fresh(Layer.merge(MemoryEventStore.layer, MemoryStateStore.layer))), (context) =>
      Effect.map(Effect.provideContext(made, context), ({ interrupted, later }) => ({
        interrupted: Effect.provideContext(interrupted, context),
        later: Effect.provideContext(later, context)
      }))
    )
    expect(await Effect.runPromise(Interruption.atEachOperation(fresh))).toBeGreaterThan(2)
  })

atEachOperation(
  "the next command of a stream is decided, and what it reads is confirmed",
  Effect.map(Aggregate.make(till), ({ begin, execute, read }) => ({
    interrupted: begin("a", pay("first", 1)),
    later: Effect.gen(function* () {
      const { events, revision } = yield* execute("a", pay("next", 1))
      expect(events).toHaveLength(1)
      expect((yield* read("a")).revision).toBe(revision)
    })
  }))
)

atEachOperation(
  "the next host has a lease as soon as it looks",
  Effect.sync(() => {
    const held = Lease.hold("work", { ttl: "10 minutes", poll: "5 millis" })(() => Effect.yieldNow)
    return { interrupted: held, later: held }
  })
)

atEachOperation(
  "the next follower of a log that is polled is woken",
  Effect.gen(function* () {
    let end = start
    const look = Effect.sync(() => end)
    const head = new WatchedHead(start, look, 1, yield* Effect.context<Scope.Scope>())
    const written = Effect.sync(() => {
      end = position("1")
    })
    return { interrupted: Effect.timeoutOption(head.past(start), 5), later: Effect.andThen(written, head.past(start)) }
  })
)

const counted: Projection.Definition<number> = {
  name: "counted",
  version: 1,
  state: Schema.Int,
  initial: () => 0,
  evolve: (count) => count + 1
}

atEachOperation(
  "a projection is rebuilt for the next who asks, and sleeps again",
  Effect.map(Projection.make(counted, { idleAfter: "20 millis" }), (projection) => {
    const used = Effect.andThen(projection.rebuild, projection.keep(projection.caughtUp()))
    return { interrupted: used, later: used }
  })
)

atEachOperation(
  "the next request has its transaction",
  Effect.gen(function* () {
    const send = (group: ReadonlyArray<number>) => Effect.as(Effect.yieldNow, group)
    const submit = yield* GroupCommit.make<number, number, never>({ send, closed: () => undefined as never, count: 10, key: String })
    return { interrupted: submit(1), later: Effect.map(submit(1), (answer) => expect(answer).toBe(1)) }
  })
)
