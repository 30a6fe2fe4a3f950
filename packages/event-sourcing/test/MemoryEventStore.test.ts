import { MemoryEventStore } from "@millrace/event-sourcing"
import { describe, it } from "vitest"
import { eventStoreSuite } from "../../testing/src/EventStoreSuite.ts"

eventStoreSuite("memory", () => MemoryEventStore.layer, { describe, it })
