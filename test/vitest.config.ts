import { availableParallelism } from "node:os"
import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"
import LongestFirst from "./LongestFirst.ts"

const root = fileURLToPath(new URL("..", import.meta.url))
const file = (name: string) => fileURLToPath(new URL(name, import.meta.url))

const FILES = ["packages/*/test/**/*.test.ts", "examples/test/**/*.test.ts", "test/**/*.test.ts"]

/** They replace modules, or measure or listen to the process that they run in. */
const ALONE = [
  "packages/core/test/accounts/KeyRing.test.ts",
  "packages/core/test/ledger/upcasts.test.ts",
  "packages/core/test/vault/MemoryBlobStore.test.ts",
  "packages/event-store-kurrentdb/test/Kill.test.ts",
  "packages/event-store-postgres/test/Faults.test.ts",
  "packages/http/test/Abuse.test.ts",
  "packages/upstreams/test/blobs/*.test.ts",
  "packages/upstreams/test/images/ImageFile.test.ts",
  "packages/upstreams/test/shared/WorkerPool.test.ts"
]

export default defineConfig({
  root,
  ssr: { resolve: { conditions: ["@millrace/source"], externalConditions: ["@millrace/source"] } },
  resolve: { conditions: ["@millrace/source"] },
  test: {
    reporters: ["default", file("reporter.ts")],
    setupFiles: [file("setup.ts")],
    // Processes, not threads: native addons and signals belong to a process; the conditions let child processes run the sources.
    pool: "forks",
    // One more than there are cores: many tests wait for a lease or a server
    maxWorkers: Math.min(8, availableParallelism() + 1),
    execArgv: ["--conditions=@millrace/source"],
    // The servers and commands that tests start load the same sources again and again: half of their start is to strip and compile them
    env: { NODE_COMPILE_CACHE: file("../node_modules/.cache/compiled") },
    testTimeout: 30_000,
    hookTimeout: 30_000,
    sequence: { sequencer: LongestFirst },
    projects: [
      { extends: true, test: { name: "alone", include: ALONE } },
      // One process for many files: to start one and load the sources takes longer than most of them
      {
        extends: true,
        test: {
          name: "shared",
          include: FILES,
          exclude: ALONE,
          isolate: false,
          // Node.js loads the sources as it does in a process of their own: nothing has to be transformed and sent to the workers
          experimental: { viteModuleRunner: false, nodeLoader: false },
          globalSetup: [file("postgres.ts"), file("browser.ts"), file("program.ts")]
        }
      }
    ]
  }
})
