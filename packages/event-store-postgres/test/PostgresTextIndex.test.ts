import { PostgresTextIndex } from "@millrace/event-store-postgres"
import { Effect, Layer } from "effect"
import { describe, it } from "vitest"
import { textIndexPeersSuite, textIndexSuite } from "../../testing/src/TextIndexSuite.ts"
import { schema, schemaOfFile, url } from "./Postgres.ts"

const shared = schemaOfFile()

textIndexSuite(
  "postgres",
  () => Layer.unwrap(Effect.map(Effect.promise(url), (address) => PostgresTextIndex.layer({ url: address, schema: shared }))),
  { describe, it }
)

const twoPools = Effect.gen(function* () {
  const options = yield* schema
  return [yield* PostgresTextIndex.make(options), yield* PostgresTextIndex.make(options)] as const
})

textIndexPeersSuite("postgres", twoPools, { describe, it })
