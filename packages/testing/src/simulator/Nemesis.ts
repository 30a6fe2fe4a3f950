/** The nemesis: it crashes hosts, stops and restarts them, pauses them, and cuts them off from their stores. */
import { Job } from "@millrace/core"
import { Effect } from "effect"
import type { SeededRandom } from "../SeededRandom.ts"
import type { WriteStage } from "./Faults.ts"
import type { Host } from "./Host.ts"
import { knownJobs, wait } from "./JobCallers.ts"
import { stateOf } from "./LogRecorder.ts"
import { pickAny, type Simulation } from "./Simulation.ts"

/** Disturbs a host in one way. A host that ended is started again. */
export const disturb = (simulation: Simulation, host: Host, random: SeededRandom): Effect.Effect<void> =>
  Effect.gen(function* () {
    switch (random.below(7)) {
      case 0:
        yield* Effect.replicateEffect(Effect.yieldNow, random.below(200), { discard: true })
        host.crash("for no reason")
        break
      case 1:
      case 2:
        host.crashAtWrite(random.pick<WriteStage>(["before", "sent", "arrived"]), random.below(6))
        yield* Effect.sleep(30_000)
        break
      case 3:
        return host.pause(random.below(random.pick([2_000, 120_000])))
      case 4:
      case 5:
        return host.cutOffAfterWrites(
          random.below(12),
          random.below(random.pick([4_000, 20_000, 240_000])),
          random.pick(["whole", "oneWay"])
        )
      default:
        yield* stop(simulation, host)
    }
    yield* Effect.sleep(random.below(random.pick([10, 3_000, 60_000])))
    yield* host.start
    yield* waitForAnOpenJob(simulation, host, random.fork("waits"))
  })

/** Stops a host in order. If nothing disturbed it, it has handed back all its jobs: none waits for the end of a lease. */
const stop = ({ records: { attempts, recorder }, report, world }: Simulation, host: Host) =>
  Effect.gen(function* () {
    const { process } = host
    const since = { at: world.now, faults: host.faults }
    if (!(yield* host.stop)) return report(`${host.name} does not stop`)
    if (process === undefined || process.crashed || !host.isUndisturbedSince(since)) return
    for (const { attempt, isUninterruptible, jobId, process: runner } of attempts) {
      const state = stateOf(recorder.job(jobId))
      if (runner === process && !isUninterruptible && state.status === "running" && state.attempt === attempt)
        report(`${process.name} stopped without handing back ${jobId}`)
    }
  })

/** A caller may wait at a host that has just started, and has not read the log yet. */
const waitForAnOpenJob = (simulation: Simulation, host: Host, random: SeededRandom) =>
  Effect.suspend((): Effect.Effect<unknown> => {
    const open = knownJobs(simulation).filter(({ jobId }) => Job.isOpen(stateOf(simulation.records.recorder.job(jobId))))
    const job = pickAny(random, open)
    return job === undefined ? Effect.void : wait(simulation, host, job, 60_000)
  })
