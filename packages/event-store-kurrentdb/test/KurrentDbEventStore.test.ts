import { KurrentDb, KurrentDbEventStore } from "@millrace/event-store-kurrentdb"
import { Effect, Layer } from "effect"
import { describe, it, vi } from "vitest"
import { eventStorePeersSuite, eventStoreSuite } from "../../testing/src/EventStoreSuite.ts"
import { address } from "./Node.ts"

// The thousand appends of one test run one after another, two calls each, and the machine may be busy
vi.setConfig({ testTimeout: 120_000 })

eventStoreSuite("kurrentdb", () => Layer.unwrap(Effect.map(address, (connection) => KurrentDbEventStore.layer({ connection }))), {
  describe,
  it
})

const open = (connection: string) =>
  Effect.flatMap(KurrentDb.make({ connection }), (db) => Effect.provideService(KurrentDbEventStore.make, KurrentDb.KurrentDb, db))

const twoHosts = Effect.gen(function* () {
  const connection = yield* address
  return [yield* open(connection), yield* open(connection)] as const
})

eventStorePeersSuite("kurrentdb", twoHosts, { describe, it })
