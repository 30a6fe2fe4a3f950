/** Limits that are the same for every account and every operation. */
import { Schema } from "effect"
import { MAX_REPLY, REPLY_LIFETIME } from "../billing/Replies.ts"

/** Pages of a list, counted from 1. */
export const LAST_PAGE = 10_000
export const PER_PAGE = { minimum: 1, maximum: 100, default: 25 } as const

/** The schema of the limits in replies. */
export const CommonLimits = Schema.Struct({
  /** Bounds of the query of a paged list. */
  pages: Schema.Struct({
    page: Schema.Struct({ minimum: Schema.Int, maximum: Schema.Int }),
    per_page: Schema.Struct({ minimum: Schema.Int, maximum: Schema.Int, default: Schema.Int })
  }),
  /** Replies to calls with an idempotency key, which are replayed when the call is sent again. */
  replies: Schema.Struct({
    /** Seconds. */
    kept_for: Schema.Int,
    /** The longest data that is kept, in UTF-16 code units. */
    maximum_length: Schema.Int
  })
})

export const COMMON_LIMITS: typeof CommonLimits.Type = {
  pages: { page: { minimum: 1, maximum: LAST_PAGE }, per_page: PER_PAGE },
  replies: { kept_for: REPLY_LIFETIME / 1_000, maximum_length: MAX_REPLY }
}
