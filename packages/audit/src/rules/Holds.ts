/** Rules of holds: each takes its amount from available lots, has a deadline, and ends exactly once. */
import { Account, Lots, Memory } from "@millrace/core"
import { amountOf, credits, differ, notThisMuch, type Parts, rule } from "./Rule.ts"

/** The amount of a hold is the sum of its lots. */
export const holdIsItsLots = rule("hold-is-its-lots", ["CreditReserved"], ({ lots, amount }) => notThisMuch(lots, amount, "what is held"))

/** A hold takes only available credits of lots that are granted and not expired, so no credit is spent twice or before its grant. */
export const holdTakesWhatIsFree = rule("hold-takes-what-is-free", ["CreditReserved"], ({ lots }, { before, at }) => {
  for (const { lotId, amount } of lots) {
    const lot = Lots.find(before.purse.lots, lotId)
    if (lot === undefined) return `lot ${lotId} had no credits`
    if (Lots.isExpired(lot, at)) return `lot ${lotId} had expired`
    if (lot.left < amount) return `of lot ${lotId} was ${credits(lot.left)} free, less than ${credits(amount)}`
  }
  return undefined
})

/** Lots are held by expiry, then priority, then age. No lot is used while an earlier one has credits. */
export const holdTakesLotsInOrder = rule("hold-takes-lots-in-order", ["CreditReserved"], ({ lots }, { before, at }) => {
  let taken = 0
  let spared: string | undefined
  for (const lot of before.purse.lots) {
    if (taken === lots.length) return undefined
    const part = amountOf(lots, lot.lotId)
    if (part > 0) {
      taken++
      if (spared !== undefined) return `lot ${lot.lotId} was used while lot ${spared} had credits`
    }
    if (lot.left > part && !Lots.isExpired(lot, at)) spared ??= lot.lotId
  }
  return undefined
})

/** Every hold has a deadline: its own, or its job's. A late hold is settled in the same append. */
export const holdHasADeadline = rule("hold-has-a-deadline", ["CreditReserved"], ({ expiresAt, jobId, acceptBy, lateOf }) =>
  expiresAt !== undefined || (jobId !== undefined && acceptBy !== undefined) || lateOf !== undefined ? undefined : "nothing ends this hold"
)

/** No two attempts run under one idempotency key at once, and none within ten minutes after a success. */
export const keyRunsOnce = rule("key-runs-once", ["CreditReserved"], ({ keyHash }, { before, at }) => {
  if (keyHash === undefined) return undefined
  // The log does not have the caller's lookup, so judge only what no lookup could excuse
  const used = Memory.keyState(before.memory, { hash: keyHash, since: Number.MAX_SAFE_INTEGER }, at)
  if (used?._tag === "running") return `reservation ${used.reservationId} was open under the same key`
  return used?._tag === "succeeded" ? `reservation ${used.reservationId} had succeeded under the same key` : undefined
})

/** A late charge names a reservation that was released as abandoned. */
export const lateCallWasAbandoned = rule("late-call-was-abandoned", ["CreditReserved"], ({ lateOf }, { before }) => {
  if (lateOf === undefined) return undefined
  const past = Account.outcome(before, lateOf)
  return past?._tag === "refunded" && past.reason === "abandoned" ? undefined : `reservation ${lateOf} was not released as abandoned`
})

/** An event ends only an open hold, so every hold ends at most once. Holds without an end are reported at the end of the log. */
export const holdEndsOnce = rule("hold-ends-once", ["OperationSucceeded", "Refunded"], (event, { before, hold }) => {
  if ((event._tag === "Refunded" && event.stage === "settled") || hold !== undefined) return undefined
  const past = Account.outcome(before, event.reservationId)
  return `reservation ${event.reservationId} was not open${past === undefined ? "" : `: it had ${past._tag}`}`
})

/** A charge is a part of its hold, lot by lot, for a part of the quantity. */
export const chargeIsPartOfItsHold = rule("charge-is-part-of-its-hold", ["OperationSucceeded"], (event, { hold }) => {
  if (hold === undefined) return undefined
  const { charged, quantity, lots } = event
  if (charged > hold.amount) return `${credits(charged)} was charged of ${credits(hold.amount)} held`
  if (quantity < 0 || quantity > hold.quantity) return `${quantity} was done of ${hold.quantity} asked`
  for (const { lotId, amount } of lots) {
    if (amount > amountOf(hold.lots, lotId))
      return `${credits(amount)} of lot ${lotId} was charged, ${credits(amountOf(hold.lots, lotId))} held`
  }
  return notThisMuch(lots, charged, "what is charged")
})

/** A release returns the whole hold to the lots that it came from. */
export const refundIsItsHold = rule("refund-is-its-hold", ["Refunded"], ({ stage, amount, lots }, { hold }) => {
  if (stage === "settled") return notThisMuch(lots, amount, "what is refunded")
  if (hold === undefined) return undefined
  if (amount !== hold.amount) return `${credits(amount)} was released of ${credits(hold.amount)} held`
  return notThisMuch(lots, amount, "what is released") ?? differ(lots, hold.lots, "what was released to")
})

/** A clawback takes its claim from returned credits; a claim on charged credits that no other hold can return becomes debt. */
export const clawbackTakesWhatIsReleased = rule(
  "clawback-takes-what-is-released",
  ["OperationSucceeded", "Refunded"],
  (event, { before, hold }) => {
    const { claimed = [] } = event
    if (event._tag === "Refunded" && event.stage === "settled") {
      return differ(
        claimed,
        partsOf(event.lots, ({ lotId, amount }) => Math.min(amount, amountOf(before.purse.debts, lotId))),
        "what repays the debt of"
      )
    }
    if (hold === undefined) return undefined
    const charged = event._tag === "OperationSucceeded" ? event.lots : []
    const owed = event._tag === "OperationSucceeded" ? (event.owed ?? []) : []
    if (claimed.length === 0 && owed.length === 0 && !before.purse.lots.some((lot) => lot.claimed > 0)) return undefined
    const taken = (lotId: string, amount: number) =>
      Math.min(amount - amountOf(charged, lotId), Lots.find(before.purse.lots, lotId)?.claimed ?? 0)
    const lost = (lotId: string, amount: number) => {
      const lot = Lots.find(before.purse.lots, lotId)
      return lot === undefined ? 0 : Math.max(0, lot.claimed - taken(lotId, amount) - (lot.held - amount))
    }
    return (
      differ(
        claimed,
        partsOf(hold.lots, ({ lotId, amount }) => taken(lotId, amount)),
        "what the clawback took of"
      ) ??
      differ(
        owed,
        partsOf(hold.lots, ({ lotId, amount }) => lost(lotId, amount)),
        "what is owed for"
      )
    )
  }
)

const partsOf = (parts: Parts, amount: (part: Parts[number]) => number): Parts =>
  parts.map((part) => ({ lotId: part.lotId, amount: amount(part) }))
