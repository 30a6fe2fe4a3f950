/** Rules of clawbacks and debt. */
import { Account, Lots } from "@millrace/core"
import { amountOf, credits, rule } from "./Rule.ts"

/** A clawback takes at most the granted amount of the payment's lot: first available credits, then held ones; the rest is debt. */
export const clawbackIsOfAPaidLot = rule("clawback-is-of-a-paid-lot", ["CreditsClawedBack"], (event, { before }) => {
  const { lotId, paymentRef, amount, fromAvailable, fromHeld, debt } = event
  const paid = Account.get(before.purse.paidLots, lotId)
  if (paid === undefined) return `nobody paid for lot ${lotId}`
  if (paid.paymentRef !== paymentRef) return `lot ${lotId} came of payment ${paid.paymentRef}, not ${paymentRef}`
  if (amount > paid.granted - paid.clawedBack) return `${credits(amount)} was clawed back of ${credits(paid.granted - paid.clawedBack)}`
  const lot = Lots.find(before.purse.lots, lotId)
  const free = Math.min(amount, lot?.left ?? 0)
  const held = Math.min(amount - free, lot === undefined ? 0 : lot.held - lot.claimed)
  if (fromAvailable === free && fromHeld === held && debt === amount - free - held) return undefined
  return `of ${credits(amount)} clawed back, ${credits(free)} was free and ${credits(held)} held`
})

/** A reversal returns at most the clawed-back amount: first the claim on held credits, then the debt; only the rest as credits. */
export const reversalIsOfAClawback = rule("reversal-is-of-a-clawback", ["ClawbackReversed"], (event, { before }) => {
  const { lotId, paymentRef, amount, toHeld, toDebt, toAvailable } = event
  const paid = Account.get(before.purse.paidLots, lotId)
  if (paid === undefined) return `nobody paid for lot ${lotId}`
  if (paid.paymentRef !== paymentRef) return `lot ${lotId} came of payment ${paid.paymentRef}, not ${paymentRef}`
  if (amount > paid.clawedBack) return `${credits(amount)} was returned of ${credits(paid.clawedBack)} clawed back`
  const held = Math.min(amount, Lots.find(before.purse.lots, lotId)?.claimed ?? 0)
  const owed = Math.min(amount - held, amountOf(before.purse.debts, lotId))
  if (toHeld === held && toDebt === owed && toAvailable === amount - held - owed) return undefined
  return `of ${credits(amount)} returned, ${credits(held)} was still claimed and ${credits(owed)} owed`
})

/** Only paid lots that have not expired repay debt, and never more than is owed. */
export const debtIsRepaidByPaidLots = rule("debt-is-repaid-by-paid-lots", ["DebtRepaid"], ({ lotId, amount }, { before, at }) => {
  const lot = Lots.find(before.purse.lots, lotId)
  if (lot === undefined || !Lots.isPaid(lot.source)) return `lot ${lotId} is no paid lot with credits`
  if (Lots.isExpired(lot, at)) return `lot ${lotId} had expired`
  const owed = Account.debt(before)
  return amount <= Math.min(owed, lot.left)
    ? undefined
    : `${credits(amount)} was repaid of ${credits(owed)} owed, from ${credits(lot.left)}`
})
