/** The headers that tell a caller how much of its rate is left: https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/. */
import type { RateLimitState } from "@millrace/core"

export const rateLimitHeaders = ({ limit, window, remaining, resetAfter }: RateLimitState): Readonly<Record<string, string>> => ({
  "ratelimit-policy": `"burst";q=${limit};w=${window}`,
  ratelimit: `"burst";r=${remaining};t=${resetAfter}`
})
