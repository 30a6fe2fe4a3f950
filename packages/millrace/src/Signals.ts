/** How a process ends by a signal: SIGTERM and SIGINT interrupt what runs, and every scope closes first. */
import { Effect, Exit, type Runtime } from "effect"

/** For a command that only a signal ends, such as `serve`: then its exit code is 0. */
export const endsBySignal = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.onInterrupt(effect, () =>
    Effect.sync(() => {
      process.exitCode ??= 0
    })
  )

/** Exit code of a command that a signal stopped in the middle of its work, as shells count. */
const STOPPED = 130

export const teardown: Runtime.Teardown = (exit, onExit) => onExit(Number(process.exitCode ?? (Exit.isSuccess(exit) ? 0 : STOPPED)))
