/** The types of a charge: a call, its hold, its reply and its errors. */
import type { Aggregate, EventStore, StateStore } from "@millrace/event-sourcing"
import { Duration, Function, Schema } from "effect"
import * as Credits from "../../Credits.ts"
import { idOf as jobIdOf } from "../../jobs/Job.ts"
import type { Account } from "../../ledger/Account.ts"
import * as Decisions from "../../ledger/Decisions.ts"
import type { Committed, Ledger } from "../../ledger/Ledger.ts"
import * as Lots from "../../ledger/Lots.ts"
import * as Money from "../../Money.ts"
import type { VaultFailure } from "../../vault/Vault.ts"
import type { CacheResult } from "../../work/CallOperation.ts"
import type { Page, Requester } from "../../work/Contract.ts"
import type { Download } from "../../work/FileOperation.ts"
import type { Any } from "../../work/Operation.ts"
import type { OperationError, OperationFailed, TooManyJobs, UpstreamUnavailable } from "../../work/OperationError.ts"
import type { NotPriced } from "../PricePlan.ts"

/** The caller of an operation. */
export interface Caller extends Requester {
  /** `key`: as the caller sent it; `request`: a text that differs for different requests. Only HMACs of both are stored. */
  readonly idempotency?: { readonly key: string; readonly request: string }
  /** A call that costs more is refused before the hold. */
  readonly maxCost?: Credits.Credits
  /** The reservation of the call, where the host that forwarded it has chosen it. By default a new one. */
  readonly reservationId?: string
}

/** The caller's idempotency key in the ledger's form. */
export type Key = NonNullable<Decisions.Reserve["key"]>

/** A checked and priced call. */
export interface Call<E extends OperationError = OperationError, R = unknown> extends Requester {
  readonly operation: Any<E, R>
  // biome-ignore lint/suspicious/noExplicitAny: the operation's input
  readonly input: any
  readonly key: Key | undefined
  readonly reservationId: string
  readonly quantity: number
  readonly priceVersion: number
  readonly unitPrice: Credits.Credits
  /** quantity × unit price. */
  readonly cost: Credits.Credits
  /** Under which the price is the one in force, for the hold. Undefined if the store confirms at once that it is. */
  readonly condition: EventStore.Condition | undefined
}

/** A call whose cost is held. */
export interface Held<E extends OperationError = OperationError, R = unknown> {
  readonly _tag: "Held"
  readonly call: Call<E, R>
  /** The account right after the hold. */
  readonly hold: Committed
}

/** A call that costs nothing, so nothing is held. */
export interface Free<E extends OperationError = OperationError, R = unknown> {
  readonly _tag: "Free"
  readonly call: Call<E, R>
}

/** A call that may run. */
export type Admitted<E extends OperationError = OperationError, R = unknown> = Held<E, R> | Free<E, R>

/** What a call cost its account, and what the account has now. */
export interface Billed {
  readonly charged: Credits.Credits
  readonly balance: Credits.Credits
  /** The calls that remain of the account's trial; absent if it is not on trial. */
  readonly trialRemaining?: number
}

/** A success. */
export interface Reply {
  /** The request that did the work. In a replay, that of the first call. */
  readonly requestId: string
  /** The operation's data as JSON text. In a replay, exactly the first call's. */
  readonly data: string
  /** The charge, and the balance now. Absent for a free call whose balance could not be read. */
  readonly billed?: Billed
  readonly replayed: boolean
  /** If the reply is not final: seconds after which the client should ask again. */
  readonly retryAfter?: number
  /** The page, if the reply is one of many. */
  readonly page?: Page
  /** Whether the reply made a request to its upstream; absent in a replay, and where the operation is not `cached`. */
  readonly cache?: CacheResult
  /** The job that the call became. It is charged once it has succeeded; until then its cost is held. */
  readonly job?: { readonly id: string }
  /** The file, if the operation replies with one. */
  readonly file?: Download
}

/** The reply of an earlier call under the same idempotency key. */
export interface Replayed {
  readonly _tag: "Replayed"
  readonly reply: Reply
}

