/** A clock with an offset that a test sets. It runs at the normal rate. */
import { Clock, Effect } from "effect"

/** How far the clock is ahead, milliseconds. A test may change it at any time. */
export interface Apart {
  ahead: number
}

/** The current clock with the offset. Provide it as `Clock.Clock`. */
export const make = (apart: Apart): Effect.Effect<Clock.Clock> =>
  Effect.map(Clock.Clock, (right) => {
    const millis = () => right.currentTimeMillisUnsafe() + apart.ahead
    const nanos = () => right.currentTimeNanosUnsafe() + BigInt(apart.ahead) * 1_000_000n
    return {
      currentTimeMillisUnsafe: millis,
      currentTimeMillis: Effect.sync(millis),
      currentTimeNanosUnsafe: nanos,
      currentTimeNanos: Effect.sync(nanos),
      monotonicTimeNanosUnsafe: () => right.monotonicTimeNanosUnsafe(),
      monotonicTimeNanos: Effect.sync(() => right.monotonicTimeNanosUnsafe()),
      sleep: (duration) => right.sleep(duration)
    }
  })
