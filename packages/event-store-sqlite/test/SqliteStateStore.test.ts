import { join } from "node:path"
import { SqliteStateStore } from "@millrace/event-store-sqlite"
import { Effect } from "effect"
import { describe, it } from "vitest"
import { stateStorePeersSuite, stateStoreSuite } from "../../testing/src/StateStoreSuite.ts"
import { inTemporaryFolder, temporaryFolder } from "./TemporaryFolder.ts"

stateStoreSuite("sqlite", () => inTemporaryFolder((filename) => SqliteStateStore.layer({ filename })), { describe, it })

const twoConnections = Effect.gen(function* () {
  const filename = join(yield* temporaryFolder, "state.db")
  return [yield* SqliteStateStore.make({ filename }), yield* SqliteStateStore.make({ filename })] as const
})

stateStorePeersSuite("sqlite", twoConnections, { describe, it })
