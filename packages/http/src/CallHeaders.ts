/** What a caller may say of a call beside its input: the key under which it runs once, and what it may cost at most. */

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
/** Any visible ASCII but what would make it a list, which is what two headers arrive as, or a string that does not end. */
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

/** Quoted and bare spellings of one text are one key. */
const keyOf = (sent: string): string | undefined => {
  const key = BARE.test(sent) ? sent : QUOTED.exec(sent)?.groups?.["text"]?.replaceAll(/\\(.)/gu, "$1")
  return key === undefined || key.length === 0 || key.length > MAX_KEY ? undefined : key
}
