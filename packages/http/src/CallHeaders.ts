/** The headers that control a call: its idempotency key, the most that it may cost, and how long it may wait for its answer. */

import { Credits } from "@millrace/core"
import { Result } from "effect"
import type { Issue } from "./OperationInput.ts"
import type { Head } from "./RequestReport.ts"

export interface CallHeaders {
  readonly idempotencyKey: string | undefined
  readonly maxCost: Credits.Credits | undefined
  /** Seconds to wait for the end of a job, or for what the operation waits for, at most {@link LONGEST_WAIT}; undefined where the caller does not ask to wait. */
  readonly wait: number | undefined
}

/** The longest wait in seconds: shorter than the idle timeout of connections. */
const LONGEST_WAIT = 150

/** `Prefer: wait=20`. RFC 7240. */
const WAIT = /(?:^|[,;])\s*wait\s*=\s*"?(?<seconds>\d{1,9})"?\s*(?=$|[,;])/iu

const MAX_KEY = 255
/** A string of RFC 8941, section 3.3.3. */
const QUOTED = /^"(?<text>(?:[ !#-[\]-~]|\\["\\])*)"$/u
/** Visible ASCII, without the comma, since Node joins repeated headers by commas, and without the double quote. */
const BARE = /^[!#-+\--~]+$/u

export const parse = (headers: Head["headers"]): Result.Result<CallHeaders, ReadonlyArray<Issue>> => {
  const issues: Array<Issue> = []
  const sentKey = headers["idempotency-key"]
  const idempotencyKey = sentKey === undefined ? undefined : keyOf(sentKey.trim())
  if (sentKey !== undefined && idempotencyKey === undefined) {
    issues.push({ field: "Idempotency-Key", message: `expected one key of 1 to ${MAX_KEY} visible ASCII characters` })
  }
  const sentCost = headers["x-max-credits"]
  const maxCost = sentCost === undefined ? undefined : Credits.parse(sentCost.trim())
  if (sentCost !== undefined && maxCost === undefined) {
    issues.push({ field: "X-Max-Credits", message: "expected an amount such as 10 or 0.5, with at most three decimals" })
  }
  return issues.length > 0 ? Result.fail(issues) : Result.succeed({ idempotencyKey, maxCost, wait: waitOf(headers["prefer"] ?? "") })
}

const waitOf = (prefer: string): number | undefined => {
  const seconds = WAIT.exec(prefer)?.groups?.["seconds"]
  return seconds === undefined ? undefined : Math.min(Number(seconds), LONGEST_WAIT)
}

/** The key as text: a quoted and an unquoted key of the same text are equal. */
const keyOf = (sent: string): string | undefined => {
  const key = BARE.test(sent) ? sent : QUOTED.exec(sent)?.groups?.["text"]?.replaceAll(/\\(.)/gu, "$1")
  return key === undefined || key.length === 0 || key.length > MAX_KEY ? undefined : key
}
