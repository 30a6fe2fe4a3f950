/** The failure of a simulation, as its reader sees it. */
import { Schema } from "effect"
import { excerpt } from "./Excerpt.ts"
import { pastedTest, type Source } from "./PastedTest.ts"
import type { Run } from "./Run.ts"

/**
 * An answer was wrong, credits are missing, or an expectation of the workload does not hold. The message has every violation, the trace around
 * the first one, and a test that repeats the run. `seed`, `violations`, `trace` and `test` are those of the shrunk run, if it was shrunk.
 */
export class SimulationFailed extends Schema.TaggedError<SimulationFailed>()("SimulationFailed", {
  seed: Schema.Int,
  violations: Schema.Array(Schema.String),
  /** The whole trace. */
  trace: Schema.Array(Schema.String),
  /** A file for vitest that repeats the run. */
  test: Schema.String,
  message: Schema.String
}) {}

/** `found`: how the run was found and shrunk, in sentences. */
export const failure = (
  { firstAt = 0, settings, trace, violations }: Run,
  source: Source | undefined,
  found: ReadonlyArray<string> = []
): SimulationFailed => {
  const [first = ""] = violations
  const test = pastedTest(settings, first, source)
  const message = [
    `Simulation of seed ${settings.seed}: ${violations.length === 1 ? "a violation" : `${violations.length} violations`}`,
    ...violations.map((violation) => `  ${violation}`),
    ...found,
    `Trace around the first violation, line ${firstAt + 1} of ${trace.length}:`,
    ...excerpt(trace, firstAt),
    "This test repeats it:",
    "",
    test
  ].join("\n")
  return new SimulationFailed({ seed: settings.seed, violations: [...violations], trace: [...trace], test, message })
}

/** Two runs of one seed differed. */
export const undetermined = (run: Run, difference: ReadonlyArray<string>, source: Source | undefined): SimulationFailed => {
  const { seed } = run.settings
  const violation = `two runs of seed ${seed} differ`
  const test = pastedTest(run.settings, violation, source)
  const message = [`Simulation of seed ${seed}: ${violation}`, ...difference.map((line) => `  ${line}`)].join("\n")
  return new SimulationFailed({ seed, violations: [violation], trace: [...run.trace], test, message })
}
