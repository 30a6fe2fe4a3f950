/** Runs code of the workload, and notices when it waits for something that is not simulated. */
import { Cause, Context, Duration, Effect, Exit } from "effect"
import type { Report } from "./Evidence.ts"
import type { UserWork } from "./VirtualTime.ts"
import type { HostServices } from "./Workload.ts"
import type { Process, World } from "./World.ts"

/** Where code of the workload runs. */
export interface Site {
  readonly world: World
  readonly process: Process
  /** The services of the workload. */
  readonly services: Context.Context<never>
  readonly report: Report
  /** Whether nothing but its own work can make the code wait. */
  readonly isUndisturbed: boolean
}

/** What to do about work that waits for the real world. */
export const ADVICE =
  "simulated time passes only for Effect.sleep and Clock; give a fake service for whatever uses a network, a file, a process or a timer"

/** Runs an effect of the workload at a host. `name`: what it is, such as `operation greeting.write, request q3`. */
export const run = <A, E>(
  { isUndisturbed, process, report, services, world }: Site,
  name: string,
  timeout: Duration.Input,
  effect: Effect.Effect<A, E, unknown>
): Effect.Effect<A, E, HostServices> =>
  Effect.suspend(() => {
    const { now } = world
    const work: UserWork = { name: `${name} at ${process.name}`, isAlive: () => process.alive, sleeping: 0, ranAt: now, waited: 0 }
    world.userWork.add(work)
    const provided = Effect.provideContext(effect, Context.merge(services, process.timeOf(work))) as Effect.Effect<A, E, HostServices>
    return Effect.onExit(provided, (exit) =>
      Effect.sync(() => {
        world.userWork.delete(work)
        const waited = world.now > work.ranAt ? world.now - work.ranAt : work.waited
        if (isUndisturbed && isInterrupted(exit) && waited > Duration.toMillis(timeout) / 2) report(neverWoken(work.name, waited))
      })
    )
  })

const isInterrupted = (exit: Exit.Exit<unknown, unknown>): boolean => Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)

const neverWoken = (name: string, waited: number): string =>
  `${name} waited ${waited} ms for something that no fiber of the simulation ended, until its time was over: ${ADVICE}. ` +
  "A fake need not hang by itself: the simulator does that"

/** How many are named. */
const NAMED = 3

/** What waits of the workload, and not for simulated time: in one sentence, or none. */
export const waitingIn = (world: World): ReadonlyArray<string> => {
  const waiting = world.waitingWork().map(({ name, ranAt }) => `${name} has waited for ${world.now - ranAt} ms`)
  const more = waiting.length > NAMED ? [`${waiting.length - NAMED} more wait`] : []
  return waiting.length === 0 ? [] : [`${[...waiting.slice(0, NAMED), ...more].join("; ")}: ${ADVICE}`]
}
