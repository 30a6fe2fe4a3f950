/** A clock that the test advances. Sleeps never end, so a ledger does nothing by itself. */
import { type Clock, Effect } from "effect"

export class Watch implements Clock.Clock {
  now: number

  /** `start`: ISO 8601. */
  constructor(start: string) {
    this.now = Date.parse(start)
  }

  currentTimeMillisUnsafe = () => this.now
  currentTimeNanosUnsafe = () => BigInt(this.now) * 1_000_000n
  monotonicTimeNanosUnsafe = this.currentTimeNanosUnsafe
  currentTimeMillis = Effect.sync(this.currentTimeMillisUnsafe)
  currentTimeNanos = Effect.sync(this.currentTimeNanosUnsafe)
  monotonicTimeNanos = this.currentTimeNanos
  sleep = () => Effect.never
}
