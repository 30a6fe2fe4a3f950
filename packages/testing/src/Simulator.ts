/**
 * A deterministic simulator of a whole Millrace deployment: several hosts on one store, callers, administrators, upstreams, faults and
 * time, all decided by one seed. At the end every answer must be true, and every charge must match the work that was delivered.
 *
 * ```ts
 * await Effect.runPromise(Simulator.run({ seed: 4711 }))
 * ```
 *
 * The same seed gives the same trace, byte for byte, on every machine, so a failing seed is a test. Hosts run it over their own operations,
 * given as a {@link Workload}. Their upstreams must be fakes: nothing real keeps to simulated time.
 */
import type { Operation } from "@millrace/core"
import { Cause, Context, Effect, Exit, Schema } from "effect"
import * as SeededRandom from "./SeededRandom.ts"
import * as Faults from "./simulator/Faults.ts"
import type { Outcome } from "./simulator/Outcome.ts"
import { simulate } from "./simulator/Scenario.ts"
import { standard } from "./simulator/StandardWorkload.ts"
import type { AnyWorkload, Workload } from "./simulator/Workload.ts"
import { World } from "./simulator/World.ts"

export type { Faults } from "./simulator/Faults.ts"
export { none } from "./simulator/Faults.ts"
export type { CallSummary, Outcome } from "./simulator/Outcome.ts"
export { standard } from "./simulator/StandardWorkload.ts"
export type { Offer, Workload } from "./simulator/Workload.ts"

export interface Options<Op extends Operation.Any> {
  readonly seed: number
  /** Steps before faults end: 40 by default. */
  readonly steps?: number
  /** 1 to 3 by default, by the seed. */
  readonly hosts?: number
  /** Probability that a caller uses an idempotency key: 0.7 by default. */
  readonly keys?: number
  /** What callers call: {@link standard} by default. */
  readonly workload?: Workload<Op>
  /** Faults that are not given are drawn from the seed; {@link none} has none. */
  readonly faults?: Partial<Faults.Faults>
}

/** An answer was wrong, or credits are missing. The message names each violation, the last events, and the call that repeats the run. */
export class SimulationFailed extends Schema.TaggedError<SimulationFailed>()("SimulationFailed", {
  seed: Schema.Int,
  violations: Schema.Array(Schema.String),
  trace: Schema.Array(Schema.String),
  message: Schema.String
}) {}

/** When every simulation begins: milliseconds since 1970. */
const START = Date.UTC(2030, 0, 1)
const STEPS = 40
const KEYS = 0.7
/** Lines of the trace that a failure shows. */
const TAIL = 60
/** Tasks between two yields to the real event loop. */
const TASKS_PER_TURN = 5_000
/** No simulation needs so many tasks: beyond them something loops. */
const MAX_TASKS = 2_000_000

/**
 * Runs one simulation and returns what happened, or {@link SimulationFailed}. It takes some 200 milliseconds of real time for half an hour
 * to weeks of simulated time. It needs no services, and leaves nothing behind.
 */
export const run = <Op extends Operation.Any>(options: Options<Op>): Effect.Effect<Outcome, SimulationFailed> =>
  options.workload === undefined ? runWorkload(options, standard()) : runWorkload(options, options.workload)

type Settings = Omit<Options<never>, "workload">

const runWorkload = (options: Settings, workload: AnyWorkload): Effect.Effect<Outcome, SimulationFailed> =>
  Effect.suspend(() => {
    const { hosts, keys = KEYS, seed, steps = STEPS } = options
    const random = SeededRandom.make(seed)
    const faults: Faults.Faults = { ...Faults.draw(random.fork("faults")), ...options.faults }
    const { disorder, yieldEvery } = faults
    const world = new World({ random: random.fork("order"), start: START, disorder, yieldEvery })
    world.note("world", JSON.stringify({ ...faults, appends: undefined }))
    const violations: Array<string> = []
    const report = (violation: string) => {
      violations.push(violation)
      world.note("checker", violation)
    }
    const goOn = () => violations.length === 0
    const fiber = world.outside.fork(simulate({ world, steps, keys, workload, faults, random, report, goOn }, hosts), Context.empty())
    const failed = (...more: ReadonlyArray<string>) => failure(options, [...violations, ...more], world.trace)

    return Effect.gen(function* () {
      for (let exit = fiber.pollUnsafe(); ; exit = fiber.pollUnsafe()) {
        if (exit !== undefined) {
          if (Exit.isFailure(exit)) return yield* failed(`the simulation failed: ${Cause.pretty(exit.cause)}`)
          if (violations.length > 0) return yield* failed()
          return exit.value
        }
        if (world.tasks > MAX_TASKS) return yield* failed(`something loops: ${MAX_TASKS} tasks have run`)
        for (let i = 0; i < TASKS_PER_TURN && fiber.pollUnsafe() === undefined; i++)
          if (!world.runNext()) return yield* failed("deadlock: every fiber waits for another")
        yield* Effect.yieldNow
      }
    })
  })

const failure = (
  { seed, steps, hosts, keys, faults }: Settings,
  violations: ReadonlyArray<string>,
  trace: ReadonlyArray<string>
): SimulationFailed => {
  const repeat = JSON.stringify({ seed, steps, hosts, keys, faults })
  const shown = trace.slice(-TAIL)
  const message = [
    `Simulation of seed ${seed}: ${violations.length} violations`,
    ...violations.map((violation) => `  ${violation}`),
    `Again: Simulator.run(${repeat})`,
    `Trace, the last ${shown.length} of ${trace.length} lines:`,
    ...shown.map((line) => `  ${line}`)
  ].join("\n")
  return new SimulationFailed({ seed, violations: [...violations], trace: [...trace], message })
}
