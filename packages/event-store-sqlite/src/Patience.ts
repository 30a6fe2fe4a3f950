/** Waits for other processes that have the file locked, without blocking the event loop. */
import { Effect } from "effect"
import { type Fault, faultOf } from "./Fault.ts"

/** Attempts while another process holds the lock: five seconds in all. */
const ATTEMPTS = 200

/** The longest pause between two attempts, in milliseconds. */
const LONGEST = 25

/** Runs `look`, and repeats it while another process holds a lock on the file. */
export const patiently = <A, E>(filename: string, look: () => A, broken: (fault: Fault) => E, attempt = 0): Effect.Effect<A, E> =>
  Effect.suspend((): Effect.Effect<A, E> => {
    try {
      return Effect.succeed(look())
    } catch (error) {
      const fault = faultOf(error, filename)
      if (!fault.isLocked || attempt >= ATTEMPTS) return Effect.fail(broken(fault))
      return Effect.andThen(Effect.sleep(Math.min(2 ** attempt, LONGEST)), patiently(filename, look, broken, attempt + 1))
    }
  })

/** Opens the file, waiting for locks of other processes, and closes it with the scope. */
export const open = <A extends { close(): void }, E>(filename: string, make: () => A, broken: (fault: Fault) => E) =>
  Effect.acquireRelease(patiently(filename, make, broken), (opened) => Effect.sync(() => opened.close()))
