import { MemoryTextIndex } from "@millrace/event-sourcing"
import { describe, it } from "vitest"
import { textIndexSuite } from "../../testing/src/TextIndexSuite.ts"

textIndexSuite("memory", () => MemoryTextIndex.layer, { describe, it })
