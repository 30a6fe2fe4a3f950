/**
 * Runs before each test file. Properties are tried on the same values in every run; `MILLRACE_SEED=4711 npm test` tries others. What a file
 * leaves behind is undone after it.
 */
import fc from "fast-check"
import { afterAll } from "vitest"
import { undoAll } from "./system/Leftovers.ts"

fc.configureGlobal({ seed: Number(process.env["MILLRACE_SEED"] ?? 1) })

afterAll(undoAll)
