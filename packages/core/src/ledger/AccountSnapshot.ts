/** The stored form of an account in snapshots. Change `VERSION` whenever the fold of the same events gives a different state. */

import type { Aggregate } from "@millrace/event-sourcing"
import { HashMap, Schema, SchemaGetter } from "effect"
import { Credits } from "../Credits.ts"
import { lotIdOfPayment } from "../Ids.ts"
import type { Account } from "./Account.ts"
import { DEFAULT_PRIORITY, Lot, LotPart, LotSource } from "./Lots.ts"
import { LowBalance } from "./LowBalance.ts"
import * as Memory from "./Memory.ts"
import { Hold, type PaidLot, type Purse } from "./Purse.ts"
import { RecurringGrant } from "./RecurringGrants.ts"
import * as SmallMap from "./SmallMap.ts"
import { Trial } from "./Trial.ts"

export const VERSION = 6

const Time = Schema.Int

/**
 * A paid lot, of which an account may have thousands: the payment, the amount, and when it was granted. The other fields say how it
 * differs from a top-up that never expires, was not clawed back, and is named after its payment: about 68 characters where it does not.
 */
const SavedPaidLot = Schema.Struct({
  p: Schema.NullOr(Schema.String),
  n: Credits,
  t: Time,
  id: Schema.optionalKey(Schema.String),
  source: Schema.optionalKey(LotSource),
  priority: Schema.optionalKey(Schema.Int),
  expiresAt: Schema.optionalKey(Time),
  clawedBack: Schema.optionalKey(Credits),
  changes: Schema.optionalKey(Schema.Int)
})

/** The stored form of an account. */
export const SavedAccount = Schema.Struct({
  status: Schema.Literals(["absent", "opened", "verified", "suspended", "closed"]),
  verified: Schema.Boolean,
  sealedEmail: Schema.String,
  sealedReference: Schema.optionalKey(Schema.String),
  purse: Schema.Struct({
    lots: Schema.Array(Lot),
    holds: Schema.HashMap(Schema.String, Hold),
    paidLots: Schema.Array(SavedPaidLot),
    debts: Schema.Array(LotPart),
    refunds: Schema.HashMap(Schema.String, Credits)
  }),
  memory: Memory.Saved,
  trial: Trial,
  lowBalance: LowBalance,
  recurring: Schema.Array(RecurringGrant),
  nothingDueBefore: Time
})
type SavedAccount = typeof SavedAccount.Type
type SavedPaidLot = typeof SavedPaidLot.Type

const savePaidLots = ({ paidLots }: Purse): ReadonlyArray<SavedPaidLot> =>
  [...paidLots]
    .map(([lotId, { changes, clawedBack, expiresAt, granted, grantedAt, paymentRef, priority, source }]) => ({
      p: paymentRef,
      n: granted,
      t: grantedAt,
      ...(paymentRef !== null && lotIdOfPayment(paymentRef) === lotId ? {} : { id: lotId }),
      ...(source === "topup" ? {} : { source }),
      ...(priority === DEFAULT_PRIORITY[source] ? {} : { priority }),
      ...(expiresAt === null ? {} : { expiresAt }),
      ...(clawedBack === 0 ? {} : { clawedBack }),
      ...(changes === 0 ? {} : { changes })
    }))
    .sort((a, b) => a.t - b.t || (idOf(a) < idOf(b) ? -1 : 1))

const idOf = ({ id, p }: SavedPaidLot): string => id ?? lotIdOfPayment(p ?? "")

const restorePaidLots = (saved: ReadonlyArray<SavedPaidLot>): Purse["paidLots"] =>
  HashMap.fromIterable(
    saved.map((lot): readonly [string, PaidLot] => {
      const {
        changes = 0,
        clawedBack = 0 as Credits,
        expiresAt = null,
        n,
        p,
        source = "topup",
        priority = DEFAULT_PRIORITY[source],
        t
      } = lot
      return [idOf(lot), { source, priority, expiresAt, granted: n, clawedBack, changes, grantedAt: t, paymentRef: p }]
    })
  )

/** Saves an account. The stored memory is smaller than that of the account: see `Memory.save`. */
export const save = (account: Account): SavedAccount => ({
  ...account,
  purse: { ...account.purse, holds: SmallMap.toHashMap(account.purse.holds), paidLots: savePaidLots(account.purse) },
  memory: Memory.save(account.memory)
})

/** Restores an account. */
export const restore = (saved: SavedAccount): Account => ({
  ...saved,
  purse: { ...saved.purse, holds: SmallMap.of(saved.purse.holds), paidLots: restorePaidLots(saved.purse.paidLots) },
  memory: Memory.restore(saved.memory)
})

/** The schema of an account whose JSON is the stored form. */
export const AccountState: Schema.Codec<Account, unknown> = Schema.toCodecJson(SavedAccount).pipe(
  Schema.decodeTo(
    Schema.declare((_): _ is Account => true),
    { decode: SchemaGetter.transform(restore), encode: SchemaGetter.transform(save) }
  )
)

export const accountSnapshots: Aggregate.SnapshotOptions<Account> = { version: VERSION, state: AccountState }
