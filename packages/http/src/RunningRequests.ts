/** The requests that are being answered: counted, so that a handler can close once they have ended. */
import { type Duration, Effect, Fiber, Option } from "effect"

export const make = () => {
  const fibers = new Set<Fiber.Fiber<unknown, unknown>>()
  let isClosing = false
  let allEnded = () => {}

  const ended = (fiber: Fiber.Fiber<unknown, unknown>) => {
    fibers.delete(fiber)
    if (fibers.size === 0) allEnded()
  }
  const untilAllEnded = Effect.callback<void>((resume) => {
    allEnded = () => resume(Effect.void)
    if (fibers.size === 0) allEnded()
  })

  return {
    /** Whether the handler refuses new requests because it is about to close. */
    isClosing: () => isClosing,
    /** Counts a request for as long as its fiber lives: until its answer is sent. */
    tracked: <A, E, R>(app: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
      Effect.withFiber((fiber) => {
        fibers.add(fiber)
        fiber.addObserver(() => ended(fiber))
        return app
      }),
    /** Closes: waits until all running requests have ended, and interrupts those that have not ended within the bound. */
    drain: Effect.fnUntraced(function* (within: Duration.Input) {
      isClosing = true
      const inTime = yield* Effect.timeoutOption(untilAllEnded, within)
      if (Option.isNone(inTime)) yield* Fiber.interruptAll(fibers)
    })
  }
}
