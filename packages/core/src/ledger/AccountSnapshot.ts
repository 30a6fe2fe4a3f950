/** An account as its snapshots hold it. Change `VERSION` whenever the fold would lead elsewhere from the same events. */

import type { Aggregate } from "@millrace/event-sourcing"
import { Schema } from "effect"
import { Credits } from "../Credits.ts"
import type { Account } from "./Account.ts"
import { AccountEvent, RefundReason } from "./AccountEvent.ts"
import { LotPart, LotTerms } from "./Lots.ts"

export const VERSION = 2

const Time = Schema.Int
const { reservationId: _, _tag: __, ...call } = AccountEvent.cases.CreditReserved.fields

const Outcome = Schema.Union([
  Schema.TaggedStruct("succeeded", { charged: Credits, replyHash: Schema.String }),
  Schema.TaggedStruct("refunded", { reason: RefundReason })
])
const KeyedOutcome = Schema.Struct({ reservationId: Schema.String, requestId: Schema.String, fingerprint: Schema.String, outcome: Outcome })

/** The account in memory, as a schema. */
export const AccountState: Schema.Codec<Account, unknown> = Schema.Struct({
  status: Schema.Literals(["absent", "opened", "verified", "suspended", "closed"]),
  verified: Schema.Boolean,
  sealedEmail: Schema.String,
  lots: Schema.Array(
    Schema.Struct({ lotId: Schema.String, ...LotTerms.fields, grantedAt: Time, left: Credits, held: Credits, claimed: Credits })
  ),
  holds: Schema.HashMap(Schema.String, Schema.Struct({ ...call, reservedAt: Time })),
  paidLots: Schema.HashMap(
    Schema.String,
    Schema.Struct({ ...LotTerms.fields, granted: Credits, clawedBack: Credits, grantedAt: Time, paymentRef: Schema.NullOr(Schema.String) })
  ),
  debts: Schema.Array(LotPart),
  givenBack: Schema.HashMap(Schema.String, Credits),
  ended: Schema.HashMap(Schema.String, Outcome),
  endedBefore: Schema.HashMap(Schema.String, Outcome),
  openKeys: Schema.HashMap(Schema.String, Schema.String),
  keys: Schema.HashMap(Schema.String, KeyedOutcome),
  keysBefore: Schema.HashMap(Schema.String, KeyedOutcome),
  keysSince: Time,
  nothingDueBefore: Time,
  trial: Schema.Struct({
    used: Schema.Int,
    open: Schema.HashMap(Schema.String, Time),
    lastUsed: Schema.Array(Schema.String),
    lastReleased: Schema.Array(Schema.String)
  })
})

export const accountSnapshots: Aggregate.SnapshotOptions<Account> = { version: VERSION, state: Schema.toCodecJson(AccountState) }
