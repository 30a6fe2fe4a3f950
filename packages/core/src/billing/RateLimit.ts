/**
 * The rate limit of an account, or of a client without an account: a number of calls in each window. Calls are counted in memory, and hosts
 * exchange counts in the background. Effect's own limiter keeps every key for ever, though clients choose keys, and reads its store at each
 * call. This one drops keys that were unused for a window, and never waits for a store.
 */
import type { StateStore } from "@millrace/event-sourcing"
import { Clock, Context, Effect, Layer, Result, Schema } from "effect"
import type { Vault } from "../vault/Vault.ts"
import * as RateCounts from "./RateCounts.ts"
import * as RateSharing from "./RateSharing.ts"

export interface RateLimitPolicy {
  /** Calls in a window. */
  readonly limit: number
  /** Seconds. Windows are aligned to 1970: a window of a minute begins with the minute. */
  readonly window: number
}

export interface RateLimitState extends RateLimitPolicy {
  readonly remaining: number
  /** Seconds until the window ends or, if later, until a call is admitted again. Rounded up. */
  readonly resetAfter: number
}

/** The limit is reached. `window` and `resetAfter` in seconds. */
export class RateLimited extends Schema.TaggedError<RateLimited>()("RateLimited", {
  limit: Schema.Int,
  window: Schema.Finite,
  resetAfter: Schema.Int
}) {
  override get message(): string {
    return `More than ${this.limit} calls in ${this.window} seconds; the next are admitted in ${this.resetAfter} seconds`
  }
}

/** `admitted`: called for each admitted call, with the tally of its key. */
const serviceOf = (
  policy: RateLimitPolicy,
  counts: RateCounts.Counts,
  clock: Clock.Clock,
  admitted: (tally: RateCounts.Tally) => void = () => {}
) => {
  const { limit, window } = policy
  const secondsUntil = (instant: number, now: number): number => Math.ceil((instant - now) / 1000)
  const stateOf = (tally: RateCounts.Tally, now: number): RateLimitState => ({
    limit,
    window,
    remaining: Math.max(0, limit - counts.total(tally)),
    resetAfter: secondsUntil(counts.freeAt(tally), now)
  })
  const consumeNow = (key: string): Result.Result<RateLimitState, RateLimited> => {
    const now = clock.currentTimeMillisUnsafe()
    const tally = counts.remember(key, now)
    if (counts.total(tally) >= limit)
      return Result.fail(new RateLimited({ limit, window, resetAfter: secondsUntil(counts.freeAt(tally), now) }))
    RateCounts.admit(tally)
    admitted(tally)
    return Result.succeed(stateOf(tally, now))
  }
  return {
    policy,
    /** Counts one call. `now`: the same at once, since no call waits for a store. */
    consume: Object.assign((key: string) => Effect.suspend(() => Effect.fromResult(consumeNow(key))), { now: consumeNow }),
    /** The state of a key, without counting a call. */
    peek: (key: string) =>
      Effect.sync(() => {
        const now = clock.currentTimeMillisUnsafe()
        return stateOf(counts.find(key, now) ?? RateCounts.emptyTally(key, counts.windowAt(now)), now)
      })
  }
}

export class RateLimit extends Context.Service<RateLimit, ReturnType<typeof serviceOf>>()("@millrace/core/billing/RateLimit") {
  /** A limit of this process alone. */
  static readonly layer = (policy: RateLimitPolicy): Layer.Layer<RateLimit> =>
    Layer.effect(
      this,
      Effect.map(Clock.Clock, (clock) => serviceOf(policy, countsOf(policy, clock), clock))
    )

  /**
   * A limit shared by all hosts on one state store. No call waits for the store. With *n* hosts, a window of a key admits at most `limit +
   * (n - 1) × u` calls, and never more than `limit × n`. *u* is what one host admits before the others have its count: `floor(limit / 20) +
   * 1 + c` calls, where *c* is the number of calls of the key that it receives within `every` (100 ms) and two accesses to the store. A
   * single host counts exactly, and no call within the limit is refused. The excess is a debt in the following windows, so over time the
   * excess is at most `floor(limit / 20)` calls for each other host and window.
   *
   * Windows have numbers, so clocks that differ shift the windows of hosts, but no window admits more calls. The last calls of a stopped
   * host count in their own window only. A host that cannot reach the store uses its own counts and the last reports: then *u* is up to
   * `limit`. The same holds for the busy keys of a host beyond its first 2,000.
   */
  static readonly shared = (
    policy: RateLimitPolicy,
    options: RateSharing.Options = {}
  ): Layer.Layer<RateLimit, never, StateStore.StateStore | Vault> =>
    Layer.effect(
      this,
      Effect.gen(function* () {
        const clock = yield* Clock.Clock
        const counts = countsOf(policy, clock)
        return serviceOf(policy, counts, clock, yield* RateSharing.make(counts, options))
      })
    )
}

const countsOf = ({ limit, window }: RateLimitPolicy, clock: Clock.Clock) =>
  new RateCounts.Counts({ limit, length: window * 1000 }, clock.currentTimeMillisUnsafe())

/** The rate limit's key of an account. */
export const ofAccount = (accountId: string): string => `account:${accountId}`
