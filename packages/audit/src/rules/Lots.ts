/** Rules of lots: granted once, paid lots by a payment, available credits expired when due. */
import { Account, Decisions, Lots } from "@millrace/core"
import { HashMap } from "effect"
import { credits, rule } from "./Rule.ts"

/** No lot is granted again while it has credits left or held, and a paid lot never. */
export const lotIsGrantedOnce = rule("lot-is-granted-once", ["CreditsGranted"], ({ lotId }, { before }) =>
  Lots.find(before.purse.lots, lotId) !== undefined || HashMap.has(before.purse.paidLots, lotId)
    ? `lot ${lotId} had been granted`
    : undefined
)

/** A paid lot names its payment. A rule over the whole log checks that no payment grants twice. */
export const paidLotNamesItsPayment = rule("paid-lot-names-its-payment", ["CreditsGranted"], ({ lotId, source, paymentRef }) =>
  Lots.isPaid(source) && paymentRef === null ? `lot ${lotId} of source ${source} names no payment` : undefined
)

/** All available credits of a lot expire, at its expiry and not before. */
export const lotExpiresAtItsTime = rule("lot-expires-at-its-time", ["LotExpired"], ({ lotId, amount, dueAt }, { before, at }) => {
  const lot = Lots.find(before.purse.lots, lotId)
  if (lot === undefined) return `lot ${lotId} had no credits`
  if (lot.expiresAt !== dueAt) return `lot ${lotId} was not to expire at ${iso(dueAt)}`
  if (dueAt > at) return `lot ${lotId} expired before ${iso(dueAt)}`
  return amount === lot.left ? undefined : `of lot ${lotId} was ${credits(lot.left)} free, ${credits(amount)} expired`
})

/** An abandoned hold or trial slot is released at its deadline and not before. */
export const holdLapsesAtItsTime = rule("hold-lapses-at-its-time", ["Refunded", "TrialReleased"], (event, { before, at, hold }) => {
  const { dueAt, reservationId } = event
  if (dueAt === undefined) return undefined
  const deadline = event._tag === "Refunded" ? hold?.expiresAt : Account.get(before.trial.open, reservationId)
  if (deadline !== undefined && deadline !== dueAt) return `${reservationId} was to end at ${iso(deadline)}, not ${iso(dueAt)}`
  return dueAt > at ? `${reservationId} ended before ${iso(dueAt)}` : undefined
})

/** Due expiries are written before any other event, so no call spends expired credits or settles an expired hold. */
export const whatIsDueComesFirst = rule(
  "what-is-due-comes-first",
  [
    "CreditReserved",
    "OperationSucceeded",
    "Refunded",
    "CreditsGranted",
    "CreditsClawedBack",
    "ClawbackReversed",
    "TrialReserved",
    "TrialUsed"
  ],
  (event, { before, at }) => {
    // Due itself, or what follows from it
    if ((event._tag === "Refunded" && event.dueAt !== undefined) || (event._tag === "CreditsGranted" && event.source === "adjustment"))
      return undefined
    if (at < before.nothingDueBefore) return undefined
    const due = Decisions.expireDue(before, at).find(({ _tag }) => _tag !== "DebtRepaid")
    if (due === undefined) return undefined
    return `${due._tag} of ${"lotId" in due ? due.lotId : "reservationId" in due ? due.reservationId : ""} was due and had not been written`
  }
)

const iso = (millis: number): string => new Date(millis).toISOString()
