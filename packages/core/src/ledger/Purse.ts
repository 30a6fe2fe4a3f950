/**
 * The credits of an account: lots, holds and debts. Amounts in thousandths of a credit.
 *
 * It holds live lots, open holds and debts. Two small records stay for ever: the terms of every paid lot, so that a repeated payment notice
 * grants nothing and a chargeback finds its lot, and the refunded amount of a charge, so that no charge is refunded twice.
 */
import { HashMap, Schema } from "effect"
import * as Credits from "../Credits.ts"
import type { Timestamp } from "../Timestamp.ts"
import { AccountEvent, type EventOf } from "./AccountEvent.ts"
import { get } from "./Get.ts"
import * as Lots from "./Lots.ts"
import * as SmallMap from "./SmallMap.ts"

const { reservationId: _, _tag: __, ...call } = AccountEvent.cases.CreditReserved.fields

export const Hold = Schema.Struct({ ...call, reservedAt: Schema.Int })
export type Hold = typeof Hold.Type

/** A paid lot, also after it is used up. */
export interface PaidLot extends Lots.LotTerms {
  readonly granted: Credits.Credits
  readonly clawedBack: Credits.Credits
  /** How many of its payment's changes were made to it. */
  readonly changes: number
  readonly grantedAt: Timestamp
  readonly paymentRef: string | null
}

export interface Purse {
  /** In the order in which they are used. */
  readonly lots: ReadonlyArray<Lots.Lot>
  /** Open holds by reservation. */
  readonly holds: SmallMap.SmallMap<Hold>
  readonly paidLots: HashMap.HashMap<string, PaidLot>
  /** Clawbacks that are not repaid, by lot, oldest first. */
  readonly debts: Lots.LotParts
  /** Refunded amounts of settled charges, by reservation. */
  readonly refunds: HashMap.HashMap<string, Credits.Credits>
}

export const initial: Purse = {
  lots: [],
  holds: SmallMap.empty,
  paidLots: HashMap.empty(),
  debts: [],
  refunds: HashMap.empty()
}

// questions

/** Credits owed: more than zero stops every priced call. */
export const debt = ({ debts }: Pick<Purse, "debts">): Credits.Credits => Lots.total(debts)

/** Whether the ledger itself ends this hold at its expiry; others are ended by recovery or by their job. */
export const expiresByItself = (hold: Hold): hold is Hold & { readonly expiresAt: Timestamp } =>
  hold.expiresAt !== undefined && hold.recoverable === undefined

/** When the next lot with credits left expires; undefined if no such lot expires. */
export const nextLotExpiry = ({ lots }: Purse): Timestamp | undefined => {
  // Sorted by expiry
  for (const lot of lots) if (lot.left > 0) return lot.expiresAt ?? undefined
  return undefined
}

// evolve

/** The purse after an event. `hold` is the open hold of the event's reservation. */
export const evolve = (purse: Purse, event: AccountEvent, hold: Hold | undefined, at: Timestamp): Purse => {
  switch (event._tag) {
    case "CreditsGranted":
      return granted(purse, event, at)
    case "CreditReserved":
      return reserved(purse, event, at)
    case "OperationSucceeded":
      return endHold(purse, event, hold, event.lots)
    case "Refunded":
      return event.stage === "reserved" ? endHold(purse, event, hold, []) : refunded(purse, event)
    case "LotExpired":
      return { ...purse, lots: Lots.adjust(purse.lots, event.lotId, { left: -event.amount }) }
    case "LotExpiryAnnounced":
      return { ...purse, lots: Lots.announce(purse.lots, event.lotId) }
    case "CreditsClawedBack":
      return clawedBack(purse, event)
    case "DebtRepaid":
      return {
        ...purse,
        lots: Lots.adjust(purse.lots, event.lotId, { left: -event.amount }),
        debts: Lots.split(purse.debts, event.amount)[1]
      }
    case "ClawbackReversed":
      return clawbackReversed(purse, event)
    default:
      return purse
  }
}

const granted = (purse: Purse, event: EventOf<"CreditsGranted">, at: Timestamp): Purse => {
  const { lotId, amount, source, priority, expiresAt, paymentRef } = event
  const lot = { lotId, source, priority, expiresAt, grantedAt: at, left: amount, held: Credits.zero, claimed: Credits.zero }
  const lots = Lots.insert(purse.lots, lot)
  if (!Lots.isPaid(source)) return { ...purse, lots }
  const paid: PaidLot = { granted: amount, clawedBack: Credits.zero, changes: 0, source, priority, expiresAt, grantedAt: at, paymentRef }
  return { ...purse, lots, paidLots: HashMap.set(purse.paidLots, lotId, paid) }
}

const reserved = (purse: Purse, event: EventOf<"CreditReserved">, at: Timestamp): Purse => {
  let lots = purse.lots
  for (const { lotId, amount } of event.lots) lots = Lots.adjust(lots, lotId, { left: -amount, held: amount })
  return { ...purse, lots, holds: SmallMap.set(purse.holds, event.reservationId, holdOf(event, at)) }
}

