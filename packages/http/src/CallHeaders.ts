/** The headers that control a call: its idempotency key, and the most that it may cost. */

import { Credits } from "@millrace/core"
import { Result } from "effect"
import type { Headers } from "effect/http"
import type { Issue } from "./OperationInput.ts"

export interface CallHeaders {
  readonly idempotencyKey: string | undefined
  readonly maxCost: Credits.Credits | undefined
}

const MAX_KEY = 255
/** A string of RFC 8941, section 3.3.3. */
const QUOTED = /^"(?<text>(?:[ !#-[\]-~]|\\["\\])*)"$/u
/** Visible ASCII, without the comma, since Node joins repeated headers by commas, and without the double quote. */
const BARE = /^[!#-+\--~]+$/u

export const parse = (headers: Headers.Headers): Result.Result<CallHeaders, ReadonlyArray<Issue>> => {
  const issues: Array<Issue> = []
  const sentKey = headers["idempotency-key"]
  const idempotencyKey = sentKey === undefined ? undefined : keyOf(sentKey.trim())
  if (sentKey !== undefined && idempotencyKey === undefined) {
    issues.push({ field: "Idempotency-Key", message: `expected one key of 1 to ${MAX_KEY} visible ASCII characters` })
  }
  const sentCost = headers["x-max-credits"]
  const maxCost = sentCost === undefined ? undefined : Credits.parse(sentCost.trim())
  if (sentCost !== undefined && maxCost === undefined) {
    issues.push({ field: "X-Max-Credits", message: "expected an amount of credits such as 10 or 0.5, with at most three decimals" })
  }
  return issues.length > 0 ? Result.fail(issues) : Result.succeed({ idempotencyKey, maxCost })
}

/** The key as text: a quoted and an unquoted key of the same text are equal. */
const keyOf = (sent: string): string | undefined => {
  const key = BARE.test(sent) ? sent : QUOTED.exec(sent)?.groups?.["text"]?.replaceAll(/\\(.)/gu, "$1")
  return key === undefined || key.length === 0 || key.length > MAX_KEY ? undefined : key
}
