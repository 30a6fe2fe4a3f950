/** What can happen to an account. Stream `account-{accountId}`; amounts in thousandths of a credit. */
import { Schema } from "effect"
import { Credits } from "../Credits.ts"
import { Timestamp } from "../Timestamp.ts"
import { LotPart, LotTerms } from "./Lots.ts"
import { RecurringTerms } from "./RecurringTerms.ts"

const LotParts = Schema.Array(LotPart)

/** Why a hold was released or a charge refunded. `cancelled`: by the caller; `goodwill`: by the host; the others: our failures. */
export const RefundReason = Schema.Literals(["service_error", "cancelled", "expired", "abandoned", "goodwill"])
export type RefundReason = typeof RefundReason.Type

const YEAR = 365 * 24 * 3_600_000

/**
 * The lifetime of credits that we return to an expired lot after our failure, milliseconds. At most a century: a hold whose expiry has no
 * ISO 8601 text could not be ended.
 */
export const AdjustmentLifetime = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100 * YEAR }))

export const AccountEvent = Schema.TaggedUnion({
  AccountOpened: {
    /** The address, sealed by the vault under the account's key. An account has an address, a reference, or both. */
    sealedEmail: Schema.optionalKey(Schema.String),
    /** HMAC of the address: the id of its `email-` stream. Absent after a sign-up, where the address is not proved and not claimed yet. */
    emailHash: Schema.optionalKey(Schema.String),
    /** The host's own id of the account, sealed. */
    sealedReference: Schema.optionalKey(Schema.String),
    /** HMAC of the reference: the id of its `reference-` stream. */
    referenceHash: Schema.optionalKey(Schema.String)
  },
  AccountVerified: {},
  AccountSuspended: {},
  AccountReinstated: {},
  AccountClosed: {},

  CreditsGranted: {
    lotId: Schema.String,
    amount: Credits,
    ...LotTerms.fields,
    /** The payment, for a paid lot. */
    paymentRef: Schema.NullOr(Schema.String),
    /** For a lot of a recurring grant: the grant, the number of the period from 0, and when the next period begins. */
    recurring: Schema.optionalKey(Schema.Struct({ grantId: Schema.String, period: Schema.Int, next: Timestamp }))
  },
  /** Grants a lot each period, as `RecurringGrants.ts` says. The lot of the first period follows in the same append. */
  RecurringGrantStarted: { grantId: Schema.String, ...RecurringTerms.fields },
  /** By an administrator, at the closing of the account, or after the last period. The lots that were granted stay. */
  RecurringGrantStopped: { grantId: Schema.String },

  CreditReserved: {
    reservationId: Schema.String,
    requestId: Schema.String,
    operation: Schema.String,
    quantity: Schema.Int,
    priceVersion: Schema.Int,
    /** quantity × the unit price of that version. */
    amount: Credits,
    lots: LotParts,
    /** When the hold is released as abandoned. A job's hold has no expiry. */
    expiresAt: Schema.optionalKey(Timestamp),
    /** After the expiry, recovery asks the operation for the outcome before it releases the hold. */
    recoverable: Schema.optionalKey(Schema.Literal(true)),
    jobId: Schema.optionalKey(Schema.String),
    /** The deadline of the job's acceptance. */
    acceptBy: Schema.optionalKey(Timestamp),
    /** The host's setting, if it is not seven days. A later setting does not change this hold. */
    adjustmentLifetime: Schema.optionalKey(AdjustmentLifetime),
    /** HMACs of the caller's idempotency key and of the request. */
    keyHash: Schema.optionalKey(Schema.String),
    fingerprint: Schema.optionalKey(Schema.String),
    /** For a late charge: the reservation that ended before it could be settled. */
    lateOf: Schema.optionalKey(Schema.String)
  },
  OperationSucceeded: {
    reservationId: Schema.String,
    charged: Credits,
    quantity: Schema.Int,
    /** The charged credits by lot. The rest of the hold was released. */
    lots: LotParts,
    /** SHA-256 of the reply's data, base64url. */
    replyHash: Schema.String,
    /** The part of the released credits that a clawback took. */
    claimed: Schema.optionalKey(LotParts),
    /** The part of the charge that a clawback had claimed: debt from now on. */
    owed: Schema.optionalKey(LotParts)
  },
  Refunded: {
    reservationId: Schema.String,
    /** `reserved`: a hold is released. `settled`: a charge is refunded. */
    stage: Schema.Literals(["reserved", "settled"]),
    amount: Credits,
    reason: RefundReason,
    lots: LotParts,
    /** The part of these that a clawback took: held credits that it had claimed, or debt that is reduced. */
    claimed: Schema.optionalKey(LotParts),
    /** When the hold expired, where its expiry released it. */
    dueAt: Schema.optionalKey(Timestamp),
    /** Lots among these that had been used up, and now have credits again, with the terms of their grants. */
    revived: Schema.optionalKey(Schema.Array(Schema.Struct({ lotId: Schema.String, grantedAt: Timestamp, ...LotTerms.fields })))
  },

  LotExpired: { lotId: Schema.String, amount: Credits, dueAt: Timestamp },

  /** The lot will expire, and has `amount` available now. Told once, some time before; the host's setting says how long. */
  LotExpiryAnnounced: { lotId: Schema.String, amount: Credits, expiresAt: Timestamp },

  CreditsClawedBack: {
    lotId: Schema.String,
    paymentRef: Schema.NullOr(Schema.String),
    amount: Credits,
    fromAvailable: Credits,
    /** Credits in open holds: taken if the hold is released, debt if it is captured. */
    fromHeld: Credits,
    debt: Credits,
    /** For a payment made here: which of the changes of its lot this is, from 1. */
    change: Schema.optionalKey(Schema.Int)
  },
  /** `lotId` is the paid lot that repaid. */
  DebtRepaid: { lotId: Schema.String, amount: Credits },
  ClawbackReversed: {
    lotId: Schema.String,
    paymentRef: Schema.NullOr(Schema.String),
    amount: Credits,
    toHeld: Credits,
    toDebt: Credits,
    toAvailable: Credits,
    /** As of `CreditsClawedBack`. */
    change: Schema.optionalKey(Schema.Int)
  },

  /** From now on a balance below `threshold` is told. Null: none is. */
  BalanceThresholdSet: { threshold: Schema.NullOr(Credits) },
  /** The balance, as `LowBalance.ts` counts it, is below the threshold, and was not when this was told before. */
  BalanceFellBelow: { threshold: Credits, balance: Credits },

  /** A call of an account that was never verified holds a slot of its trial in place of credits. */
  TrialReserved: {
    reservationId: Schema.String,
    requestId: Schema.String,
    operation: Schema.String,
    /** When the slot is released. */
    expiresAt: Timestamp,
    /** HMACs of the caller's idempotency key and of the request. */
    keyHash: Schema.optionalKey(Schema.String),
    fingerprint: Schema.optionalKey(Schema.String)
  },
  TrialUsed: {
    reservationId: Schema.String,
    /** SHA-256 of the reply's data, base64url. */
    replyHash: Schema.optionalKey(Schema.String)
  },
  TrialReleased: {
    reservationId: Schema.String,
    /** Absent where the expiry of the slot released it. */
    reason: Schema.optionalKey(RefundReason),
    /** When the slot expired, where its expiry released it. */
    dueAt: Schema.optionalKey(Timestamp)
  }
})
export type AccountEvent = typeof AccountEvent.Type

export type EventOf<Tag extends AccountEvent["_tag"]> = Extract<AccountEvent, { readonly _tag: Tag }>
