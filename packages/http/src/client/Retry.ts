/**
 * Decides when a call is sent again. All attempts of a call have the same idempotency key, so it is charged once whatever became of
 * earlier attempts.
 */
import type { MillraceError } from "./Failure.ts"

/** All times in milliseconds. */
export interface RetryOptions {
  /** How often a call is sent at the most: 5 times by default. 1 is never again. */
  readonly attempts?: number
  /** How long a call may take with all its attempts: 2 minutes by default. */
  readonly within?: number
  /** How long one attempt may take: 1 minute by default. */
  readonly timeout?: number
  /** The first wait at the most, doubled with each attempt: 250 by default. */
  readonly base?: number
  /** No wait is longer than this, unless the server asks for it: 10 seconds by default. */
  readonly cap?: number
}

export type Policy = Required<RetryOptions>

export const policyOf = ({ attempts = 5, within = 120_000, timeout = 60_000, base = 250, cap = 10_000 }: RetryOptions = {}): Policy => ({
  attempts,
  within,
  timeout,
  base,
  cap
})

export interface Progress {
  /** Attempts so far. */
  readonly attempts: number
  /** Milliseconds since the first began. */
  readonly spent: number
}

/**
 * Milliseconds until the next attempt: what the server asks for, and exponential backoff with full jitter on top of it, so that callers
 * who failed together do not come again together. Undefined when there is no next one. `random` is from 0 up to 1.
 */
export const waitBeforeNext = (policy: Policy, error: MillraceError, { attempts, spent }: Progress, random: number): number | undefined => {
  if (!error.retryable || attempts >= policy.attempts) return undefined
  const jitter = random * Math.min(policy.cap, policy.base * 2 ** (attempts - 1))
  const wait = (error.retryAfter ?? 0) + jitter
  // An attempt that could not end in time is not begun
  return spent + wait < policy.within ? wait : undefined
}

/** Milliseconds that the next attempt may take. */
export const timeoutOfNext = ({ timeout, within }: Policy, spent: number): number => Math.max(0, Math.min(timeout, within - spent))
