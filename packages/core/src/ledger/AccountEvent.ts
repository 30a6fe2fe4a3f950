/** What can happen to an account. Stream `account-{accountId}`; amounts in thousandths of a credit. */
import { Schema } from "effect"
import { Credits } from "../Credits.ts"
import { Timestamp } from "../Timestamp.ts"
import { LotPart, LotTerms } from "./Lots.ts"

const LotParts = Schema.Array(LotPart)

/** Why a hold was released or a charge refunded. `cancelled`: the caller's wish; `goodwill`: the host's; the others: our failures. */
export const RefundReason = Schema.Literals(["service_error", "cancelled", "expired", "abandoned", "goodwill"])
export type RefundReason = typeof RefundReason.Type

const YEAR = 365 * 24 * 3_600_000

/**
 * How long credits live that our failure brings back into an expired lot, milliseconds. At most a century: an instant that cannot be
 * written as text would leave a hold that nobody can end.
 */
export const AdjustmentLifetime = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100 * YEAR }))

export const AccountEvent = Schema.TaggedUnion({
  AccountOpened: {
    /** The address, sealed by the vault under the account's key. */
    sealedEmail: Schema.String,
    /** HMAC of the address: the id of its `email-` stream. */
    emailHash: Schema.String
  },
  AccountVerified: {},
  AccountSuspended: {},
  AccountReinstated: {},
  AccountClosed: {},

  CreditsGranted: {
    lotId: Schema.String,
    amount: Credits,
    ...LotTerms.fields,
    /** The payment that it came from, for lots that were paid. */
    paymentRef: Schema.NullOr(Schema.String)
  },

  CreditReserved: {
    reservationId: Schema.String,
    requestId: Schema.String,
    operation: Schema.String,
    quantity: Schema.Int,
    priceVersion: Schema.Int,
    /** quantity × the unit price of that version. */
    amount: Credits,
    lots: LotParts,
    /** From then on the hold is released as abandoned. A job's hold has no expiry. */
    expiresAt: Schema.optionalKey(Timestamp),
    /** After the expiry, the operation says what became of the call before the hold is released. */
    recoverable: Schema.optionalKey(Schema.Literal(true)),
    jobId: Schema.optionalKey(Schema.String),
    /** Until then the job must have been accepted. */
    acceptBy: Schema.optionalKey(Timestamp),
    /** The host's setting, where it is not seven days, so that no later setting changes what this hold comes to. */
    adjustmentLifetime: Schema.optionalKey(AdjustmentLifetime),
    /** HMACs of the caller's idempotency key and of the request. */
    keyHash: Schema.optionalKey(Schema.String),
    fingerprint: Schema.optionalKey(Schema.String),
    /** The reservation that had ended before this call's success could be settled. */
    lateOf: Schema.optionalKey(Schema.String)
  },
  OperationSucceeded: {
    reservationId: Schema.String,
    charged: Credits,
    quantity: Schema.Int,
    /** What was charged, by lot. The rest of the hold was released. */
    lots: LotParts,
    /** SHA-256 of the reply's data, base64url. */
    replyHash: Schema.String,
    /** The part of what was released that a clawback took. */
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
    /** The part of these that a clawback took: held credits that it had claimed, or debt that is less now. */
    claimed: Schema.optionalKey(LotParts),
    /** When the hold expired, where its expiry released it. */
    dueAt: Schema.optionalKey(Timestamp),
    /** Lots among these that had been used up, with the terms of their grants: they are there again. */
    revived: Schema.optionalKey(Schema.Array(Schema.Struct({ lotId: Schema.String, grantedAt: Timestamp, ...LotTerms.fields })))
  },

  LotExpired: { lotId: Schema.String, amount: Credits, dueAt: Timestamp },

  CreditsClawedBack: {
    lotId: Schema.String,
    paymentRef: Schema.NullOr(Schema.String),
    amount: Credits,
    fromAvailable: Credits,
    /** Held at the time: taken if the hold is released, debt if it is captured. */
    fromHeld: Credits,
    debt: Credits
  },
  /** `lotId` is the paid lot that repaid. */
  DebtRepaid: { lotId: Schema.String, amount: Credits },
  ClawbackReversed: {
    lotId: Schema.String,
    paymentRef: Schema.NullOr(Schema.String),
    amount: Credits,
    toHeld: Credits,
    toDebt: Credits,
    toAvailable: Credits
  },

  TrialReserved: { reservationId: Schema.String, requestId: Schema.String, operation: Schema.String, expiresAt: Timestamp },
  TrialUsed: { reservationId: Schema.String },
  TrialReleased: { reservationId: Schema.String, dueAt: Schema.optionalKey(Timestamp) }
})
export type AccountEvent = typeof AccountEvent.Type

export type EventOf<Tag extends AccountEvent["_tag"]> = Extract<AccountEvent, { readonly _tag: Tag }>
