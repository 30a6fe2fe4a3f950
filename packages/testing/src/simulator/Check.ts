/** Checks a workload over many seeds. The first failure is run again, and shrunk. */
import { Effect } from "effect"
import { differenceOf } from "./Difference.ts"
import { failure, type SimulationFailed, undetermined } from "./Failure.ts"
import * as Faults from "./Faults.ts"
import type { Source } from "./PastedTest.ts"
import { type Run, run } from "./Run.ts"
import type { Settings } from "./Settings.ts"
import { shrink } from "./Shrink.ts"
import type { AnyWorkload } from "./Workload.ts"

/** What a check found. */
export interface Checked {
  /** Seeds that were run. */
  readonly runs: number
  /** Sums over all of them: counts of answers, events and faults. */
  readonly stats: Readonly<Record<string, number>>
}

export interface Plan {
  /** Of the first run; every further one adds 1 to its seed. */
  readonly settings: Settings
  readonly runs: number
  /** How many runs shrinking may take; 0 to leave a failure as it was found. */
  readonly shrinkRuns: number
  /** Makes the workload of one run. */
  readonly workload: () => AnyWorkload
  readonly source: Source | undefined
}

/** Fails with the first failure, shrunk. */
export const check = (plan: Plan): Effect.Effect<Checked, SimulationFailed> =>
  Effect.gen(function* () {
    const { runs, settings } = plan
    const stats: Record<string, number> = {}
    // Mistakes of the workload itself are best seen without faults
    yield* checkOne(plan, { ...settings, faults: Faults.none }, "the run without faults, before all others")
    for (let i = 0; i < runs; i++) {
      const seeded = { ...settings, seed: settings.seed + i }
      const { outcome } = yield* checkOne(plan, seeded, `run ${i + 1} of ${runs}`, i === 0)
      for (const [what, times] of Object.entries(outcome?.stats ?? {})) stats[what] = (stats[what] ?? 0) + times
    }
    return { runs, stats }
  })

/** Runs one seed; twice if it fails, or if `twice`. */
const checkOne = (plan: Plan, settings: Settings, name: string, twice = false): Effect.Effect<Run, SimulationFailed> =>
  Effect.gen(function* () {
    const { source, workload } = plan
    const once = Effect.suspend(() => run(settings, workload(), "violation"))
    const first = yield* once
    const hasFailed = first.violations.length > 0
    if (first.isReal) return yield* failure(first, source, [`Found by ${name}. It is not shrunk, for real time took part.`])
    if (!hasFailed && !twice) return first
    const difference = differenceOf(first, yield* once)
    if (difference !== undefined) return yield* undetermined(first, difference, source)
    return hasFailed ? yield* shrunk(plan, first, name) : first
  })

const shrunk = ({ shrinkRuns, source, workload }: Plan, failed: Run, name: string): Effect.Effect<never, SimulationFailed> =>
  Effect.gen(function* () {
    const found = `Found by ${name}, seed ${failed.settings.seed}`
    if (shrinkRuns === 0) return yield* failure(failed, source, [`${found}.`])
    const operations = workload().offers.map(({ operation }) => operation.key)
    const attempt = (settings: Settings) => Effect.suspend(() => run(settings, workload(), "violation"))
    const { run: smallest, runs } = yield* shrink(failed, operations, shrinkRuns, attempt)
    return yield* failure(smallest, source, [`${found}. Shrunk with ${runs} runs.`])
  })
