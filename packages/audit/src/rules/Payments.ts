/** Rules of clawbacks and debt. */
import { Account, Lots, lotsOf } from "@millrace/core"
import { amountOf, credits, excess, type Rule, rule, type Step, wholeOf } from "./Rule.ts"

export const paymentRules: ReadonlyArray<Rule> = [
  // The lot and the bonus of a payment made here follow its capture, as they were ordered
  rule(
    "payment-grants-what-it-bought",
    ["CreditsGranted"],
    (event, { accountId, payments }) => {
      const lot = payments.ofLot(event.lotId)
      if (lot === undefined || lot === "unknown") return undefined
      const { order, part } = lot
      const { paymentId } = order
      if (order.status !== "captured") return `the payment ${paymentId} is ${order.status}`
      if (order.accountId !== accountId) return `the payment ${paymentId} is of ${order.accountId}`
      const [bought, bonus] = lotsOf(order)
      const { amount, expiresAt = null, paymentRef = null, source } = part === "paid" ? bought : bonus
      if (event.amount !== amount) return `the payment ${paymentId} bought ${credits(amount)}, not ${credits(event.amount)}`
      const isAsOrdered = event.source === source && event.expiresAt === expiresAt && event.paymentRef === paymentRef
      return isAsOrdered ? undefined : `the payment ${paymentId} bought a lot of other terms`
    },
    (event, _, say) => wholeOf(event, "but that is not what was paid for", say)
  ),

  // Each change of a lot is one of those that follow from its payment, and is made once
  rule(
    "lot-follows-its-payment",
    ["CreditsClawedBack", "ClawbackReversed"],
    (event, { before: { purse }, payments }) => {
      const { amount, change, lotId } = event
      const lot = payments.ofLot(lotId)
      if (change === undefined || lot === "unknown") return undefined
      const paid = Account.get(purse.paidLots, lotId)
      if (lot === undefined || paid === undefined) return `lot ${lotId} is of no payment made here`
      if (change <= paid.changes) return `change ${change} of its payment was made already`
      const by = lot.order.changes[change - 1] ?? 0
      const [most, direction] = event._tag === "CreditsClawedBack" ? [paid.granted - paid.clawedBack, 1] : [paid.clawedBack, -1]
      const due = Math.max(0, Math.min(by * direction, most))
      return amount === due ? undefined : `by change ${change} of its payment ${credits(due)} go this way, not ${credits(amount)}`
    },
    (event, _, say) => wholeOf(event, "but that does not follow from its payment", say)
  ),

  // A clawback takes at most the granted amount of the payment's lot: first available credits, then held ones; the rest is debt
  rule(
    "clawback-is-of-a-paid-lot",
    ["CreditsClawedBack"],
    (event, { before: { purse } }) => {
      const { lotId, paymentRef, amount, fromAvailable, fromHeld, debt } = event
      const paid = Account.get(purse.paidLots, lotId)
      if (paid?.paymentRef !== paymentRef) return otherPayment(lotId, paymentRef, paid)
      const most = paid.granted - paid.clawedBack
      if (amount > most) return `${credits(amount)} was clawed back, but at most ${credits(most)} may be`
      const lot = Lots.find(purse.lots, lotId)
      const free = Math.min(amount, lot?.left ?? 0)
      const held = Math.min(amount - free, lot === undefined ? 0 : lot.held - lot.claimed)
      if (fromAvailable === free && fromHeld === held && debt === amount - free - held) return undefined
      return `of ${credits(amount)} clawed back, ${credits(free)} was available and ${credits(held)} held`
    },
    (event, step, say) => {
      const paid = paidBy(event, step)
      if (paid === undefined) return wholeOf(event, "but that payment did not buy this lot", say)
      const most = paid.granted - paid.clawedBack
      if (event.amount > most) return excess(event.amount, most, "taken back", say, event.lotId)
      const parts = `${say(event.fromAvailable)} from free credits, ${say(event.fromHeld)} from held ones and ${say(event.debt)} as debt`
      return { lot: event.lotId, amount: event.amount, sentence: `${say(event.amount)} were taken back in the wrong parts: ${parts}.` }
    }
  ),

  // A reversal returns at most the clawed-back amount: first the claim on held credits, then the debt; only the rest as credits
  rule(
    "reversal-is-of-a-clawback",
    ["ClawbackReversed"],
    (event, { before: { purse } }) => {
      const { lotId, paymentRef, amount, toHeld, toDebt, toAvailable } = event
      const paid = Account.get(purse.paidLots, lotId)
      if (paid?.paymentRef !== paymentRef) return otherPayment(lotId, paymentRef, paid)
      if (amount > paid.clawedBack) return `${credits(amount)} was returned, but ${credits(paid.clawedBack)} clawed back`
      const held = Math.min(amount, Lots.find(purse.lots, lotId)?.claimed ?? 0)
      const owed = Math.min(amount - held, amountOf(purse.debts, lotId))
      if (toHeld === held && toDebt === owed && toAvailable === amount - held - owed) return undefined
      return `of ${credits(amount)} returned, ${credits(held)} was still claimed and ${credits(owed)} owed`
    },
    (event, step, say) => {
      const paid = paidBy(event, step)
      if (paid === undefined) return wholeOf(event, "but that payment did not buy this lot", say)
      if (event.amount > paid.clawedBack) return excess(event.amount, paid.clawedBack, "returned", say, event.lotId)
      const parts = `${say(event.toHeld)} to held credits, ${say(event.toDebt)} to debt and ${say(event.toAvailable)} to free credits`
      return { lot: event.lotId, amount: event.amount, sentence: `${say(event.amount)} were returned in the wrong parts: ${parts}.` }
    }
  ),

  // Only paid lots that have not expired repay debt, and never more than is owed
  rule(
    "debt-is-repaid-by-paid-lots",
    ["DebtRepaid"],
    ({ lotId, amount }, { before, at }) => {
      const lot = Lots.find(before.purse.lots, lotId)
      if (lot === undefined || !Lots.isPaid(lot.source)) return `lot ${lotId} is not a paid lot with credits`
      if (Lots.isExpired(lot, at)) return `lot ${lotId} had expired`
      const owed = Account.debt(before)
      if (amount <= Math.min(owed, lot.left)) return undefined
      return `${credits(amount)} was repaid, but ${credits(owed)} was owed and lot ${lotId} had ${credits(lot.left)}`
    },
    (event, { before, at }, say) => {
      const lot = Lots.find(before.purse.lots, event.lotId)
      if (lot === undefined || !Lots.isPaid(lot.source)) return wholeOf(event, "although nobody had paid for them", say)
      if (Lots.isExpired(lot, at)) return wholeOf(event, "although they had expired", say)
      return excess(event.amount, Math.min(Account.debt(before), lot.left), "used to repay debt", say, event.lotId)
    }
  )
]

/** The paid lot of an event, if the event names its payment. */
const paidBy = ({ lotId, paymentRef }: { readonly lotId: string; readonly paymentRef: string | null }, { before }: Step) => {
  const paid = Account.get(before.purse.paidLots, lotId)
  return paid?.paymentRef === paymentRef ? paid : undefined
}

const otherPayment = (lotId: string, paymentRef: string | null, paid: { readonly paymentRef: string | null } | undefined): string =>
  paid === undefined ? `lot ${lotId} was not paid for` : `lot ${lotId} was paid by ${paid.paymentRef}, not ${paymentRef}`
