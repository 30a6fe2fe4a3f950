import { join } from "node:path"
import { SqliteEventStore } from "@millrace/event-store-sqlite"
import { Effect } from "effect"
import { describe, it } from "vitest"
import { eventStorePeersSuite, eventStoreSuite } from "../../testing/src/EventStoreSuite.ts"
import { inTemporaryFolder, temporaryFolder } from "./TemporaryFolder.ts"

eventStoreSuite("sqlite", () => inTemporaryFolder((filename) => SqliteEventStore.layer({ filename })), { describe, it })

const twoConnections = Effect.gen(function* () {
  const filename = join(yield* temporaryFolder, "log.db")
  return [yield* SqliteEventStore.make({ filename }), yield* SqliteEventStore.make({ filename })] as const
})

eventStorePeersSuite("sqlite", twoConnections, { describe, it })
