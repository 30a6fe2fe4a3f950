/** Ends what waits when its time is over. Waits of one length share one timer, because there may be ten thousand at once. */
import { Clock, Effect, FiberSet } from "effect"

interface Wait {
  /** Milliseconds of the monotonic clock: the host's clock may be stepped meanwhile. */
  readonly due: number
  readonly end: () => void
}

export type Expiries = Effect.Success<typeof make>

export const make = Effect.gen(function* () {
  const clock = yield* Clock.Clock
  const now = (): number => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
  const fork = yield* FiberSet.makeRuntime<never>()
  /** By length in milliseconds. Those of one length are over in the order in which they began. */
  const lines = new Map<number, Set<Wait>>()

  /** Sleeps until the first of a line is over, again and again until the line is empty. */
  const follow = Effect.fnUntraced(function* (millis: number, line: Set<Wait>) {
    for (const wait of line) {
      yield* Effect.sleep(Math.max(0, wait.due - now()))
      // Unless it was answered meanwhile
      if (line.delete(wait)) wait.end()
    }
    lines.delete(millis)
  })

  return {
    /** Calls `end` after so many milliseconds, unless the returned function is called before. */
    add: (millis: number, end: () => void): (() => void) => {
      const wait: Wait = { due: now() + millis, end }
      const line = lines.get(millis) ?? new Set()
      line.add(wait)
      if (!lines.has(millis)) {
        lines.set(millis, line)
        fork(follow(millis, line))
      }
      return () => line.delete(wait)
    }
  }
})
