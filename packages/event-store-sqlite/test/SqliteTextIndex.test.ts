import { join } from "node:path"
import { SqliteTextIndex } from "@millrace/event-store-sqlite"
import { Effect } from "effect"
import { describe, it } from "vitest"
import { textIndexPeersSuite, textIndexSuite } from "../../testing/src/TextIndexSuite.ts"
import { inTemporaryFolder, temporaryFolder } from "./TemporaryFolder.ts"

textIndexSuite("sqlite", () => inTemporaryFolder((filename) => SqliteTextIndex.layer({ filename })), { describe, it })

const twoConnections = Effect.gen(function* () {
  const filename = join(yield* temporaryFolder, "search.db")
  return [yield* SqliteTextIndex.make({ filename }), yield* SqliteTextIndex.make({ filename })] as const
})

textIndexPeersSuite("sqlite", twoConnections, { describe, it })