/** The hold has all fields of its event but two. They are copied one by one: a rest pattern takes a fifth of the fold of a charge. */
const holdOf = (event: EventOf<"CreditReserved">, reservedAt: Timestamp): Hold => {
  const { amount, lots, operation, priceVersion, quantity, requestId } = event
  const hold: { -readonly [Field in keyof Hold]: Hold[Field] } = { requestId, operation, quantity, priceVersion, amount, lots, reservedAt }
  if (event.expiresAt !== undefined) hold.expiresAt = event.expiresAt
  if (event.recoverable !== undefined) hold.recoverable = event.recoverable
  if (event.jobId !== undefined) hold.jobId = event.jobId
  if (event.acceptBy !== undefined) hold.acceptBy = event.acceptBy
  if (event.adjustmentLifetime !== undefined) hold.adjustmentLifetime = event.adjustmentLifetime
  if (event.keyHash !== undefined) hold.keyHash = event.keyHash
  if (event.fingerprint !== undefined) hold.fingerprint = event.fingerprint
  if (event.lateOf !== undefined) hold.lateOf = event.lateOf
  return hold
}

/** Ends a hold: charges `charged`, and returns the rest to its lots. */
const endHold = (
  purse: Purse,
  {
    reservationId,
    claimed = [],
    owed = []
  }: { readonly reservationId: string; readonly claimed?: Lots.LotParts; readonly owed?: Lots.LotParts },
  hold: Hold | undefined,
  charged: Lots.LotParts
): Purse => {
  // Decisions end only open holds, so a log without the hold was not written by this code
  if (hold === undefined) throw new Error(`Reservation ${reservationId} is not open`)
  let lots = purse.lots
  for (const { lotId, amount } of hold.lots) {
    const taken = Lots.amountOf(claimed, lotId)
    const back = amount - Lots.amountOf(charged, lotId) - taken
    lots = Lots.adjust(lots, lotId, { held: -amount, left: back, claimed: -taken - Lots.amountOf(owed, lotId) })
  }
  return { ...purse, lots, holds: SmallMap.remove(purse.holds, reservationId), debts: owe(purse.debts, owed) }
}

/** Returns a charge to its lots. */
const refunded = (purse: Purse, event: EventOf<"Refunded">): Purse => {
  const { reservationId, amount, claimed = [] } = event
  let { lots, debts } = purse
  for (const { lotId, amount } of Lots.without(event.lots, claimed)) {
    const terms = event.revived?.find((lot) => lot.lotId === lotId) ?? get(purse.paidLots, lotId)
    lots = returnTo(lots, lotId, amount, terms)
  }
  for (const part of claimed) debts = Lots.without(debts, [part])
  const before = get(purse.refunds, reservationId) ?? Credits.zero
  return { ...purse, lots, debts, refunds: HashMap.set(purse.refunds, reservationId, Credits.of(before + amount)) }
}

const clawedBack = (purse: Purse, event: EventOf<"CreditsClawedBack">): Purse => {
  const { lotId, amount, fromAvailable, fromHeld, debt } = event
  return {
    ...purse,
    lots: Lots.adjust(purse.lots, lotId, { left: -fromAvailable, claimed: fromHeld }),
    paidLots: changeClawedBack(purse, lotId, amount, event.change),
    debts: owe(purse.debts, [{ lotId, amount: debt }])
  }
}

const clawbackReversed = (purse: Purse, event: EventOf<"ClawbackReversed">): Purse => {
  const { lotId, amount, toHeld, toDebt, toAvailable } = event
  const lots = Lots.adjust(purse.lots, lotId, { claimed: -toHeld })
  return {
    ...purse,
    lots: toAvailable > 0 ? returnTo(lots, lotId, toAvailable, get(purse.paidLots, lotId)) : lots,
    paidLots: changeClawedBack(purse, lotId, -amount, event.change),
    debts: Lots.without(purse.debts, [{ lotId, amount: toDebt }])
  }
}

/** Returns credits to a lot. A used-up lot is created again with the terms of its grant. */
const returnTo = (
  lots: ReadonlyArray<Lots.Lot>,
  lotId: string,
  amount: Credits.Credits,
  terms: (Lots.LotTerms & { readonly grantedAt: Timestamp }) | undefined
): ReadonlyArray<Lots.Lot> => {
  if (Lots.find(lots, lotId) !== undefined) return Lots.adjust(lots, lotId, { left: amount })
  if (terms === undefined) throw new Error(`Lot ${lotId} is not known`)
  const { source, priority, expiresAt, grantedAt } = terms
  return Lots.insert(lots, { lotId, source, priority, expiresAt, grantedAt, left: amount, held: Credits.zero, claimed: Credits.zero })
}

const changeClawedBack = (purse: Purse, lotId: string, by: number, change: number | undefined): Purse["paidLots"] =>
  HashMap.modify(purse.paidLots, lotId, (lot) => ({
    ...lot,
    clawedBack: Credits.of(lot.clawedBack + by),
    changes: change ?? lot.changes
  }))

const owe = (debts: Lots.LotParts, more: Lots.LotParts): Lots.LotParts => {
  let sum = debts
  for (const { lotId, amount } of more) {
    const before = Lots.amountOf(sum, lotId)
    if (before > 0) sum = sum.map((part) => (part.lotId === lotId ? { lotId, amount: Credits.of(before + amount) } : part))
    else if (amount > 0) sum = [...sum, { lotId, amount }]
  }
  return sum
}
