/** A call as the steps of the charge see it, and what it may come to. */
import type { Aggregate, StateStore } from "@millrace/event-sourcing"
import { Duration, Schema } from "effect"
import * as Credits from "../../Credits.ts"
import type { Account } from "../../ledger/Account.ts"
import * as Decisions from "../../ledger/Decisions.ts"
import type { Committed } from "../../ledger/Ledger.ts"
import * as Lots from "../../ledger/Lots.ts"
import type { VaultFailure } from "../../vault/Vault.ts"
import type { Page, Requester } from "../../work/Contract.ts"
import type { Download } from "../../work/FileOperation.ts"
import type { Any } from "../../work/Operation.ts"
import type { OperationError, OperationFailed, TooManyJobs, UpstreamUnavailable } from "../../work/OperationError.ts"
import type { NotPriced } from "../PricePlan.ts"

/** Who calls, and how. */
export interface Caller extends Requester {
  /** `key` as the caller sent it; `request`: a text that differs whenever the request does. Neither is written anywhere. */
  readonly idempotency?: { readonly key: string; readonly request: string }
  /** A dearer call is refused before anything is held. */
  readonly maxCost?: Credits.Credits
}

/** The caller's idempotency key as the ledger knows it. */
export type Key = NonNullable<Decisions.Reserve["key"]>

/** A call that was checked and priced. */
export interface Call<E extends OperationError = OperationError, R = unknown> extends Requester {
  readonly operation: Any<E, R>
  // biome-ignore lint/suspicious/noExplicitAny: what the operation takes
  readonly input: any
  readonly key: Key | undefined
  readonly reservationId: string
  readonly quantity: number
  readonly priceVersion: number
  readonly unitPrice: Credits.Credits
  /** quantity × unit price. */
  readonly cost: Credits.Credits
}

/** A call that may run: its price is held, or it costs nothing. */
export interface Held<E extends OperationError = OperationError, R = unknown> {
  readonly _tag: "Held"
  readonly call: Call<E, R>
  /** The account right after the hold; undefined where nothing is held. */
  readonly hold: Committed | undefined
}

/** A success. */
export interface Reply {
  /** Of the call that did the work: the first one's, when it is replayed. */
  readonly requestId: string
  /** The operation's data as JSON text, exactly as it was first answered. */
  readonly data: string
  /** What the call cost, and what is available now. Absent where a free call was done, but the balance could no longer be read. */
  readonly billed?: { readonly charged: Credits.Credits; readonly balance: Credits.Credits }
  readonly replayed: boolean
  /** The answer is not final: seconds after which to ask again. */
  readonly retryAfter?: number
  /** Where the answer is one page of many. */
  readonly page?: Page
  /** The job that the call became. It is charged once it has succeeded; until then its price is held. */
  readonly job?: { readonly id: string }
  /** Where the operation gives a file. */
  readonly file?: Download
}

/** The key has done its work already. */
export interface Replayed {
  readonly _tag: "Replayed"
  readonly reply: Reply
}

// errors

export class CostExceedsLimit extends Schema.TaggedError<CostExceedsLimit>()("CostExceedsLimit", {
  cost: Credits.Credits,
  limit: Credits.Credits
}) {}
/** The work was done, but its hold had ended before it could be charged: nothing was charged, and the result is withheld. */
export class ResultWithheld extends Schema.TaggedError<ResultWithheld>()("ResultWithheld", {}) {}
/** The store did not say in time whether the call was settled. With a key, a retry tells; without one, the call is made free. */
export class OutcomeUnknown extends Schema.TaggedError<OutcomeUnknown>()("OutcomeUnknown", {}) {}
/** The call under this key succeeded, but its reply was not kept or is gone. It does not run again. */
export class ReplyUnavailable extends Schema.TaggedError<ReplyUnavailable>()("ReplyUnavailable", {}) {}

export type ChargeError =
  | Exclude<Decisions.ReserveRefusal, Decisions.AlreadySucceeded | Decisions.LookupStale | Decisions.AlreadyEnded>
  | CostExceedsLimit
  | ResultWithheld
  | OutcomeUnknown
  | ReplyUnavailable
  | UpstreamUnavailable
  | OperationFailed
  | TooManyJobs
  | NotPriced
  | Aggregate.Failure
  | StateStore.StateUnavailable
  | VaultFailure

// what follows of a call

/** How much longer than its work a hold lives at least, milliseconds: time to keep the reply and settle. */
export const HOLD_MARGIN = 30_000
/** How long after its hold a job can be accepted, milliseconds. */
const ACCEPT_WITHIN = 30_000

/** The command that holds its price. A job's hold ends with the job; any other at a time of its own. */
export const reserveOf = (
  { key, operation, priceVersion, quantity, requestId, reservationId, unitPrice }: Call,
  adjustmentLifetime: number,
  jobId: string
): Decisions.Reserve => {
  const hold = { reservationId, requestId, operation: operation.key, quantity, priceVersion, unitPrice, adjustmentLifetime }
  const keyed = key === undefined ? hold : { ...hold, key }
  if (operation._tag === "Job") return { ...keyed, job: { jobId, acceptWithin: ACCEPT_WITHIN } }
  const lifetime = Duration.toMillis(operation.timeout) + HOLD_MARGIN
  return isRecoverable(operation) ? { ...keyed, lifetime, recoverable: true } : { ...keyed, lifetime }
}

/** Recovery asks such an operation what became of a call before it ends the call's hold. */
export const isRecoverable = (operation: Any): boolean => operation._tag === "Call" && operation.recover !== undefined

/** What can be spent: credits that are due to expire by now are gone, whether or not that was written. */
export const available = ({ state, at }: Aggregate.Current<Account> | Committed): Credits.Credits =>
  Lots.available(Decisions.asOf(state, at).purse.lots, at)
