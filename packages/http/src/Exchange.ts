/** Facts about one request and its answer, collected for headers and the log. */

import type { Credits, RateLimitState } from "@millrace/core"
import { Context } from "effect"

export interface Exchange {
  /** The request id: `X-Request-Id`, unless the answer is a replay. */
  readonly id: string
  /** Milliseconds since 1970. */
  readonly startedAt: number
  /** The client's own id of the request, for the log only. */
  readonly correlationId: string | undefined
  /** The pattern of the route, such as `/api/v1/bin/:bin`; never the path itself. */
  route?: string | undefined
  accountId?: string | undefined
  /** The calls that remain of the account's trial; undefined if it is not on trial. */
  trialRemaining?: number | undefined
  charged?: Credits.Credits | undefined
  rate?: RateLimitState | undefined
}

/** The exchange of the current fiber. */
export const CurrentExchange = Context.Reference<Exchange>("@millrace/http/CurrentExchange", {
  defaultValue: () => {
    throw new Error("There is no request: the routes need the layer of `Http`")
  }
})
