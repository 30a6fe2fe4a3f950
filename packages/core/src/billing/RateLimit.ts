/**
 * How often an account, or a client without a key, may call: a fixed window for each, at this process. Effect's own limiter keeps
 * every key it ever saw, which an attacker chooses; this one forgets what a window ago was not asked for.
 */
import { Clock, Context, Effect, Layer, Schema } from "effect"

export interface RateLimitPolicy {
  /** Calls in a window. */
  readonly limit: number
  /** Seconds. */
  readonly window: number
}

export interface RateLimitState extends RateLimitPolicy {
  readonly remaining: number
  /** Seconds until the window ends, rounded up. */
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
    /** What is left, without counting: all of a window that would begin now, where none runs. */
    readonly peek: (key: string) => Effect.Effect<RateLimitState>
  }
>()("@millrace/core/billing/RateLimit") {
  static readonly layer = ({ limit, window }: RateLimitPolicy): Layer.Layer<RateLimit> =>
    Layer.effect(
      RateLimit,
      Effect.gen(function* () {
        const clock = yield* Clock.Clock
        const length = window * 1000
        let recent = new Map<string, Window>()
        let older = new Map<string, Window>()
        let since = clock.currentTimeMillisUnsafe()

        const runningAt = (key: string, now: number): Window | undefined => {
          const known = recent.get(key) ?? older.get(key)
          return known !== undefined && now < known.endsAt ? known : undefined
        }
        const windowOf = (key: string, now: number): Window => {
          if (now - since >= length) {
            older = now - since < 2 * length ? recent : new Map()
            recent = new Map()
            since = now
          }
          const current = runningAt(key, now) ?? { calls: 0, endsAt: now + length }
          recent.set(key, current)
          return current
        }

        const stateOf = ({ calls, endsAt }: Window, now: number): RateLimitState => ({
          limit,
          window,
          remaining: limit - calls,
          resetAfter: secondsUntil(endsAt, now)
        })

        return RateLimit.of({
          policy: { limit, window },
          consume: (key) =>
            Effect.suspend((): Effect.Effect<RateLimitState, RateLimited> => {
              const now = clock.currentTimeMillisUnsafe()
              const current = windowOf(key, now)
              if (current.calls >= limit)
                return Effect.fail(new RateLimited({ limit, window, resetAfter: secondsUntil(current.endsAt, now) }))
              current.calls++
              return Effect.succeed(stateOf(current, now))
            }),
          peek: (key) =>
            Effect.sync(() => {
              const now = clock.currentTimeMillisUnsafe()
              return stateOf(runningAt(key, now) ?? { calls: 0, endsAt: now + length }, now)
            })
        })
      })
    )
}

const secondsUntil = (instant: number, now: number): number => Math.ceil((instant - now) / 1000)

/** What the calls of an account are counted under. */
export const ofAccount = (accountId: string): string => `account:${accountId}`

interface Window {
  calls: number
  readonly endsAt: number
}
