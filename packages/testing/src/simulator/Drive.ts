/** Runs the tasks of a world until a fiber has ended, and notices when the real world takes part. */
import type { Fiber } from "effect"
import { RealTime } from "./RealTime.ts"
import { ADVICE, waitingIn } from "./UserWork.ts"
import type { World } from "./World.ts"

/** Tasks between two yields to the real event loop. */
const TASKS_PER_TURN = 5_000
/** No simulation needs so many tasks: beyond them something loops. */
const MAX_TASKS = 2_000_000

/** What kept a simulation from its end. */
export interface Failed {
  readonly violation: string
  /** Real time took part, so the same seed need not lead here again. */
  readonly isReal: boolean
}

/** Runs until the fiber has ended, or `goOn` is false. Returns what kept it from that, if anything did. */
export const drive = async (world: World, fiber: Fiber.Fiber<unknown>, goOn: () => boolean): Promise<Failed | undefined> => {
  const real = new RealTime(world)
  const hasEnded = () => fiber.pollUnsafe() !== undefined || !goOn()
  for (;;) {
    for (let task = 0; task < TASKS_PER_TURN && !hasEnded(); task++) {
      let used = world.isIdle ? await waitForWork(world, real) : undefined
      if (world.wokenFromOutside === undefined && !world.runNext()) {
        used = await real.awaitAnything()
        if (world.isIdle && world.wokenFromOutside === undefined) return deadlock(world)
      }
      if (world.wokenFromOutside !== undefined) return fromOutside(world.wokenFromOutside, used)
    }
    if (hasEnded()) return undefined
    if (world.tasks > MAX_TASKS) return { violation: `something loops: ${MAX_TASKS} tasks have run`, isReal: false }
    await real.pass()
  }
}

/** Before time passes: work of the workload may wait for a promise, or for the real world. */
const waitForWork = async (world: World, real: RealTime): Promise<string | undefined> => {
  if (world.waitingWork().length === 0) return undefined
  await real.settleIfStepped()
  return world.isIdle && world.waitingWork().length > 0 ? real.awaitDevices() : undefined
}

const fromOutside = (name: string, used = "a promise or a callback"): Failed => ({
  violation: `${name} was woken from outside the simulation, by ${used}: ${ADVICE}`,
  isReal: true
})

const deadlock = (world: World): Failed => ({
  violation: ["deadlock: every fiber waits for another", ...waitingIn(world)].join("; "),
  isReal: false
})
