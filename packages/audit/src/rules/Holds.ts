/** Rules of holds: each is priced, takes its amount from available lots, has a deadline, and ends exactly once. */
import { Account, Lots, Memory } from "@millrace/core"
import { amountOf, credits, differ, type Parts, type Rule, rule, wrongTotal } from "./Rule.ts"

export const holdRules: ReadonlyArray<Rule> = [
  // Held = quantity × unit price of the recorded version, which was published before and in force at the time
  rule("hold-is-priced", ["CreditReserved"], ({ operation, priceVersion, quantity, amount }, { prices, at }) =>
    quantity < 0 ? `the quantity is ${quantity}` : prices.mismatch(operation, priceVersion, quantity, amount, at)
  ),

  // Charged = units done × unit price of the hold
  rule("charge-is-priced", ["OperationSucceeded"], ({ quantity, charged }, { hold }) => {
    if (hold === undefined || charged === (quantity === 0 ? 0 : (hold.amount / hold.quantity) * quantity)) return undefined
    return `${credits(hold.amount)} was held for ${hold.quantity} units, but ${credits(charged)} charged for ${quantity}`
  }),

  // The amount of a hold is the sum of its lots
  rule("hold-is-its-lots", ["CreditReserved"], ({ lots, amount }) => wrongTotal(lots, amount, "the held amount")),

  // A hold takes only available credits of lots that are granted and not expired, so no credit is spent twice or before its grant
  rule("hold-takes-what-is-free", ["CreditReserved"], ({ lots }, { before, at }) => {
    for (const { lotId, amount } of lots) {
      const lot = Lots.find(before.purse.lots, lotId)
      if (lot === undefined) return `lot ${lotId} had no credits`
      if (Lots.isExpired(lot, at)) return `lot ${lotId} had expired`
      if (lot.left < amount) return `lot ${lotId} had ${credits(lot.left)} available, but ${credits(amount)} was held`
    }
    return undefined
  }),

  // Lots are held by expiry, then priority, then age. No lot is used while an earlier one has credits
  rule("hold-takes-lots-in-order", ["CreditReserved"], ({ lots }, { before, at }) => {
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
  }),

  // Every hold has a deadline: its own, or its job's. A late hold is settled in the same append
  rule("hold-has-a-deadline", ["CreditReserved"], ({ expiresAt, jobId, acceptBy, lateOf }) => {
    const hasDeadline = expiresAt !== undefined || (jobId !== undefined && acceptBy !== undefined) || lateOf !== undefined
    return hasDeadline ? undefined : "the hold has no deadline"
  }),

  // Two attempts never run under one idempotency key at once, and none within ten minutes after a success
  rule("key-runs-once", ["CreditReserved"], ({ keyHash }, { before, at }) => {
    if (keyHash === undefined) return undefined
    // The log does not have the caller's lookup, so report only what no lookup could excuse
    const used = Memory.keyState(before.memory, { hash: keyHash, since: Number.MAX_SAFE_INTEGER }, at)
    if (used?._tag === "running") return `reservation ${used.reservationId} was open under the same key`
    return used?._tag === "succeeded" ? `reservation ${used.reservationId} had succeeded under the same key` : undefined
  }),

  // A late charge names a reservation that was released as abandoned
  rule("late-call-was-abandoned", ["CreditReserved"], ({ lateOf }, { before }) => {
    if (lateOf === undefined) return undefined
    const past = Account.outcome(before, lateOf)
    return past?._tag === "refunded" && past.reason === "abandoned" ? undefined : `reservation ${lateOf} was not released as abandoned`
  }),

  // Only an open hold is ended, so every hold ends at most once. Holds without an end are reported at the end of the log
  rule("hold-ends-once", ["OperationSucceeded", "Refunded"], (event, { before, hold }) => {
    if ((event._tag === "Refunded" && event.stage === "settled") || hold !== undefined) return undefined
    const past = Account.outcome(before, event.reservationId)
    return `reservation ${event.reservationId} was not open${past === undefined ? "" : `: it had ${past._tag}`}`
  }),

  // A charge is a part of its hold, lot by lot, for a part of the quantity
  rule("charge-is-part-of-its-hold", ["OperationSucceeded"], ({ charged, lots, quantity }, { hold }) => {
    if (hold === undefined) return undefined
    if (charged > hold.amount) return `${credits(charged)} was charged, but ${credits(hold.amount)} held`
    if (quantity < 0 || quantity > hold.quantity) return `${quantity} units were charged, but ${hold.quantity} held`
    for (const { lotId, amount } of lots) {
      const held = amountOf(hold.lots, lotId)
      if (amount > held) return `${credits(amount)} of lot ${lotId} was charged, but ${credits(held)} held`
    }
    return wrongTotal(lots, charged, "the charged amount")
  }),

  // A release returns the whole hold to the lots that it came from
  rule("refund-is-its-hold", ["Refunded"], ({ stage, amount, lots }, { hold }) => {
    if (stage === "settled") return wrongTotal(lots, amount, "the refunded amount")
    if (hold === undefined) return undefined
    if (amount !== hold.amount) return `${credits(amount)} was released, but ${credits(hold.amount)} held`
    return wrongTotal(lots, amount, "the released amount") ?? differ(lots, hold.lots, "the release to")
  }),

  // A clawback takes its claim from returned credits; a claim on charged credits that no other hold can return becomes debt
  rule("clawback-takes-what-is-released", ["OperationSucceeded", "Refunded"], (event, { before: { purse }, hold }) => {
    const { claimed = [], lots } = event
    if (event._tag === "Refunded" && event.stage === "settled") {
      const repaid = partsOf(lots, (lotId, amount) => Math.min(amount, amountOf(purse.debts, lotId)))
      return differ(claimed, repaid, "the repaid debt of")
    }
    if (hold === undefined) return undefined
    const [charged, owed] = event._tag === "OperationSucceeded" ? [lots, event.owed ?? []] : [[], []]
    if (claimed.length === 0 && owed.length === 0 && !purse.lots.some((lot) => lot.claimed > 0)) return undefined
    const taken = (lotId: string, amount: number) => Math.min(amount - amountOf(charged, lotId), Lots.find(purse.lots, lotId)?.claimed ?? 0)
    const lost = (lotId: string, amount: number) => {
      const lot = Lots.find(purse.lots, lotId)
      return lot === undefined ? 0 : Math.max(0, lot.claimed - taken(lotId, amount) - (lot.held - amount))
    }
    return (
      differ(claimed, partsOf(hold.lots, taken), "the amount that the clawback takes of") ??
      differ(owed, partsOf(hold.lots, lost), "the debt for")
    )
  })
]

const partsOf = (parts: Parts, amountFor: (lotId: string, amount: number) => number): Parts =>
  parts.map(({ lotId, amount }) => ({ lotId, amount: amountFor(lotId, amount) }))
