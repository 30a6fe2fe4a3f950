/**
 * Decides when a call is sent again. All attempts of a call have the same idempotency key, so it is charged once.
 */
import type { MillraceError } from "./Failure.ts"

/** All times in milliseconds. */
export interface RetryOptions {
  /** The most attempts of a call: 5 by default. */
  readonly attempts?: number
  /** The time limit of a call with all its attempts: 2 minutes by default. */
  readonly within?: number
  /** The time limit of one attempt: 1 minute by default. */
  readonly timeout?: number
  /** The longest first wait, doubled with each attempt: 250 by default. */
  readonly base?: number
  /** The longest wait, unless the server asks for a longer one: 10 seconds by default. */
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

/**
 * Milliseconds until the next attempt: the wait that the server asks for, plus exponential backoff with full jitter, so that clients that
 * failed together do not retry together. Undefined if the call is not retried. `attempts` so far; `spent` milliseconds since the first
 * began; `random` from 0 up to 1.
 */
export const waitBeforeNext = (
  policy: Policy,
  error: MillraceError,
  { attempts, spent }: { readonly attempts: number; readonly spent: number },
  random: number
): number | undefined => {
  if (!error.retryable || attempts >= policy.attempts) return undefined
  const jitter = random * Math.min(policy.cap, policy.base * 2 ** (attempts - 1))
  const wait = (error.retryAfter ?? 0) + jitter
  // Do not begin an attempt after the time limit
  return spent + wait < policy.within ? wait : undefined
}

/** Milliseconds that the next attempt may take. */
export const timeoutOfNext = ({ timeout, within }: Policy, spent: number): number => Math.max(0, Math.min(timeout, within - spent))
