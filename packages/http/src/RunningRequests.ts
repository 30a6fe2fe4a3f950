/** The requests that are being answered: counted, so that a handler can close once they have ended. */
import { type Duration, Effect, Fiber, Option } from "effect"

export interface RunningRequests {
  /** Whether the handler refuses new requests because it is about to close. */
  readonly isClosing: () => boolean
  /** Counts a request for as long as the fiber that runs it lives: until its answer is sent. */
  readonly tracked: <A, E, R>(app: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Closes: waits until all running requests have ended, and interrupts those that have not ended within the bound. */
  readonly drain: (within: Duration.Input) => Effect.Effect<void>
}

export const make = (): RunningRequests => {
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
    isClosing: () => isClosing,
    tracked: (app) =>
      Effect.withFiber((fiber) => {
        fibers.add(fiber)
        fiber.addObserver(() => ended(fiber))
        return app
      }),
    drain: Effect.fnUntraced(function* (within) {
      isClosing = true
      const inTime = yield* Effect.timeoutOption(untilAllEnded, within)
      if (Option.isNone(inTime)) yield* Fiber.interruptAll(fibers)
    })
  }
}
