/** Outcomes as single words from a small set, for attributes of metrics and spans. */
import { type Cause, Exit } from "effect"
import { memoised } from "../Memoised.ts"

/** `InsufficientCredits` becomes `insufficient_credits`. */
const wordOf = memoised((tag: string) => tag.replaceAll(/(?<=[a-z0-9])(?=[A-Z])/gu, "_").toLowerCase())

/** The error's name, never its text, which may quote the request. `cancelled` for an interruption, `defect` for a bug. */
export const ofCause = (cause: Cause.Cause<unknown>): string => {
  let found = "cancelled"
  for (const reason of cause.reasons) {
    if (reason._tag === "Die") found = "defect"
    if (reason._tag === "Fail") {
      const { error } = reason
      return typeof error === "object" && error !== null && "_tag" in error && typeof error._tag === "string" ? wordOf(error._tag) : "error"
    }
  }
  return found
}

/** `success`, or the word of {@link ofCause}. */
export const of = (exit: Exit.Exit<unknown, unknown>): string => (Exit.isSuccess(exit) ? "success" : ofCause(exit.cause))
