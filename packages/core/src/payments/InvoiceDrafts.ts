/** Which documents follow from a payment: a pure function of its events, so that an auditor can repeat it. */
import type { EventStore } from "@millrace/event-sourcing"
import { HashChain } from "@millrace/event-sourcing"
import { lotIdOfPayment } from "../Ids.ts"
import * as Money from "../Money.ts"
import type { Timestamp } from "../Timestamp.ts"
import type { Draft, Line } from "./Invoice.ts"
import * as Payment from "./Payment.ts"

/** An event of a payment, with its id and its time. */
export interface Step {
  readonly event: Payment.PaymentEvent
  readonly id: string
  readonly at: Timestamp
}

/** The event of a payment as its stream has it. Throws for one that cannot be read. */
export const stepOf = (recorded: EventStore.RecordedEvent): Step => ({
  event: Payment.Payment.codec.decode(recorded.type, recorded.data),
  id: recorded.id,
  at: HashChain.timeOf(recorded)
})

/** `amount × rate / (1 + rate)`, rounded half to even: the tax that an amount includes. `rate` in hundredths of a percent. */
export const taxIn = (amount: number, rate: number): number => {
  if (amount < 0) return 0 - taxIn(-amount, rate)
  const [numerator, denominator] = [BigInt(amount) * BigInt(rate), 10_000n + BigInt(rate)]
  const [whole, rest] = [numerator / denominator, (numerator % denominator) * 2n]
  const isUp = rest > denominator || (rest === denominator && whole % 2n === 1n)
  return Number(whole + (isUp ? 1n : 0n))
}

/** A document that follows from a payment. `invoice` is filled in with the number of its first one. */
export type Due = Omit<Draft, "invoice">

/** The money of a payment that the host has: what was captured, less what went back. */
export const keptOf = (order: Payment.Order | undefined): number =>
  order === undefined || order.status !== "captured" ? 0 : order.captured - Payment.returned(order)

/** The document that follows from an event, given what was kept before it and the payment after it; undefined where the sum is the same. */
export const dueAfter = (from: number, order: Payment.Order, step: Step): Due | undefined => {
  const to = keptOf(order)
  return to === from ? undefined : documentOf(order, { ...step, from, to })
}

/**
 * The documents of a payment, in the order of its events. The money that was taken is invoiced when it was captured; from then on each change
 * of what went back makes a document over the difference. So the sums of the documents are, at any time, what was captured less what went
 * back; the tax of each is the difference of the taxes of these sums, so that it has no rounding of its own.
 */
export const dueOf = (steps: ReadonlyArray<Step>): ReadonlyArray<Due> => {
  let payment = Payment.Payment.initial
  const due: Array<Due> = []
  for (const step of steps) {
    const kept = keptOf(payment.order)
    payment = Payment.Payment.evolve(payment, step.event, step.at)
    const document = payment.order && dueAfter(kept, payment.order, step)
    if (document !== undefined) due.push(document)
  }
  return due
}

/** From what was kept before an event to what is kept after it. */
interface Change extends Step {
  readonly from: number
  readonly to: number
}

const documentOf = (order: Payment.Order, change: Change): Due => {
  const { at, from, id, to } = change
  const rate = order.tax?.rate ?? 0
  const [low, high] = [Math.min(from, to), Math.max(from, to)]
  const [total, tax] = [high - low, taxIn(high, rate) - taxIn(low, rate)]
  return {
    _tag: to > from ? "InvoiceIssued" : "CreditNoteIssued",
    accountId: order.accountId,
    paymentId: order.paymentId,
    gateway: order.gateway,
    cause: id,
    issuedAt: at,
    currency: order.currency,
    lines: linesOf(order, change, { total, tax }),
    ...(order.tax === undefined ? {} : { taxed: order.tax }),
    net: total - tax,
    tax,
    total,
    seller: order.seller ?? ""
  }
}

/** The lines that the payment was requested with, where the document is of all of it; else one line. */
const linesOf = (
  order: Payment.Order,
  { event, to }: Change,
  { tax, total }: { readonly tax: number; readonly total: number }
): Due["lines"] => {
  const lotId = lotIdOfPayment(order.paymentId)
  const [first, ...more] = order.lines ?? []
  if (first === undefined || event._tag !== "PaymentCaptured" || to !== order.amount)
    return [{ description: descriptionOf(order, event), net: total - tax, tax, total, lotId }]
  const rate = order.tax?.rate ?? 0
  let sum = 0
  const lineOf = ({ amount, description, from, until }: Payment.Line): Line => {
    const tax = taxIn(sum + amount, rate) - taxIn(sum, rate)
    sum += amount
    const span = from === undefined || until === undefined ? "" : `, ${day(from)} to ${day(until)}`
    return { description: `${description}${span}`, net: amount - tax, tax, total: amount, lotId }
  }
  return [lineOf(first), ...more.map(lineOf)]
}

const day = (at: Timestamp): string => new Date(at).toISOString().slice(0, 10)

const descriptionOf = (order: Payment.Order, event: Payment.PaymentEvent): string => {
  switch (event._tag) {
    case "PaymentRefunded":
      return "Refund"
    case "PaymentRefundFailed":
      return "Refund that was not taken"
    case "PaymentDisputed":
      return "Chargeback"
    case "PaymentDisputeWon":
      return "Chargeback that was taken back"
    default: {
      const { description = Money.text(order.credits), purchase } = order
      return purchase._tag === "Pack" ? description : `${description}, ${day(purchase.from)} to ${day(purchase.until)}`
    }
  }
}
