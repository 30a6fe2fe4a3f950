/** Why a command on an account is refused. A refused command writes nothing. There is one class for each thing that a caller can act on. */
import { Schema } from "effect"
import * as Credits from "../Credits.ts"
import * as Money from "../Money.ts"

export class AccountNotFound extends Schema.TaggedError<AccountNotFound>()("AccountNotFound", {}) {
  override get message(): string {
    return "There is no such account"
  }
}
export class AccountSuspended extends Schema.TaggedError<AccountSuspended>()("AccountSuspended", {}) {
  override get message(): string {
    return "The account is suspended; nothing priced runs until it is reinstated"
  }
}
export class AccountClosed extends Schema.TaggedError<AccountClosed>()("AccountClosed", {}) {
  override get message(): string {
    return "The account is closed"
  }
}
/** Paid lots were clawed back after they had been spent. No priced call runs until `debt` is repaid. */
export class AccountInDebt extends Schema.TaggedError<AccountInDebt>()("AccountInDebt", { debt: Credits.Credits }) {
  messageIn(money: Money.Money): string {
    return `The account owes ${Money.text(this.debt, money)}; nothing priced runs until that is repaid`
  }
  override get message(): string {
    return this.messageIn(Money.STANDARD)
  }
}

/** `affordableUnits`: the largest quantity of this operation that could be held. */
export class InsufficientCredits extends Schema.TaggedError<InsufficientCredits>()("InsufficientCredits", {
  required: Credits.Credits,
  available: Credits.Credits,
  shortfall: Credits.Credits,
  affordableUnits: Schema.Int
}) {
  messageIn(money: Money.Money): string {
    return `The call needs ${Money.text(this.required, money)}; ${Money.text(this.available, money)} available, ${Money.text(this.shortfall, money)} short`
  }
  override get message(): string {
    return this.messageIn(Money.STANDARD)
  }
}

export class ReservationNotFound extends Schema.TaggedError<ReservationNotFound>()("ReservationNotFound", {
  reservationId: Schema.String
}) {
  override get message(): string {
    return `No reservation ${this.reservationId} was settled`
  }
}
/** The reservation ended the other way: it was refunded and cannot be settled, or the reverse. */
export class AlreadyEnded extends Schema.TaggedError<AlreadyEnded>()("AlreadyEnded", {
  reservationId: Schema.String,
  outcome: Schema.Literals(["succeeded", "refunded"])
}) {
  override get message(): string {
    return `Reservation ${this.reservationId} has ${this.outcome} already`
  }
}
/** More units were done than held, or the quantity is no number of units. */
export class ChargeExceedsHold extends Schema.TaggedError<ChargeExceedsHold>()("ChargeExceedsHold", {
  reservationId: Schema.String,
  held: Schema.Int,
  done: Schema.Number
}) {
  override get message(): string {
    const done = Number.isSafeInteger(this.done) ? this.done : "what is no number of units"
    return `Reservation ${this.reservationId} holds ${this.held} units, and ${done} cannot be charged`
  }
}
/** The hold expired and was released before the settlement. */
export class HoldExpired extends Schema.TaggedError<HoldExpired>()("HoldExpired", { reservationId: Schema.String }) {
  override get message(): string {
    return `The hold of reservation ${this.reservationId} expired before it was settled`
  }
}
export class RefundExceedsCharge extends Schema.TaggedError<RefundExceedsCharge>()("RefundExceedsCharge", {
  reservationId: Schema.String,
  refundable: Credits.Credits
}) {
  messageIn(money: Money.Money): string {
    return `At most ${Money.text(this.refundable, money)} of reservation ${this.reservationId} can be refunded`
  }
  override get message(): string {
    return this.messageIn(Money.STANDARD)
  }
}

/** Another attempt under this idempotency key is running. */
export class InFlight extends Schema.TaggedError<InFlight>()("InFlight", { reservationId: Schema.String }) {
  override get message(): string {
    return "Another call under this idempotency key is running"
  }
}
/** This idempotency key was used for another request. */
export class KeyReused extends Schema.TaggedError<KeyReused>()("KeyReused", {}) {
  override get message(): string {
    return "The idempotency key was used for another request"
  }
}
/** An attempt under this idempotency key succeeded: replay its reply. */
export class AlreadySucceeded extends Schema.TaggedError<AlreadySucceeded>()("AlreadySucceeded", { reservationId: Schema.String }) {
  override get message(): string {
    return `The call under this idempotency key has succeeded as ${this.reservationId}`
  }
}
/** Since the caller looked into the reply store, the account has forgotten a success: look again, then reserve again. */
export class LookupStale extends Schema.TaggedError<LookupStale>()("LookupStale", {}) {
  override get message(): string {
    return "The lookup of the idempotency key is out of date"
  }
}

/** The grant would raise the balance above `limit`. */
export class BalanceTooLarge extends Schema.TaggedError<BalanceTooLarge>()("BalanceTooLarge", { limit: Credits.Credits }) {
  messageIn(money: Money.Money): string {
    return `An account may have at most ${Money.text(this.limit, money)}`
  }
  override get message(): string {
    return this.messageIn(Money.STANDARD)
  }
}

export class LotNotFound extends Schema.TaggedError<LotNotFound>()("LotNotFound", { lotId: Schema.String }) {
  override get message(): string {
    return `There is no lot ${this.lotId}`
  }
}
/** The lot was not paid for, so there is no payment to take back. */
export class LotNotPaid extends Schema.TaggedError<LotNotPaid>()("LotNotPaid", { lotId: Schema.String }) {
  override get message(): string {
    return `Lot ${this.lotId} was not paid for, so there is no payment to take back`
  }
}

export class RecurringGrantNotFound extends Schema.TaggedError<RecurringGrantNotFound>()("RecurringGrantNotFound", {
  grantId: Schema.String
}) {
  override get message(): string {
    return `The account has no recurring grant ${this.grantId}; it may have been stopped already`
  }
}
/** The account has `limit` recurring grants. */
export class TooManyRecurringGrants extends Schema.TaggedError<TooManyRecurringGrants>()("TooManyRecurringGrants", { limit: Schema.Int }) {
  override get message(): string {
    return `An account may have at most ${this.limit} recurring grants at a time`
  }
}
/** Each lot of a paid source needs a payment of its own, so such lots are granted one by one. */
export class RecurringSourcePaid extends Schema.TaggedError<RecurringSourcePaid>()("RecurringSourcePaid", { source: Schema.String }) {
  override get message(): string {
    return `Credits granted as ${this.source} need a payment for each lot, so they cannot recur by themselves`
  }
}

export class TrialUsedUp extends Schema.TaggedError<TrialUsedUp>()("TrialUsedUp", { slots: Schema.Int }) {
  override get message(): string {
    return `All ${this.slots} calls of the trial are used`
  }
}
/** The account is on trial, and the call would become a job. */
export class TrialExcludesJobs extends Schema.TaggedError<TrialExcludesJobs>()("TrialExcludesJobs", {}) {
  override get message(): string {
    return "The trial has no jobs"
  }
}
