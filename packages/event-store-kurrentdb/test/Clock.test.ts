/** A host whose clock differs from the server's. The host learns the server's time from the date of an event that the server writes. */
import { EventStore } from "@millrace/event-sourcing"
import { KurrentDbEventStore } from "@millrace/event-store-kurrentdb"
import { WrongClock } from "@millrace/testing"
import { Clock, Context, Effect, Exit, Layer, Logger, type Scope, Stream } from "effect"
import { describe, expect, test } from "vitest"
import { failsafe, freshEvents, freshStream } from "./Store.ts"
import { KurrentDbStandIn } from "./standin/index.ts"

/** A host on a node, with a clock of its own. */
const hostOn = (connection: string, apart: WrongClock.Apart) =>
  Effect.gen(function* () {
    const clock = yield* WrongClock.make(apart)
    const built = Layer.build(Layer.fresh(KurrentDbEventStore.layer({ connection })))
    return Context.get(yield* Effect.provideService(built, Clock.Clock, clock), EventStore.EventStore)
  })

const testing = (name: string, body: (node: KurrentDbStandIn.KurrentDbStandIn) => Effect.Effect<unknown, unknown, Scope.Scope>) =>
  test(name, () =>
    Effect.runPromise(
      KurrentDbStandIn.serve().pipe(Effect.flatMap(body), failsafe, Effect.scoped, Effect.asVoid, Effect.provide(Logger.layer([])))
    )
  )

const append = (store: EventStore.EventStore["Service"]) => Effect.suspend(() => store.append(freshStream(), "noStream", freshEvents(1)))
const isTaken = (store: EventStore.EventStore["Service"]) => Effect.map(Effect.exit(append(store)), Exit.isSuccess)

describe("a host whose clock is a minute off", () => {
  for (const [ahead, text] of [
    [60_000, "ahead of"],
    [-60_000, "behind"]
  ] as const)
    testing(`refuses appends, and reports that its clock is ${text} its store's`, (node) =>
      Effect.gen(function* () {
        const apart: WrongClock.Apart = { ahead }
        const store = yield* hostOn(node.url, apart)
        const refused = yield* Effect.flip(append(store))
        expect({ ...refused }).toMatchObject({ _tag: "StoreUnavailable", why: "clock" })
        expect("reason" in refused && refused.reason).toMatch(
          new RegExp(`^the clock of this host is (?:59|60)\\.\\d s ${text} its store's`, "u")
        )
        expect(yield* Effect.map(store.clock?.status ?? Effect.die("no clock"), ({ trouble }) => trouble)).toContain(text)
        expect(yield* isTaken(yield* hostOn(node.url, { ahead: 0 }))).toBe(true)
        apart.ahead = 0
        expect(yield* isTaken(store)).toBe(true)
      })
    )
})

describe("the events that tell the server's time", () => {
  testing("are not part of the log, and the server keeps only the newest 100", (node) =>
    Effect.gen(function* () {
      const hosts = yield* Effect.forEach([1, 2, 3, 4], () => hostOn(node.url, { ahead: 0 }))
      // All ask at once
      expect(yield* Effect.forEach(hosts, isTaken, { concurrency: "unbounded" })).toEqual([true, true, true, true])
      const [store] = hosts
      if (store === undefined) return
      const statuses = yield* Effect.forEach(hosts, ({ clock }) => clock?.status ?? Effect.die("no clock"))
      for (const { ahead } of statuses) expect(Math.abs(ahead ?? Number.NaN)).toBeLessThan(2_000)
      const all = yield* Stream.runCollect(store.readAll(EventStore.start))
      expect(all.map(({ type }) => type)).toEqual(["Happened", "Happened", "Happened", "Happened"])
      expect(yield* store.head).toBe(all.at(-1)?.position)
      const asked = yield* Stream.runCollect(store.readStream("clock-server"))
      expect(asked.map(({ type }) => type)).toEqual(["$clock", "$clock", "$clock", "$clock"])
      const [bound] = yield* Stream.runCollect(store.readStream("$$clock-server" as never))
      expect(JSON.parse(bound?.data ?? "{}")).toEqual({ $maxCount: 100 })
    })
  )

  testing("are not written by a host that only reads", (node) =>
    Effect.gen(function* () {
      const store = yield* hostOn(node.url, { ahead: 0 })
      yield* store.head
      yield* Stream.runCollect(store.readAll(EventStore.start))
      expect(node.calls("Append") + node.calls("BatchAppend")).toBe(0)
    })
  )
})
