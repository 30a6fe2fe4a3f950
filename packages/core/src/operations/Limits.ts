/** Limits that are the same for every account and every operation. */
import { Schema } from "effect"
import { MAX_REPLY, REPLY_LIFETIME } from "../billing/Replies.ts"

/** Pages of a list, counted from 1. */
export const LAST_PAGE = 10_000
export const PER_PAGE = { minimum: 1, maximum: 100, default: 25 } as const

/** As they are told. */
export const Limits = Schema.Struct({
  /** Of lists that come in pages. */
  pages: Schema.Struct({
    page: Schema.Struct({ minimum: Schema.Int, maximum: Schema.Int }),
    per_page: Schema.Struct({ minimum: Schema.Int, maximum: Schema.Int, default: Schema.Int })
  }),
  /** Answers to calls with an idempotency key, which are given again to whoever sends the call again. */
  replies: Schema.Struct({
    /** Seconds. */
    kept_for: Schema.Int,
    /** Of the data, in UTF-16 code units: what is longer is not kept. */
    maximum_length: Schema.Int
  })
})

export const LIMITS: typeof Limits.Type = {
  pages: { page: { minimum: 1, maximum: LAST_PAGE }, per_page: PER_PAGE },
  replies: { kept_for: REPLY_LIFETIME / 1_000, maximum_length: MAX_REPLY }
}
