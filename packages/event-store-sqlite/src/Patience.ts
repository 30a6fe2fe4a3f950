/** Waiting for other processes that have the file locked, while the event loop runs. */
import { Effect } from "effect"
import { type Fault, faultOf } from "./Fault.ts"

/** Attempts while another process holds the lock: five seconds. */
const ATTEMPTS = 200

/** The pause after an attempt that found a lock, in milliseconds; undefined after the last attempt. */
export const pauseAfter = (attempt: number): number | undefined => (attempt < ATTEMPTS ? Math.min(2 ** attempt, 25) : undefined)

/** Runs `look`, and repeats it while another process holds a lock on the file. */
export const patiently = <A, E>(filename: string, look: () => A, broken: (fault: Fault) => E, attempt = 0): Effect.Effect<A, E> =>
  Effect.suspend((): Effect.Effect<A, E> => {
    try {
      return Effect.succeed(look())
    } catch (error) {
      const fault = faultOf(error, filename)
      const pause = fault.isLocked ? pauseAfter(attempt) : undefined
      if (pause === undefined) return Effect.fail(broken(fault))
      return Effect.andThen(Effect.sleep(pause), patiently(filename, look, broken, attempt + 1))
    }
  })

/** Opens the file, waiting for locks of other processes, and closes it with the scope. */
export const open = <A extends { close(): void }, E>(filename: string, make: () => A, broken: (fault: Fault) => E) =>
  Effect.acquireRelease(patiently(filename, make, broken), (opened) => Effect.sync(() => opened.close()))
