/** Reasons of failures for operators: the upstream's message without the caller's input. */
import { type Cause, Effect } from "effect"
import { ofAccount, type Vault } from "../vault/Vault.ts"
import { UpstreamUnavailable } from "./OperationError.ts"
import { redact } from "./Redaction.ts"

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
  (error._tag === "UpstreamUnavailable" || error._tag === "OperationFailed")

/** The same error; what the caller asked is taken out of its reason. */
export const withoutInput = <E>(error: E, input: unknown): E =>
  error instanceof UpstreamUnavailable ? (new UpstreamUnavailable({ ...error, reason: redact(error.reason, input) }) as E) : error

const messageOf = (defect: unknown): string => (defect instanceof Error ? `${defect.name}: ${defect.message}` : String(defect))

const PURPOSE = "failure"

/** Seals a reason under the account's key, for an event's metadata. Undefined if there is no reason or it cannot be sealed now. */
export const seal = (vault: Vault["Service"], accountId: string, reason: string | undefined): Effect.Effect<string | undefined> =>
  reason === undefined ? Effect.undefined : Effect.catch(vault.seal(ofAccount(accountId), PURPOSE, reason), () => Effect.undefined)
