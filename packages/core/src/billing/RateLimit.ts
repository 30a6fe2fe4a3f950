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
  { /** Counts one call. */ readonly consume: (key: string) => Effect.Effect<RateLimitState, RateLimited> }
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

        const windowOf = (key: string, now: number): Window => {
          if (now - since >= length) {
            older = now - since < 2 * length ? recent : new Map()
            recent = new Map()
            since = now
          }
          const known = recent.get(key) ?? older.get(key)
          const current = known !== undefined && now < known.endsAt ? known : { calls: 0, endsAt: now + length }
          recent.set(key, current)
          return current
        }

        return RateLimit.of({
          consume: (key) =>
            Effect.suspend((): Effect.Effect<RateLimitState, RateLimited> => {
              const now = clock.currentTimeMillisUnsafe()
              const current = windowOf(key, now)
              const resetAfter = Math.ceil((current.endsAt - now) / 1000)
              if (current.calls >= limit) return Effect.fail(new RateLimited({ limit, window, resetAfter }))
              current.calls++
              return Effect.succeed({ limit, window, remaining: limit - current.calls, resetAfter })
            })
        })
      })
    )
}

interface Window {
  calls: number
  readonly endsAt: number
}
