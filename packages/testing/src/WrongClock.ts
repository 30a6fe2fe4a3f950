/** The clock of a host that is wrong by as much as a test says, and goes as fast as time does. */
import { Clock, Effect } from "effect"

/** Milliseconds that it is ahead. A test may change it, as an administrator sets a clock. */
export interface Apart {
  ahead: number
}

/** The clock in use, set wrong: provide it as `Clock.Clock` to what is built. */
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
