import { MemoryStateStore } from "@millrace/event-sourcing"
import { stateStoreSuite } from "@millrace/testing"
import { describe, it } from "vitest"

// In place of the store in memory: the layer of your own store
stateStoreSuite("my store", () => MemoryStateStore.layer, { describe, it })
