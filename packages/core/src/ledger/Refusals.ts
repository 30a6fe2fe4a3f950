/** Why a command on an account is refused. A refused command writes nothing. There is one class for each thing that a caller can act on. */
import { Schema } from "effect"
import * as Credits from "../Credits.ts"

export class AccountNotFound extends Schema.TaggedError<AccountNotFound>()("AccountNotFound", {}) {}
export class AccountSuspended extends Schema.TaggedError<AccountSuspended>()("AccountSuspended", {}) {}
export class AccountClosed extends Schema.TaggedError<AccountClosed>()("AccountClosed", {}) {}
/** Paid lots were clawed back after they had been spent. No priced call runs until `debt` is repaid. */
export class AccountInDebt extends Schema.TaggedError<AccountInDebt>()("AccountInDebt", { debt: Credits.Credits }) {}

/** `affordableUnits`: the largest quantity of this operation that could be held. */
export class InsufficientCredits extends Schema.TaggedError<InsufficientCredits>()("InsufficientCredits", {
  required: Credits.Credits,
  available: Credits.Credits,
  shortfall: Credits.Credits,
  affordableUnits: Schema.Int
}) {}

export class ReservationNotFound extends Schema.TaggedError<ReservationNotFound>()("ReservationNotFound", {
  reservationId: Schema.String
}) {}
/** The reservation ended the other way: it was refunded and cannot be settled, or the reverse. */
export class AlreadyEnded extends Schema.TaggedError<AlreadyEnded>()("AlreadyEnded", {
  reservationId: Schema.String,
  outcome: Schema.Literals(["succeeded", "refunded"])
}) {}
/** More units were done than held, or the quantity is no number of units. */
export class ChargeExceedsHold extends Schema.TaggedError<ChargeExceedsHold>()("ChargeExceedsHold", {
  reservationId: Schema.String,
  held: Schema.Int,
  done: Schema.Number
}) {}
/** The hold expired and was released before the settlement. */
export class HoldExpired extends Schema.TaggedError<HoldExpired>()("HoldExpired", { reservationId: Schema.String }) {}
export class RefundExceedsCharge extends Schema.TaggedError<RefundExceedsCharge>()("RefundExceedsCharge", {
  reservationId: Schema.String,
  refundable: Credits.Credits
}) {}

/** Another attempt under this idempotency key is running. */
export class InFlight extends Schema.TaggedError<InFlight>()("InFlight", { reservationId: Schema.String }) {}
/** This idempotency key was used for another request. */
export class KeyReused extends Schema.TaggedError<KeyReused>()("KeyReused", {}) {}
/** An attempt under this idempotency key succeeded: replay its reply. */
export class AlreadySucceeded extends Schema.TaggedError<AlreadySucceeded>()("AlreadySucceeded", { reservationId: Schema.String }) {}
/** Since the caller looked into the reply store, the account has forgotten a success: look again, then reserve again. */
export class LookupStale extends Schema.TaggedError<LookupStale>()("LookupStale", {}) {}

/** The grant would raise the balance above `limit`. */
export class BalanceTooLarge extends Schema.TaggedError<BalanceTooLarge>()("BalanceTooLarge", { limit: Credits.Credits }) {}

export class LotNotFound extends Schema.TaggedError<LotNotFound>()("LotNotFound", { lotId: Schema.String }) {}
/** The lot was not paid for, so there is no payment to take back. */
export class LotNotPaid extends Schema.TaggedError<LotNotPaid>()("LotNotPaid", { lotId: Schema.String }) {}

export class TrialUsedUp extends Schema.TaggedError<TrialUsedUp>()("TrialUsedUp", { slots: Schema.Int }) {}
