import { MemoryEventStore } from "@millrace/event-sourcing"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { eventStoreSuite } from "../../testing/src/EventStoreSuite.ts"

it("checks conditions", async () => {
  expect((await Effect.runPromise(MemoryEventStore.make)).append.isConditional).toBe(true)
})

eventStoreSuite("memory", () => MemoryEventStore.layer, { describe, it })
