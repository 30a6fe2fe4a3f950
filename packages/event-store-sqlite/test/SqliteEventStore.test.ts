import { join } from "node:path"
import { SqliteEventStore } from "@millrace/event-store-sqlite"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { eventStorePeersSuite, eventStoreSuite } from "../../testing/src/EventStoreSuite.ts"
import { inTemporaryFolder, temporaryFolder } from "./TemporaryFolder.ts"

eventStoreSuite("sqlite", () => inTemporaryFolder((filename) => SqliteEventStore.layer({ filename })), { describe, it })

eventStoreSuite("sqlite, indexed often", () => inTemporaryFolder((filename) => SqliteEventStore.layer({ filename, unindexed: 2 })), {
  describe,
  it
})

const twoConnections = (unindexed: number) =>
  Effect.gen(function* () {
    const filename = join(yield* temporaryFolder, "log.db")
    return [yield* SqliteEventStore.make({ filename, unindexed }), yield* SqliteEventStore.make({ filename, unindexed })] as const
  })

it("checks conditions", () =>
  Effect.gen(function* () {
    for (const { append } of yield* twoConnections(1_000)) expect(append.isConditional).toBe(true)
  }).pipe(Effect.scoped, Effect.runPromise))

eventStorePeersSuite("sqlite", twoConnections(1_000_000), { describe, it })
eventStorePeersSuite("sqlite, indexed often", twoConnections(3), { describe, it })
