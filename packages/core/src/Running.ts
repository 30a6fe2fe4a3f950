/** Something under way that tells its end by callback: for steps that need no fiber to wait for them. */
import { type Context, Effect, Exit } from "effect"

export interface Running {
  /** Asks it to end early. Its end is told as ever. Does nothing once it has ended. */
  readonly interrupt: () => void
}

/** Called once, with how it ended. */
export type Told<A, E> = (exit: Exit.Exit<A, E>) => void

/** What has ended by the time it is returned. */
export const ENDED: Running = { interrupt: () => {} }

/** Runs an effect in a fiber of its own. The result of an effect that is an exit already is told at once. */
export const fork = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  context: Context.Context<R>,
  told: Told<A, E>,
  options?: Effect.RunOptions
): Running => {
  if (Exit.isExit(effect)) {
    told(effect as Exit.Exit<A, E>)
    return ENDED
  }
  const fiber = Effect.runForkWith(context)(effect, options)
  fiber.addObserver(told)
  return { interrupt: () => fiber.interruptUnsafe() }
}

/** The effect of a callback form. Its interruption asks what runs to end early, and waits for the end. */
export const effect = <A, E, R>(start: (context: Context.Context<R>, told: Told<A, E>) => Running): Effect.Effect<A, E, R> =>
  Effect.withFiber((fiber) =>
    Effect.callback((resume) => {
      let tell: Told<A, E> | undefined = resume
      // A fiber of an effect that needs R has R in its context
      const running = start(fiber.context as Context.Context<R>, (exit) => {
        const told = tell
        tell = undefined
        told?.(exit)
      })
      return Effect.callback<void>((ended) => {
        if (tell === undefined) return ended(Effect.void)
        tell = () => ended(Effect.void)
        running.interrupt()
      })
    })
  )
