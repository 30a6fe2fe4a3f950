import { PostgresEventStore } from "@millrace/event-store-postgres"
import { Effect, Layer } from "effect"
import { describe, it } from "vitest"
import { eventStorePeersSuite, eventStoreSuite } from "../../testing/src/EventStoreSuite.ts"
import { schema, schemaOfFile, url } from "./Postgres.ts"

const shared = schemaOfFile()

// All tests of the suite share one log, as in production, so it is not empty
eventStoreSuite(
  "postgres",
  () => Layer.unwrap(Effect.map(Effect.promise(url), (address) => PostgresEventStore.layer({ url: address, schema: shared }))),
  { describe, it }
)

const twoPools = Effect.gen(function* () {
  const options = yield* schema
  return [yield* PostgresEventStore.make(options), yield* PostgresEventStore.make(options)] as const
})

eventStorePeersSuite("postgres", twoPools, { describe, it })
