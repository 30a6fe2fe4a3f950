/** Reasons of failures for operators: the upstream's message without the caller's input. */
import { type Cause, Effect } from "effect"
import { ofAccount, type Vault } from "../vault/Vault.ts"
import { UpstreamUnavailable } from "./OperationError.ts"

/** The redacted reason in one line; undefined if the caller was told the reason, or the call was interrupted. */
export const of = (cause: Cause.Cause<unknown>, input: unknown): string | undefined => {
  for (const reason of cause.reasons) {
    if (reason._tag === "Die") return redact(`a bug: ${messageOf(reason.defect)}`, input)
    if (reason._tag === "Fail" && isUntold(reason.error)) return redact(reason.error.reason, input)
  }
  return undefined
}

interface Untold {
  readonly _tag: "UpstreamUnavailable" | "OperationFailed"
  readonly reason: string
}

/** Errors whose reason is never shown to a caller. */
export const isUntold = (error: unknown): error is Untold =>
  typeof error === "object" &&
  error !== null &&
  "_tag" in error &&
  (error._tag === "UpstreamUnavailable" || error._tag === "OperationFailed") &&
  // A host in JavaScript may fail with anything
  "reason" in error &&
  typeof error.reason === "string"

/** The same error without the caller's input in its reason. */
export const withoutInput = <E>(error: E, input: unknown): E =>
  error instanceof UpstreamUnavailable ? (new UpstreamUnavailable({ ...error, reason: redact(error.reason, input) }) as E) : error

/** Anything may be thrown, also what has no text. */
const messageOf = (defect: unknown): string => {
  try {
    return defect instanceof Error ? `${defect.name}: ${defect.message}` : String(defect)
  } catch {
    return "something that has no text"
  }
}

const PURPOSE = "failure"

/** Seals a reason under the account's key, for an event's metadata. Undefined if there is no reason or it cannot be sealed now. */
export const seal = (vault: Vault["Service"], accountId: string, reason: string | undefined): Effect.Effect<string | undefined> =>
  reason === undefined ? Effect.undefined : Effect.catch(vault.seal(ofAccount(accountId), PURPOSE, reason), () => Effect.undefined)

// redaction

/** Shorter texts are not removed: they occur in ordinary words. */
const SHORTEST = 4
const LONGEST_REASON = 500
const URL = /\b[a-z][a-z0-9+.-]*:\/\/[^\s"'<>]+/giu

/** The text in one line of at most 500 characters, without texts of the input and without queries and credentials of URLs. */
export const redact = (text: string, input: unknown): string => {
  let redacted = text.replaceAll(/\s+/gu, " ").replaceAll(URL, (url) => url.replace(/\/\/[^/@]*@/u, "//").replace(/[?#].*$/u, ""))
  for (const secret of [...new Set(textsOf(input))].sort((a, b) => b.length - a.length))
    redacted = redacted.replaceAll(new RegExp(escape(secret), "giu"), "[input]")
  return redacted.length > LONGEST_REASON ? `${redacted.slice(0, LONGEST_REASON)}...` : redacted
}

/** Texts of the input that are long enough; of an e-mail address also its two parts. */
const textsOf = (value: unknown): ReadonlyArray<string> => {
  if (typeof value === "string") return [value, ...(value.includes("@") ? value.split("@") : [])].filter(({ length }) => length >= SHORTEST)
  if (typeof value !== "object" || value === null) return []
  return Object.values(value).flatMap(textsOf)
}

const escape = (text: string): string => text.slice(0, 1_000).replaceAll(/[\\^$.*+?()[\]{}|]/gu, "\\$&")
