import { MemoryStateStore } from "@millrace/event-sourcing"
import { describe, it } from "vitest"
import { stateStoreSuite } from "../../testing/src/StateStoreSuite.ts"

stateStoreSuite("memory", () => MemoryStateStore.layer, { describe, it })
