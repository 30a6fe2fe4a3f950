/** Rules of holds: each is priced, takes its amount from available lots, and has a deadline. `Charges.ts` has the rules of their ends. */
import { Account, Lots, Memory } from "@millrace/core"
import { amountOf, credits, excess, type Parts, type Rule, rule, type Step, totalOf, wholeOf, wrongTotal } from "./Rule.ts"

export const holdRules: ReadonlyArray<Rule> = [
  // Held = quantity × unit price of the recorded version, which was published before and in force at the time
  rule(
    "hold-is-priced",
    ["CreditReserved"],
    ({ operation, priceVersion, quantity, amount }, { prices, at }) =>
      quantity < 0 ? `the quantity is ${quantity}` : prices.mismatch(operation, priceVersion, quantity, amount, at),
    (event, { prices, at }, say) => {
      const price = prices.priceOf(event.operation, event.priceVersion, event.quantity, at)
      return price === undefined
        ? wholeOf(event, "at a price that was not published for it", say)
        : excess(event.amount, price, `held for ${event.operation}`, say)
    }
  ),

  // The amount of a hold is the sum of its lots
  rule(
    "hold-is-its-lots",
    ["CreditReserved"],
    ({ lots, amount }) => wrongTotal(lots, amount, "the held amount"),
    ({ amount, lots }, _, say) => ({
      amount: amount - totalOf(lots),
      sentence: `${say(amount)} were held, but ${say(totalOf(lots))} taken from lots: the account's total is wrong by ${say(amount - totalOf(lots))}.`
    })
  ),

  // A hold takes only available credits of lots that are granted and not expired, so no credit is spent twice or before its grant
  rule(
    "hold-takes-what-is-free",
    ["CreditReserved"],
    ({ lots }, { before, at }) => {
      for (const { lotId, amount } of lots) {
        const lot = Lots.find(before.purse.lots, lotId)
        if (lot === undefined) return `lot ${lotId} had no credits`
        if (Lots.isExpired(lot, at)) return `lot ${lotId} had expired`
        if (lot.left < amount) return `lot ${lotId} had ${credits(lot.left)} available, but ${credits(amount)} was held`
      }
      return undefined
    },
    ({ lots }, step, say) => {
      const part = lots.find(({ lotId, amount }) => freeOf(step, lotId) < amount)
      const missing = (part?.amount ?? 0) - freeOf(step, part?.lotId ?? "")
      const sentence = `${say(missing)} were held that the lot did not have: they were spent before, had expired, or were never granted.`
      return { lot: part?.lotId, amount: missing, sentence }
    }
  ),

  // Lots are held by expiry, then priority, then age. No lot is used while an earlier one has credits
  rule(
    "hold-takes-lots-in-order",
    ["CreditReserved"],
    ({ lots }, step) => {
      const wrong = outOfOrder(lots, step)
      return wrong && `lot ${wrong.used} was used while lot ${wrong.spared} had credits`
    },
    ({ lots }, step, say) => {
      const { spared = "", used = "" } = outOfOrder(lots, step) ?? {}
      const amount = Math.min(amountOf(lots, used), freeOf(step, spared) - amountOf(lots, spared))
      const sentence = `The account's total is right, but ${say(amount)} came from lot ${used} instead of lot ${spared}, whose credits may expire unused.`
      return { lot: spared, amount, sentence }
    }
  ),

  // Every hold has a deadline: its own, or its job's. A late hold is settled in the same append
  rule(
    "hold-has-a-deadline",
    ["CreditReserved"],
    ({ expiresAt, jobId, acceptBy, lateOf }) => {
      const hasDeadline = expiresAt !== undefined || (jobId !== undefined && acceptBy !== undefined) || lateOf !== undefined
      return hasDeadline ? undefined : "the hold has no deadline"
    },
    (event, _, say) => wholeOf(event, "without a deadline, so the account may never get them back", say)
  ),

  // Two attempts never run under one idempotency key at once, and none within ten minutes after a success
  rule(
    "key-runs-once",
    ["CreditReserved"],
    ({ keyHash }, { before, at }) => {
      if (keyHash === undefined) return undefined
      // The log does not have the caller's lookup, so report only what no lookup could excuse
      const used = Memory.keyState(before.memory, { hash: keyHash, since: Number.MAX_SAFE_INTEGER }, at)
      if (used?._tag === "running") return `reservation ${used.reservationId} was open under the same key`
      return used?._tag === "succeeded" ? `reservation ${used.reservationId} had succeeded under the same key` : undefined
    },
    (event, _, say) => wholeOf(event, "a second time under one idempotency key, so the account may pay twice for one request", say)
  ),

  // A late charge names a reservation that was released as abandoned
  rule(
    "late-call-was-abandoned",
    ["CreditReserved"],
    ({ lateOf }, { before }) => {
      if (lateOf === undefined) return undefined
      const past = Account.outcome(before, lateOf)
      return past?._tag === "refunded" && past.reason === "abandoned" ? undefined : `reservation ${lateOf} was not released as abandoned`
    },
    (event, _, say) => wholeOf(event, "for a late call that had ended in another way, and should cost nothing", say)
  )
]

/** The credits of a lot that are free and have not expired. */
const freeOf = ({ at, before }: Step, lotId: string): number => {
  const lot = Lots.find(before.purse.lots, lotId)
  return lot === undefined || Lots.isExpired(lot, at) ? 0 : lot.left
}

/** The first lot that is used although an earlier one has credits, and that one. */
const outOfOrder = (lots: Parts, { at, before }: Step): { readonly used: string; readonly spared: string } | undefined => {
  let taken = 0
  let spared: string | undefined
  for (const lot of before.purse.lots) {
    if (taken === lots.length) return undefined
    const part = amountOf(lots, lot.lotId)
    if (part > 0) {
      taken++
      if (spared !== undefined) return { used: lot.lotId, spared }
    }
    if (lot.left > part && !Lots.isExpired(lot, at)) spared ??= lot.lotId
  }
  return undefined
}
