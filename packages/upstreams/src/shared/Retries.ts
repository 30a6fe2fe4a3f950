/** Repeats requests that are safe to repeat: those that only read, that carry an idempotency key, or that happen once by their nature. */
import type { UpstreamUnavailable } from "@millrace/core"
import { Clock, Duration, Effect, Result } from "effect"
import type { HttpClientRequest } from "effect/http"
import type { Ask, Reply } from "./ByteService.ts"
import * as RetryAfter from "./RetryAfter.ts"

export interface Options {
  /** How often a request is repeated; twice by default. */
  readonly retries?: number
  /** The wait before a request is repeated for the first time, doubled each time; half a second by default. */
  readonly retryDelay?: Duration.Input
}

/** A service that asks for a longer wait is not asked again here. */
const LONGEST_WAIT = Duration.toMillis("10 seconds")

/** Repeats a request without an answer, and one whose answer asks for it. Returns the last answer, whatever its status. */
export const make =
  (ask: Ask, { retries = 2, retryDelay = "500 millis" }: Options): Ask =>
  (request) => {
    const first = Duration.toMillis(Duration.fromInputUnsafe(retryDelay))
    const attempt = (tried: number): ReturnType<Ask> =>
      Effect.flatMap(outcomeOf(ask, request), ({ outcome, at }) => {
        const wait = tried < retries ? waitAfter(outcome, first * 2 ** tried, at) : undefined
        if (wait !== undefined) return Effect.delay(attempt(tried + 1), wait)
        return Effect.fromResult(outcome)
      })
    return attempt(0)
  }

type Outcome = Result.Result<Reply, UpstreamUnavailable>

const outcomeOf = (ask: Ask, request: HttpClientRequest.HttpClientRequest) =>
  Effect.all({ outcome: Effect.result(ask(request)), at: Clock.currentTimeMillis })

/** Milliseconds to wait before the request is repeated; undefined if it is not. */
export const waitAfter = (outcome: Outcome, delay: number, now: number): number | undefined => {
  if (Result.isFailure(outcome)) return isFinal(outcome.failure) ? undefined : delay
  const { headers, status } = outcome.success
  if (!asksForRetry(status, headers["stripe-should-retry"])) return undefined
  const wait = Math.max(delay, RetryAfter.millisOf(headers["retry-after"], now) ?? 0)
  return wait <= LONGEST_WAIT ? wait : undefined
}

/** The same request would have the same reply, or whoever failed it knows when to come again. */
const isFinal = ({ invalidReply, retryAfter }: UpstreamUnavailable): boolean => invalidReply === true || retryAfter !== undefined

/** Stripe says itself whether to repeat. 409: another request with the same key, or for the same object, is under way. */
const asksForRetry = (status: number, advice: string | undefined): boolean =>
  status >= 400 && (advice === "true" || (advice !== "false" && (status === 409 || status === 429 || status >= 500)))
