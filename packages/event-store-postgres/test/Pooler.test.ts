/** Stores behind a pooler in transaction mode, where session state is lost between two statements. */
import { EventStore } from "@millrace/event-sourcing"
import { PostgresEventStore, PostgresStateStore } from "@millrace/event-store-postgres"
import { Effect, Stream } from "effect"
import { describe, expect, it } from "vitest"
import { eventStorePeersSuite } from "../../testing/src/EventStoreSuite.ts"
import { stateStorePeersSuite } from "../../testing/src/StateStoreSuite.ts"
import * as Connections from "../src/Connections.ts"
import { schema } from "./Postgres.ts"
import { transactionPooler } from "./TransactionPooler.ts"
import { event, idsOf, until } from "./Writing.ts"

const pooled = Effect.gen(function* () {
  const direct = yield* schema
  const pooler = yield* transactionPooler(direct.url, 3)
  return { pooler, direct, options: { schema: direct.schema, url: `postgres://any@127.0.0.1:${pooler.port}/postgres` } }
})

const twoStores = Effect.gen(function* () {
  const { options } = yield* pooled
  return [yield* PostgresEventStore.make(options), yield* PostgresEventStore.make(options)] as const
})

eventStorePeersSuite("postgres behind a pooler", twoStores, { describe, it })

const twoStates = Effect.gen(function* () {
  const { options } = yield* pooled
  return [yield* PostgresStateStore.make(options), yield* PostgresStateStore.make(options)] as const
})

stateStorePeersSuite("postgres behind a pooler", twoStates, { describe, it })

describe("postgres behind a pooler", () => {
  it("shares transactions among concurrent reads and writes", () =>
    Effect.gen(function* () {
      const { options, pooler } = yield* pooled
      const store = yield* PostgresEventStore.make({ ...options, listenUrl: false, prepare: false })
      const state = yield* PostgresStateStore.make({ ...options, prepare: false })
      const many = Array.from({ length: 300 }, (_, i) => i)
      const transactions = <E>(one: (i: number) => Effect.Effect<unknown, E>) =>
        Effect.gen(function* () {
          const before = pooler.transactions()
          yield* Effect.forEach(many, one, { concurrency: "unbounded" })
          return pooler.transactions() - before
        })
      expect(yield* transactions((i) => store.append(`a-${i}`, "noStream", [event()]))).toBeLessThanOrEqual(2)
      expect(yield* transactions((i) => store.lastRevision(`a-${i}`))).toBeLessThanOrEqual(2)
      expect(yield* transactions((i) => store.saveSnapshot(`s-${i}`, { revision: 0, data: "{}" }))).toBeLessThanOrEqual(4)
      const put = (i: number) => state.write([{ _tag: "put", space: "s", key: `${i}`, value: new Uint8Array([i % 256]) }])
      expect(yield* transactions(put)).toBeLessThanOrEqual(2)
      expect(yield* transactions((i) => state.get("s", `${i}`))).toBeLessThanOrEqual(7)
    }).pipe(Effect.scoped, Effect.runPromise))

  it("prepares nothing more once the server does not know a prepared statement", () =>
    Effect.gen(function* () {
      const { direct, options, pooler } = yield* pooled
      const upper = Connections.calling("pg_catalog", "upper", "text")
      const named = (connections: Connections.Connections) =>
        Effect.map(connections.read<{ readonly name: string }>("SELECT name FROM pg_prepared_statements"), (rows) =>
          rows.map(({ name }) => name)
        )
      const calls = (connections: Connections.Connections) =>
        Effect.forEach(["a", "b", "c", "d"], (text) =>
          Effect.map(connections.read<{ readonly upper: string }>(upper, text), ([row]) => row?.upper)
        )
      const known = yield* Connections.make(direct)
      expect(yield* calls(known)).toEqual(["A", "B", "C", "D"])
      expect(yield* named(known)).toEqual(["pg_catalog.upper"])
      const asked = yield* Connections.make({ ...direct, prepare: false })
      expect(yield* calls(asked)).toEqual(["A", "B", "C", "D"])
      expect(yield* named(asked)).toEqual([])
      const changing = yield* Connections.make(options)
      const before = pooler.transactions()
      expect(yield* calls(changing)).toEqual(["A", "B", "C", "D"])
      // The second call was refused, and sent again
      expect(pooler.transactions() - before).toBe(5)
    }).pipe(Effect.scoped, Effect.runPromise))

  for (const [how, listens] of [
    ["listening on a connection of its own", true],
    ["only looking", false]
  ] as const) {
    it(`follows what another process appends, ${how}`, () =>
      Effect.gen(function* () {
        const { options, direct, pooler } = yield* pooled
        const store = yield* PostgresEventStore.make({ ...options, listenUrl: listens ? direct.url : false })
        const other = yield* PostgresEventStore.make({ ...options, listenUrl: listens ? direct.url : false })
        const seen: Array<EventStore.RecordedEvent> = []
        yield* Effect.forkScoped(
          Stream.runForEach(store.subscribe(EventStore.start), ({ events }) => Effect.sync(() => seen.push(...events)))
        )
        const events = Array.from({ length: 20 }, () => event())
        for (const [i, one] of events.entries()) {
          yield* other.append("a-1", i === 0 ? "noStream" : i - 1, [one])
          yield* until(
            "it is followed",
            Effect.sync(() => seen.length === i + 1)
          )
        }
        expect(idsOf(seen)).toEqual(idsOf(events))
        expect(pooler.transactions()).toBeGreaterThan(40)
      }).pipe(Effect.scoped, Effect.runPromise))
  }
})
