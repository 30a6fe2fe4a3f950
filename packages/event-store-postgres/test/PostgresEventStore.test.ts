import { PostgresEventStore } from "@millrace/event-store-postgres"
import { Effect, Layer } from "effect"
import { describe, expect, it } from "vitest"
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

it("checks conditions, also behind the check of its clock", () =>
  Effect.gen(function* () {
    for (const { append, clock } of yield* twoPools) expect([append.isConditional, clock !== undefined]).toEqual([true, true])
  }).pipe(Effect.scoped, Effect.runPromise))

eventStorePeersSuite("postgres", twoPools, { describe, it })
