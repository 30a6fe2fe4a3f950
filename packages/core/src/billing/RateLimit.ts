/**
 * The rate limit of an account, or of a client without a key: so many calls in each window. Calls are counted in memory, and hosts share
 * their counts in the background. Effect's own limiter keeps every key it ever saw, though clients choose keys, and asks its store at each
 * call. This one forgets keys that were not used for a window, and answers at once.
 */
import type { StateStore } from "@millrace/event-sourcing"
import { Clock, Context, Effect, Layer, Schema } from "effect"
import type { Vault } from "../vault/Vault.ts"
import * as RateCounts from "./RateCounts.ts"
import * as RateSharing from "./RateSharing.ts"

export interface RateLimitPolicy {
  /** Calls in a window. */
  readonly limit: number
  /** Seconds. Windows follow one another from 1970 on: a window of a minute begins with the minute. */
  readonly window: number
}

export interface RateLimitState extends RateLimitPolicy {
  readonly remaining: number
  /** Seconds until the window ends, or until a call is let through again, rounded up. */
  readonly resetAfter: number
}

export class RateLimited extends Schema.TaggedError<RateLimited>()("RateLimited", {
  limit: Schema.Int,
  window: Schema.Finite,
  resetAfter: Schema.Int
}) {}

export class RateLimit extends Context.Service<
  RateLimit,
  {
    readonly policy: RateLimitPolicy
    /** Counts one call. */
    readonly consume: (key: string) => Effect.Effect<RateLimitState, RateLimited>
    /** What is left, without counting. */
    readonly peek: (key: string) => Effect.Effect<RateLimitState>
  }
>()("@millrace/core/billing/RateLimit") {
  /** Counted in this process alone. */
  static readonly layer = (policy: RateLimitPolicy): Layer.Layer<RateLimit> =>
    Layer.effect(
      RateLimit,
      Effect.map(counting(policy), ({ counts, clock }) => serviceOf(policy, counts, clock, () => {}))
    )

  /**
   * Counted by all hosts on one state store together; no call waits for the store. Of *n* hosts, one window of a key lets through
   * at most `limit + (n - 1) × u` calls, and never more than `limit × n`: *u* is what one host admits before the others have heard of
   * it, `floor(limit / 20) + 1 + c` calls, where *c* is how many calls of the key come to it within `every` (100 ms) and two looks at
   * the store. A single host counts exactly, and nothing is refused that is within the limit. What was too many is owed: it counts in
   * the windows after, so over time no more than `floor(limit / 20)` for each other host and window comes on top of the limit.
   *
   * Windows have numbers: clocks that differ shift the windows of hosts, and let no more calls through in any. A host that is gone counts
   * in the window of its last calls, and no longer. While the store does not serve a host, that host counts by
   * itself and by what it had heard: then *u* is up to `limit`. So it is for keys beyond the first 2,000 that are called often.
   */
  static readonly shared = (
    policy: RateLimitPolicy,
    options: RateSharing.Options = {}
  ): Layer.Layer<RateLimit, never, StateStore.StateStore | Vault> =>
    Layer.effect(
      RateLimit,
      Effect.gen(function* () {
        const { counts, clock, limit, quiet } = yield* counting(policy)
        return serviceOf(policy, counts, clock, yield* RateSharing.make(counts, { limit, quiet }, options))
      })
    )
}

/** A host admits a QUIET-th of the limit before it tells the others. */
const QUIET = 20

const counting = ({ limit, window }: RateLimitPolicy) =>
  Effect.map(Clock.Clock, (clock) => {
    const options = { limit, length: window * 1000, quiet: Math.floor(limit / QUIET) }
    return { ...options, clock, counts: new RateCounts.Counts(options, clock.currentTimeMillisUnsafe()) }
  })

const serviceOf = (
  { limit, window }: RateLimitPolicy,
  counts: RateCounts.Counts,
  clock: Clock.Clock,
  admitted: (tally: RateCounts.Tally) => void
): RateLimit["Service"] => {
  const stateOf = (tally: RateCounts.Tally, now: number): RateLimitState => ({
    limit,
    window,
    remaining: Math.max(0, limit - counts.total(tally)),
    resetAfter: secondsUntil(counts.freeAt(tally), now)
  })
  return {
    policy: { limit, window },
    consume: (key) =>
      Effect.suspend((): Effect.Effect<RateLimitState, RateLimited> => {
        const now = clock.currentTimeMillisUnsafe()
        const tally = counts.remember(key, now)
        if (counts.total(tally) >= limit)
          return Effect.fail(new RateLimited({ limit, window, resetAfter: secondsUntil(counts.freeAt(tally), now) }))
        RateCounts.admit(tally)
        admitted(tally)
        return Effect.succeed(stateOf(tally, now))
      }),
    peek: (key) =>
      Effect.sync(() => {
        const now = clock.currentTimeMillisUnsafe()
        const tally = counts.find(key, now)
        return tally === undefined
          ? { limit, window, remaining: limit, resetAfter: secondsUntil(counts.startOf(counts.windowAt(now) + 1), now) }
          : stateOf(tally, now)
      })
  }
}

const secondsUntil = (instant: number, now: number): number => Math.ceil((instant - now) / 1000)

/** The key of an account's calls. */
export const ofAccount = (accountId: string): string => `account:${accountId}`
