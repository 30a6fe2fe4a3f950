/** How a process ends that was told to: SIGTERM and SIGINT interrupt what runs, and everything open closes first. */
import { Effect, Exit, type Runtime } from "effect"

/** What only ends by a signal ends well by it: with exit code 0. */
export const endsBySignal = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.onInterrupt(effect, () =>
    Effect.sync(() => {
      process.exitCode ??= 0
    })
  )

/** As shells count: what a signal stopped in the middle of its work. */
const STOPPED = 130

export const teardown: Runtime.Teardown = (exit, onExit) => onExit(Number(process.exitCode ?? (Exit.isSuccess(exit) ? 0 : STOPPED)))
