/** Which hosts see each other while the store is slow or refuses their rows: a host may be gone for a while, and does not come and go. */
import { MemoryStateStore, StateStore } from "@millrace/event-sourcing"
import { Effect, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { expect, test } from "vitest"
import * as Members from "../../src/leading/Members.ts"

type Write = StateStore.StateStore["Service"]["write"]

const REFUSED = Effect.fail(new StateStore.StateUnavailable({ reason: "no space left on device" }))

/** Two hosts, whose ways to the store a test may change. */
const twoHosts = Effect.gen(function* () {
  const store = yield* MemoryStateStore.make
  const start = (id: string, port: number) =>
    Effect.gen(function* () {
      const host = { slow: 0, refuses: false, seen: [] as Array<string> }
      const way = <A, E>(call: Effect.Effect<A, E>) => Effect.suspend(() => (host.slow === 0 ? call : Effect.delay(call, host.slow)))
      const write: Write = (changes) => way(Effect.suspend(() => (host.refuses ? REFUSED : store.write(changes))))
      const states = StateStore.StateStore.of({ ...store, write, list: (...of) => way(store.list(...of)) })
      const note = (others: ReadonlyArray<Members.Member>) =>
        Effect.sync(() => {
          const now = others.map(({ id }) => id).join()
          if (host.seen.at(-1) !== now) host.seen.push(now)
        })
      const following = Members.follow({ id, address: { host: "127.0.0.1", port } }, note)
      yield* Effect.forkScoped(Effect.provideService(following, StateStore.StateStore, states))
      return host
    })
  const hosts = { one: yield* start("one", 1), other: yield* start("other", 2) }
  yield* pass(10)
  expect([hosts.one.seen.at(-1), hosts.other.seen.at(-1)]).toEqual(["other", "one"])
  hosts.one.seen.splice(0, Number.POSITIVE_INFINITY, "other")
  hosts.other.seen.splice(0, Number.POSITIVE_INFINITY, "one")
  return hosts
})

/** Lets seconds pass, one after the other. */
const pass = (seconds: number) => Effect.replicateEffect(Effect.andThen(TestClock.adjust("1 second"), Effect.yieldNow), seconds)

const testing = (name: string, effect: Effect.Effect<void, unknown, Scope.Scope>) =>
  test(name, () => Effect.runPromise(Effect.scoped(Effect.provide(effect, TestClock.layer()))))

testing(
  "a host whose row is refused, as on a full disk, is gone after four reads, and back once it is written again; it sees the others",
  Effect.gen(function* () {
    const { one, other } = yield* twoHosts
    other.refuses = true
    yield* pass(3)
    expect(one.seen).toEqual(["other"])
    yield* pass(60)
    expect(one.seen).toEqual(["other", ""])
    other.refuses = false
    yield* pass(2)
    expect(one.seen).toEqual(["other", ""])
    yield* pass(5)
    expect([one.seen, other.seen]).toEqual([["other", "", "other"], ["one"]])
  })
)

testing(
  "a host that writes its row seldom, or whose writes fail now and then, is gone once until it is steady",
  Effect.gen(function* () {
    const { one, other } = yield* twoHosts
    // A write and a read of four seconds each
    other.slow = 4_000
    yield* pass(120)
    other.slow = 0
    for (let i = 0; i < 10; i++) {
      other.refuses = true
      yield* pass(5)
      other.refuses = false
      yield* pass(2)
    }
    expect(one.seen).toEqual(["other", ""])
    yield* pass(10)
    expect([one.seen, other.seen]).toEqual([["other", "", "other"], ["one"]])
  })
)

testing(
  "a store that is slow for all hosts, or that fails some writes, makes nobody leave",
  Effect.gen(function* () {
    const { one, other } = yield* twoHosts
    for (const slow of [500, 3_000, 8_000]) {
      one.slow = other.slow = slow
      yield* pass(60)
    }
    one.slow = other.slow = 0
    yield* pass(20)
    for (let i = 0; i < 10; i++) {
      one.refuses = other.refuses = true
      yield* pass(2)
      one.refuses = other.refuses = false
      yield* pass(2)
    }
    expect([one.seen, other.seen]).toEqual([["other"], ["one"]])
  })
)