// errors

/** The cost exceeds the caller's `maxCost`. Nothing was held. */
export class CostExceedsLimit extends Schema.TaggedError<CostExceedsLimit>()("CostExceedsLimit", {
  cost: Credits.Credits,
  limit: Credits.Credits
}) {
  messageIn(money: Money.Money): string {
    return `The call costs ${Money.text(this.cost, money)}, more than the ${Money.text(this.limit, money)} that its caller allows`
  }
  override get message(): string {
    return this.messageIn(Money.STANDARD)
  }
}
/** The work was done, but its hold had ended before it could be charged: nothing was charged, and the result is withheld. */
export class ResultWithheld extends Schema.TaggedError<ResultWithheld>()("ResultWithheld", {}) {
  override get message(): string {
    return "The call took longer than its credits were held for: nothing was charged, and the result is withheld"
  }
}
/** The store did not say in time whether the call was settled. With a key, a retry tells; without one, the call is made free. */
export class OutcomeUnknown extends Schema.TaggedError<OutcomeUnknown>()("OutcomeUnknown", {}) {
  override get message(): string {
    return "The store did not say in time whether the call was settled. Under an idempotency key, send it again; without one, it costs nothing"
  }
}
/** The call under this key succeeded, but its reply was not kept or is gone. It does not run again. */
export class ReplyUnavailable extends Schema.TaggedError<ReplyUnavailable>()("ReplyUnavailable", {}) {
  override get message(): string {
    return "The call under this idempotency key succeeded, and its reply is gone"
  }
}

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

// derived from a call

/** How much longer than the work's time limit a hold lives, milliseconds: time to keep the reply and settle. */
export const HOLD_MARGIN = 30_000
/** How long after its hold a job can be accepted, milliseconds. */
const ACCEPT_WITHIN = 30_000

/**
 * The longest time between the admission of a call and its reply, milliseconds. A call that becomes a job is answered once it is accepted.
 * Kept for each operation: parsing its time limit costs more than the rest of a hold's terms.
 */
export const lifetimeOf: (operation: Any) => number = Function.memoize(
  (operation) => (operation._tag === "Job" ? ACCEPT_WITHIN : Duration.toMillis(operation.timeout)) + HOLD_MARGIN
)

/** The command that holds the cost. A job's hold ends with the job; any other hold has an expiry. */
export const reserveOf = (call: Call, ledger: Pick<Ledger["Service"], "adjustmentLifetime" | "hasTrial">): Decisions.Reserve => {
  const { key, operation, priceVersion, quantity, requestId, reservationId, unitPrice } = call
  const { adjustmentLifetime, hasTrial: trial } = ledger
  const hold = { reservationId, requestId, operation: operation.key, quantity, priceVersion, unitPrice, adjustmentLifetime, trial }
  const keyed = key === undefined ? hold : { ...hold, key }
  if (operation._tag === "Job") return { ...keyed, job: { jobId: jobIdOf(reservationId), acceptWithin: ACCEPT_WITHIN } }
  const lifetime = lifetimeOf(operation)
  return isRecoverable(operation) ? { ...keyed, lifetime, recoverable: true } : { ...keyed, lifetime }
}

/** Whether recovery asks the operation for the outcome of a call before it ends the hold. */
export const isRecoverable = (operation: Any): boolean => operation._tag === "Call" && operation.recover !== undefined

/** What a call cost, with the account as it is now. */
export const billed = (
  ledger: Pick<Ledger["Service"], "trialOf">,
  account: Aggregate.Current<Account> | Committed,
  charged: Credits.Credits
): Billed => {
  const trial = ledger.trialOf(account)
  return { charged, balance: available(account), ...(trial !== undefined && { trialRemaining: trial.remaining }) }
}

/** The credits that can be spent. Excludes lots that are due to expire, even if their expiry is not written yet. */
export const available = ({ state, at }: Aggregate.Current<Account> | Committed): Credits.Credits =>
  Lots.available(Decisions.asOf(state, at).purse.lots, at)
