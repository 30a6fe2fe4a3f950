import { blobStoreSuite } from "@millrace/testing"
import { describe, test } from "vitest"
import * as MemoryBlobStore from "../../src/vault/MemoryBlobStore.ts"

blobStoreSuite("memory", () => MemoryBlobStore.layer, { describe, it: test })
