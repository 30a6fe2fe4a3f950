/** The JSON forms of what a call takes to another host and brings back: the operation's input, and how the call ended. */
import { Aggregate, EventStore, StateStore } from "@millrace/event-sourcing"
import { Cause, Exit, Option, Schema } from "effect"
import {
  type ChargeError,
  CostExceedsLimit,
  lifetimeOf,
  OutcomeUnknown,
  type Reply,
  ReplyUnavailable,
  ResultWithheld
} from "../billing/charge/Call.ts"
import { NotPriced } from "../billing/PricePlan.ts"
import * as Refusals from "../ledger/Refusals.ts"
import { SubjectDestroyed, Tampered } from "../vault/Vault.ts"
import { inputOf } from "../work/Contract.ts"
import type { Any } from "../work/Operation.ts"
import * as OperationError from "../work/OperationError.ts"
import type { Ended } from "./Message.ts"

// errors

/** All errors that a call may end with. */
const Failure = Schema.toCodecJson(
  Schema.Union([
    OperationError.InvalidInput,
    OperationError.NotFound,
    OperationError.UpstreamUnavailable,
    OperationError.UpstreamNotConfigured,
    OperationError.TooManyJobs,
    OperationError.TooManyPayments,
    OperationError.TooManySubmissions,
    OperationError.AddressNotVerified,
    OperationError.DownloadUnavailable,
    OperationError.OperationFailed,
    Refusals.AccountNotFound,
    Refusals.AccountSuspended,
    Refusals.AccountClosed,
    Refusals.AccountInDebt,
    Refusals.InsufficientCredits,
    Refusals.InFlight,
    Refusals.KeyReused,
    Refusals.TrialUsedUp,
    Refusals.TrialExcludesJobs,
    CostExceedsLimit,
    ResultWithheld,
    OutcomeUnknown,
    ReplyUnavailable,
    NotPriced,
    Aggregate.Busy,
    Aggregate.StreamRefused,
    EventStore.AppendInDoubt,
    EventStore.AppendTooLarge,
    EventStore.StoreUnavailable,
    StateStore.StateUnavailable,
    SubjectDestroyed,
    Tampered
  ])
)
export type Failure = typeof Failure.Type

/** A new error of a call must be added above. */
type Complete<_All extends Failure> = true
export type IsComplete = Complete<ChargeError | OperationError.OperationError>

const encodeFailure = Schema.encodeUnknownOption(Failure)
const decodeFailure = Schema.decodeUnknownOption(Failure)

// inputs

/** An operation whose calls can be forwarded. */
export interface Forwardable {
  readonly operation: Any
  /** The JSON form of an input; none if it has no such form. */
  readonly encode: (input: unknown) => Option.Option<unknown>
  readonly decode: (json: unknown) => Option.Option<unknown>
  /** Milliseconds after which the call has surely ended, at the host that runs it. */
  readonly patience: number
}

/** For answers on their way. */
const MARGIN = 10_000

/**
 * How the calls of an operation are forwarded. Undefined for those that gain nothing by it: files, which are streams, and what is free,
 * which writes nothing to the account.
 */
export const forwardable = (operation: Any): Forwardable | undefined => {
  if (operation._tag === "File" || operation.price === 0) return undefined
  const input = Schema.toCodecJson(inputOf(operation.route))
  return {
    operation,
    encode: Schema.encodeUnknownOption(input),
    decode: Schema.decodeUnknownOption(input),
    patience: lifetimeOf(operation) + MARGIN
  }
}

// ends

export const endedOf = (exit: Exit.Exit<Reply, unknown>): Ended => {
  if (Exit.isSuccess(exit)) return { reply: exit.value }
  if (Cause.hasInterruptsOnly(exit.cause)) return { interrupted: true }
  const error = Option.flatMap(Cause.findErrorOption(exit.cause), encodeFailure)
  return Option.isSome(error) ? { error: error.value } : { defect: Cause.pretty(exit.cause) }
}

/** `OutcomeUnknown` for what only the host that ran the call understands, and where that host interrupted it. */
export const exitOf = (ended: Ended): Exit.Exit<Reply, Failure> => {
  if ("reply" in ended) return Exit.succeed(ended.reply)
  if ("defect" in ended) return Exit.die(new Error(ended.defect))
  return Exit.fail("error" in ended ? Option.getOrElse(decodeFailure(ended.error), () => new OutcomeUnknown()) : new OutcomeUnknown())
}
