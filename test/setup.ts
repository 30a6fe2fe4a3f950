/** Runs before each test file: properties are tried on the same values in every run. `MILLRACE_SEED=4711 npm test` tries others. */
import fc from "fast-check"
import { afterAll } from "vitest"
import { undoAll } from "./system/Leftovers.ts"

fc.configureGlobal({ seed: Number(process.env["MILLRACE_SEED"] ?? 1) })

afterAll(undoAll)
