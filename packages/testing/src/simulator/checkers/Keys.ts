/** Checks idempotency: all answers under one key, within a day, are one success, byte for byte. */
import { Exit } from "effect"
import type { Evidence, Report } from "../Evidence.ts"
import { isFree } from "./Calls.ts"

/** For so long a success is certainly replayed, milliseconds. */
const REPLAYED = 24 * 3_600_000 - 60_000

export const checkKeys = (evidence: Evidence, report: Report): void => {
  const replies = new Map<string, { readonly at: number; readonly data: string; readonly requestId: string }>()
  for (const { intent, requestId, response } of evidence.calls) {
    if (intent.key === undefined || response === undefined || Exit.isFailure(response.answer)) continue
    const { data, requestId: original } = response.answer.value
    if (isFree(response.answer.value, evidence)) continue
    const name = `${intent.accountId} ${intent.key}`
    const before = replies.get(name)
    if (before !== undefined && Math.abs(response.at - before.at) < REPLAYED && (before.data !== data || before.requestId !== original))
      report(`${requestId}: the key ${intent.key} succeeded again, as ${original} after ${before.requestId}`)
    if (before === undefined || before.requestId !== original) replies.set(name, { at: response.at, data, requestId: original })
  }
}
