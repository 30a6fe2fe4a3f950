/** Limits the time of an effect, with one fiber for its work and one timer. */
import { Clock, Context, Duration, Effect, Exit } from "effect"
import { fork, type Running, type Told } from "../Running.ts"

/**
 * Runs an effect for at most `limit`, then interrupts it and tells `late()`. What is interrupted is told once its fiber has ended. Work that
 * ends at once arms no timer.
 */
export const start = <A, E, R, E2>(
  work: Effect.Effect<A, E, R>,
  context: Context.Context<R>,
  limit: Duration.Input,
  late: () => Exit.Exit<never, E2>,
  told: Told<A, E | E2>
): Running => {
  if (Exit.isExit(work)) return fork(work as Exit.Exit<A, E>, context, told)
  const fiber = Effect.runForkWith(context)(work)
  const atOnce = fiber.pollUnsafe()
  if (atOnce !== undefined) return fork(atOnce, context, told)
  let early: Exit.Exit<never, E2> | undefined
  const endEarly = (exit: Exit.Exit<never, E2>): void => {
    early ??= exit
    fiber.interruptUnsafe()
  }
  const disarm = arm(context, limit, () => endEarly(late()))
  fiber.addObserver((exit) => {
    disarm()
    told(early ?? exit)
  })
  return { interrupt: () => endEarly(Exit.interrupt()) }
}

const SYSTEM_CLOCK = Context.get(Context.empty(), Clock.Clock)
/** The longest delay of a timer of Node, milliseconds. */
const MAX_DELAY = 2 ** 31 - 1

/** Rings once the time has passed, by the clock of the context. Returns the function that prevents it. */
const arm = (context: Context.Context<never>, limit: Duration.Input, ring: () => void): (() => void) => {
  const millis = Duration.toMillis(limit)
  if (millis > 0 && millis <= MAX_DELAY && Context.get(context, Clock.Clock) === SYSTEM_CLOCK) {
    const timer = setTimeout(ring, millis)
    return () => clearTimeout(timer)
  }
  // Any other clock has no timer, only a sleep
  const sleep = Effect.runForkWith(context)(Effect.sleep(millis))
  sleep.addObserver((exit) => {
    if (Exit.isSuccess(exit)) ring()
  })
  return () => sleep.interruptUnsafe()
}
