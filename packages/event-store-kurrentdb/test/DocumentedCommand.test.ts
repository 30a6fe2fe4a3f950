/** The command that the documentation gives for running these tests on a node. */
import assert from "node:assert/strict"
import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { Effect } from "effect"
import { expect, it } from "vitest"
import { kill, start } from "./NodeProcesses.ts"

const ROOT = fileURLToPath(new URL("../../../", import.meta.url))

/** The title of one test that runs on any node. It is enough to show that the command reaches the node. */
const ONE = "a stream is read forwards and backwards"

// When a node is named, this run is that command itself
it.skipIf(process.env["KURRENTDB_URL"] !== undefined || process.env["EVENTSTOREDB_URL"] !== undefined)(
  "the documented command runs the tests on the node in KURRENTDB_URL",
  { timeout: 300_000 },
  () =>
    Effect.gen(function* () {
      const node = yield* Effect.acquireRelease(start(), kill)
      const [, command] = /`(KURRENTDB_URL=… .+?)`/u.exec(readFileSync(`${ROOT}docs/kurrentdb.md`, "utf8")) ?? []
      assert(command !== undefined, "docs/kurrentdb.md gives no such command")
      const shell = `${command.replace("…", `'kurrentdb://127.0.0.1:${node.port}?tls=false'`)} -t '${ONE}'`
      // The command must not inherit the settings of this test run
      const { VITEST: _, NODE_OPTIONS: __, ...env } = process.env
      const { stderr, stdout } = yield* Effect.promise(() => promisify(execFile)("sh", ["-c", shell], { cwd: ROOT, env }))
      expect(stdout).toMatch(/^1 passed, 0 failed/mu)
      expect(stderr).not.toContain("NO REAL NODE")
    }).pipe(Effect.scoped, Effect.runPromise)
)
