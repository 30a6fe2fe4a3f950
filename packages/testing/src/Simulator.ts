/**
 * A deterministic simulator of a whole Millrace deployment: several hosts on one store, callers, administrators, upstreams, faults and
 * time, all decided by one seed. At the end every answer must be true, and every charge must match the work that was delivered.
 *
 * ```ts
 * await Effect.runPromise(Simulator.check({ workload, runs: 100 }))
 * await Effect.runPromise(Simulator.run({ workload, seed: 4711 }))
 * ```
 *
 * The same seed gives the same trace, byte for byte, on every machine, so a failing seed is a test. Hosts run it over their own operations,
 * given as a {@link Workload}. Their upstreams must be fakes: nothing real keeps to simulated time.
 */
import type { Operation } from "@millrace/core"
import { Effect } from "effect"
import { type Checked, check as checkPlan } from "./simulator/Check.ts"
import { failure, type SimulationFailed } from "./simulator/Failure.ts"
import type { Outcome } from "./simulator/Outcome.ts"
import type { Source } from "./simulator/PastedTest.ts"
import { run as runOnce } from "./simulator/Run.ts"
import type { Settings } from "./simulator/Settings.ts"
import { standard } from "./simulator/StandardWorkload.ts"
import type { AnyWorkload, Workload } from "./simulator/Workload.ts"

export type { Checked } from "./simulator/Check.ts"
export type { CallWorld, Died, Expectations, ObservedCall, ObservedWorld, Reply, Verdict } from "./simulator/Expectations.ts"
export { SimulationFailed } from "./simulator/Failure.ts"
export type { Faults } from "./simulator/Faults.ts"
export { none } from "./simulator/Faults.ts"
export type { CallSummary, Outcome } from "./simulator/Outcome.ts"
export { standard } from "./simulator/StandardWorkload.ts"
export type { HostServices, Offer, Workload } from "./simulator/Workload.ts"

export interface Options<Op extends Operation.Any> extends Settings {
  /** The keys of the operations that are called: all of the workload's by default. */
  readonly operations?: ReadonlyArray<Op["key"]> | undefined
  /**
   * What callers call: {@link standard} by default. If it has state, such as a counter or a `Map` in a fake, give a function that makes it
   * anew: it is called for each run.
   */
  readonly workload?: Workload<Op> | (() => Workload<Op>)
}

export interface CheckOptions<Op extends Operation.Any> extends Omit<Options<Op>, "seed"> {
  /** The seed of the first run: 1 by default. Every further run adds 1. */
  readonly seed?: number
  /** How many seeds are run: 100 by default. Each takes some 100 to 500 milliseconds. */
  readonly runs?: number
  /** How many runs may be used to shrink a failure: 200 by default. `false` leaves it as it was found. */
  readonly shrink?: { readonly runs: number } | false
}

const RUNS = 100
const SHRINK_RUNS = 200

/**
 * Runs one simulation and returns what happened, or {@link SimulationFailed}. It takes some 200 milliseconds of real time for half an hour
 * to weeks of simulated time. It needs no services, and leaves nothing behind.
 */
export const run = <Op extends Operation.Any = never>(options: Options<Op>): Effect.Effect<Outcome, SimulationFailed> =>
  Effect.suspend(() => {
    const { make, source } = workloadOf(options.workload)
    return Effect.flatMap(runOnce(settingsOf(options, options.seed), make()), (run) =>
      run.violations.length > 0 || run.outcome === undefined ? Effect.fail(failure(run, source)) : Effect.succeed(run.outcome)
    )
  })

/**
 * Runs many seeds, one after the other, and fails with the first violation, shrunk: with as few steps, hosts, faults and operations as show
 * it. Before them it runs the first seed without faults. The first seed, and a failing one, are run twice: two runs that differ are a failure,
 * too, as something outside the seed then takes part.
 */
export const check = <Op extends Operation.Any = never>(options: CheckOptions<Op> = {}): Effect.Effect<Checked, SimulationFailed> =>
  Effect.suspend(() => {
    const { runs = RUNS, seed = 1, shrink = { runs: SHRINK_RUNS } } = options
    const { make, source } = workloadOf(options.workload)
    const shrinkRuns = shrink === false ? 0 : shrink.runs
    return checkPlan({ settings: settingsOf(options, seed), runs, shrinkRuns, workload: make, source })
  })

const settingsOf = (
  {
    codes,
    faults,
    hosts,
    inboxes,
    keys,
    leading,
    operations,
    opens,
    payments,
    people,
    proxies,
    steps,
    subscriptions,
    trials,
    webhooks
  }: Omit<Settings, "seed">,
  seed: number
): Settings => ({
  ...{
    seed,
    steps,
    hosts,
    keys,
    opens,
    webhooks,
    inboxes,
    codes,
    proxies,
    payments,
    subscriptions,
    people,
    trials,
    leading,
    operations,
    faults
  }
})

/** How the workload of a run is made, and what the printed test calls it. */
const workloadOf = <Op extends Operation.Any>(
  workload: Workload<Op> | (() => Workload<Op>) | undefined
): { readonly make: () => AnyWorkload; readonly source: Source | undefined } => {
  if (workload === undefined) return { make: () => ({ ...(standard() as AnyWorkload), isStandard: true }), source: undefined }
  // The simulator gives each operation its own input and reply, which TypeScript cannot see of a type parameter
  const make = (typeof workload === "function" ? workload : () => workload) as unknown as () => AnyWorkload
  const { from = "./workload.ts", name } = make().source ?? {}
  return { make, source: { from, name: name ?? ((typeof workload === "function" && workload.name) || "workload") } }
}
