/** Time that skips while nothing runs, as when a machine is suspended. */
import type { SeededRandom } from "../SeededRandom.ts"
import type { Call } from "./Records.ts"
import type { Simulation } from "./Simulation.ts"

const MINUTE = 60_000
/** The longest time until a call is answered, milliseconds. */
export const ANSWERED_WITHIN = 15 * MINUTE

/** Whether a caller waits for an answer. A reply is kept for a day, so a call that takes longer may not find it again. */
export const isAnyCallWaiting = ({ records: { calls }, world }: Pick<Simulation, "records" | "world">): boolean =>
  calls.some(
    ({ process, response, startedAt }: Call) => response === undefined && process.alive && world.now - startedAt <= ANSWERED_WITHIN
  )

/** Skips up to half a minute or, if no caller waits, up to a week. */
export const skipTime = (simulation: Simulation, random: SeededRandom): void => {
  const long = isAnyCallWaiting(simulation) ? [] : [11 * MINUTE, 40 * MINUTE, 25 * 60 * MINUTE, 8 * 24 * 60 * MINUTE]
  skip(simulation, random.pick([40_000, 90_000, 5 * MINUTE, ...long]))
}

/** Milliseconds. */
export const skip = ({ world }: Simulation, millis: number): void => {
  world.note("world", `skips ${millis} ms`)
  world.skip(millis)
}
