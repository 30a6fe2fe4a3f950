import { availableParallelism } from "node:os"
import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"

const root = fileURLToPath(new URL("..", import.meta.url))

export default defineConfig({
  root,
  ssr: { resolve: { conditions: ["@millrace/source"], externalConditions: ["@millrace/source"] } },
  resolve: { conditions: ["@millrace/source"] },
  test: {
    include: ["packages/*/test/**/*.test.ts", "examples/test/**/*.test.ts", "test/**/*.test.ts"],
    setupFiles: [fileURLToPath(new URL("setup.ts", import.meta.url))],
    reporters: ["default", fileURLToPath(new URL("reporter.ts", import.meta.url))],
    // Processes, not threads: native addons and signals belong to a process; the conditions let child processes run the sources.
    pool: "forks",
    // One more than there are cores: many tests wait for a lease or a server
    maxWorkers: Math.min(8, availableParallelism() + 1),
    execArgv: ["--conditions=@millrace/source"],
    testTimeout: 30_000,
    hookTimeout: 30_000
  }
})
