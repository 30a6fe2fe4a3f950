/** Limits what an account submits in a day (UTC), over all shops and hosts. */
import { StateStore } from "@millrace/event-sourcing"
import { Clock, Effect, Schema } from "effect"

/** Submissions, reports and requests of an account in a day. */
export const MOST_A_DAY = 100

const SPACE = "couponContributions"
const DAY = 86_400_000

/** The account submitted as much today as it may. `retryAfter`: seconds until the next day. */
export class DailyLimitReached extends Schema.TaggedError<DailyLimitReached>()("DailyLimitReached", {
  limit: Schema.Int,
  retryAfter: Schema.Int
}) {
  override get message(): string {
    return `The account submitted ${this.limit} times today, which is the limit`
  }
}

/** Counts one contribution. */
export const make = Effect.gen(function* () {
  const state = yield* StateStore.StateStore
  const admit = (accountId: string): Effect.Effect<void, DailyLimitReached | StateStore.StateUnavailable> =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const day = Math.floor(now / DAY)
      const key = `${accountId}/${day}`
      const entry = yield* state.get(SPACE, key)
      const count = entry === undefined ? 0 : Number(Buffer.from(entry.value).toString())
      const retryAfter = Math.ceil(((day + 1) * DAY - now) / 1_000)
      if (count >= MOST_A_DAY) return yield* new DailyLimitReached({ limit: MOST_A_DAY, retryAfter })
      const value = Buffer.from(String(count + 1))
      const expected = entry?.version ?? "absent"
      yield* Effect.catchTag(
        state.write([{ _tag: "put", space: SPACE, key, value, expected, expiresAt: (day + 2) * DAY }]),
        "StateConflict",
        () => Effect.andThen(Effect.yieldNow, admit(accountId))
      )
    })
  return admit
})
