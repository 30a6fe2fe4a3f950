import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { expect, test } from "vitest"

const vitest = fileURLToPath(new URL("../../node_modules/vitest/vitest.mjs", import.meta.url))
const config = fileURLToPath(new URL("../failing/vitest.config.ts", import.meta.url))

test("a test that fails is told by the exit code", async () => {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("VITEST")))
  const run = promisify(execFile)(process.execPath, [vitest, "run", "--config", config], { env })
  await expect(run).rejects.toMatchObject({ code: 1, stdout: expect.stringContaining("0 passed, 1 failed, 0 skipped") })
}, 60_000)
