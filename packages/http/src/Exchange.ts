/** One request and its answer: what is known of them by now, for headers and the log line. */

import type { Credits, RateLimitState } from "@millrace/core"
import { Context } from "effect"

export class Exchange {
  /** Names the request; in `X-Request-Id`, unless the answer is a replay. */
  readonly id: string
  /** Milliseconds since 1970. */
  readonly startedAt: number
  /** What the client calls it: for the log, and nothing else. */
  readonly correlationId: string | undefined
  /** The pattern of the path, never the path. */
  route: string | undefined
  accountId: string | undefined
  charged: Credits.Credits | undefined
  rate: RateLimitState | undefined

  constructor(id: string, startedAt: number, correlationId: string | undefined) {
    this.id = id
    this.startedAt = startedAt
    this.correlationId = correlationId
  }
}

/** The exchange that a fiber serves. */
export const CurrentExchange = Context.Reference<Exchange>("@millrace/http/CurrentExchange", {
  defaultValue: () => {
    throw new Error("There is no request: the routes need the layer of `Http`")
  }
})
