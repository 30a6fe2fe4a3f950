/**
 * A payment: what became of it, and which credits follow from that. Stream `payment-{paymentIdOf(reference)}`.
 *
 * A payment made elsewhere has only its claim: it bought credits once, for one account. A payment made here has its whole life in the stream.
 * What a gateway tells is a standing, all that happened so far; `observe` writes what is new of it. A state only moves forward, pending,
 * authorized, failed, captured, a dispute open, lost, won, and a refund made, failed. So standings may come in any order, and repeated.
 */
import { type Decider, type Decision, EventCodec } from "@millrace/event-sourcing"
import { Result } from "effect"
import * as Credits from "../Credits.ts"
import { bare, lotIdOfPayment } from "../Ids.ts"
import { startOf } from "../ledger/Periods.ts"
import type { Timestamp } from "../Timestamp.ts"
import { share } from "./Amount.ts"
import { type EventOf, PaymentEvent } from "./PaymentEvent.ts"
import type { Dispute, Refund, Standing } from "./PaymentGateway.ts"

export { Line, PaymentEvent, Purchase, Recurring, Tax } from "./PaymentEvent.ts"

const ID = /^pay_[0-9A-HJKMNP-TV-Z]{26}$/u

/** Whether a text has the format of the id of a payment made here. */
export const isId = (text: string): boolean => ID.test(text)

/** The id of a payment's stream: that of the lot that the payment buys, without its prefix. */
export const paymentIdOf = (paymentRef: string): string => bare(lotIdOfPayment(paymentRef))

/** The lot of a payment's bonus. */
export const bonusLotIdOf = (paymentId: string): string => lotIdOfPayment(`${paymentId}/bonus`)

// state

export interface Terms extends Omit<EventOf<"PaymentRequested">, "_tag"> {}

/** Money that was given back. `failed`: the payer's bank did not take it, so the host has it again. */
export interface GivenBack extends Pick<Refund, "reference" | "minor"> {
  readonly failed?: true
}

/** A payment made here. */
export interface Order extends Terms {
  readonly status: Standing["status"]
  /** The gateway's; undefined until the gateway knows the payment. */
  readonly reference: string | undefined
  /** Why it failed. */
  readonly reason: string | undefined
  /** In the smallest unit; 0 before the capture. */
  readonly captured: number
  /** The payer's stored means, if the gateway keeps them. */
  readonly agreement?: string
  /** Why nothing was granted for it. */
  readonly notGranted: string | undefined
  readonly refunds: ReadonlyArray<GivenBack>
  readonly disputes: ReadonlyArray<Dispute>
  /**
   * How the refunds and disputes change the lot, in thousandths and in their order: a positive number is clawed back, a negative one is
   * returned. None is zero.
   */
  readonly changes: ReadonlyArray<number>
}

export interface Payment {
  /** The account that it buys credits for; undefined while nobody claimed or requested it. */
  readonly accountId: string | undefined
  /** Undefined for a payment made elsewhere. */
  readonly order: Order | undefined
}

const orderOf = ({ order }: Payment): Order => {
  if (order === undefined) throw new Error("A payment is requested first")
  return order
}

const RANK = { pending: 0, authorized: 1, failed: 2, captured: 3 } as const
const DISPUTE_RANK = { open: 0, lost: 1, won: 2 } as const

/** What it bought: all of it, unless less was captured than was asked for. */
export const granted = ({ amount, captured, credits }: Pick<Order, "amount" | "captured" | "credits">): Credits.Credits =>
  captured >= amount ? credits : Credits.of(share(credits, captured, amount))

/** Money that went back to the payer: refunds that did not fail, and disputes that were not won. At most what was captured. */
export const returned = ({ captured, disputes, refunds }: Pick<Order, "captured" | "disputes" | "refunds">): number => {
  let total = 0
  for (const { failed, minor } of refunds) if (failed !== true) total += minor
  for (const { minor, status } of disputes) if (status !== "won") total += minor
  return Math.min(total, captured)
}

/** What the account should have of it no longer, in thousandths: in proportion to the money that went back. */
const taken = (order: Order): number => (order.captured === 0 ? 0 : share(granted(order), returned(order), order.captured))

const moved = (before: Order, after: Order): Order => {
  const change = taken(after) - taken(before)
  return change === 0 ? after : { ...after, changes: [...after.changes, change] }
}

const forward = (order: Order, status: Order["status"]): Order => {
  if (RANK[status] <= RANK[order.status]) throw new Error(`A payment that is ${order.status} does not become ${status}`)
  return { ...order, status }
}

const closed = (order: Order, reference: string, status: Dispute["status"]): Order => {
  if (!order.disputes.some((dispute) => dispute.reference === reference)) throw new Error("A dispute is opened first")
  return { ...order, disputes: order.disputes.map((dispute) => (dispute.reference === reference ? { ...dispute, status } : dispute)) }
}

const unmade = (order: Order, reference: string): Order => {
  if (!order.refunds.some((refund) => refund.reference === reference && refund.failed !== true))
    throw new Error("A refund is made first, and fails once")
  return { ...order, refunds: order.refunds.map((refund) => (refund.reference === reference ? { ...refund, failed: true } : refund)) }
}

const begin = ({ _tag: _, ...terms }: EventOf<"PaymentRequested">): Order => ({
  ...terms,
  status: "pending",
  reference: undefined,
  reason: undefined,
  captured: 0,
  notGranted: undefined,
  refunds: [],
  disputes: [],
  changes: []
})

/** A first period begins with its capture. */
const fromCapture = (purchase: Order["purchase"], at: Timestamp): Order["purchase"] =>
  purchase._tag === "Period" && purchase.every !== undefined ? { ...purchase, from: at, until: startOf(at, purchase.every, 1) } : purchase

type OrderEvent = Exclude<PaymentEvent, { readonly _tag: "PaymentClaimed" | "PaymentRequested" }>

const capture = (order: Order, { agreement, amount }: EventOf<"PaymentCaptured">, at: Timestamp): Order => ({
  ...forward(order, "captured"),
  captured: amount,
  reason: undefined,
  purchase: fromCapture(order.purchase, at),
  ...(agreement === undefined ? {} : { agreement })
})

const evolveOrder = (order: Order, event: OrderEvent, at: Timestamp): Order => {
  switch (event._tag) {
    case "PaymentBegun":
      return { ...order, reference: event.reference }
    case "PaymentAuthorized":
      return forward(order, "authorized")
    case "PaymentCaptured":
      return capture(order, event, at)
    case "PaymentFailed":
      return { ...forward(order, "failed"), reason: event.reason }
    case "PaymentNotGranted":
      return { ...order, notGranted: event.reason }
    case "PaymentRefunded":
      return moved(order, { ...order, refunds: [...order.refunds, { reference: event.reference, minor: event.amount }] })
    case "PaymentRefundFailed":
      return moved(order, unmade(order, event.reference))
    case "PaymentDisputed":
      return moved(order, { ...order, disputes: [...order.disputes, { reference: event.reference, minor: event.amount, status: "open" }] })
    case "PaymentDisputeWon":
      return moved(order, closed(order, event.reference, "won"))
    case "PaymentDisputeLost":
      return moved(order, closed(order, event.reference, "lost"))
  }
}

const evolve = (payment: Payment, event: PaymentEvent, at: Timestamp): Payment => {
  switch (event._tag) {
    case "PaymentClaimed":
      // The first claim counts
      return payment.accountId === undefined ? { ...payment, accountId: event.accountId } : payment
    case "PaymentRequested":
      if (payment.accountId !== undefined) throw new Error("A payment is requested once, and not when it is claimed")
      return { accountId: event.accountId, order: begin(event) }
    default:
      return { ...payment, order: evolveOrder(orderOf(payment), event, at) }
  }
}

export const Payment: Decider<Payment, PaymentEvent> = {
  category: "payment",
  codec: EventCodec.make(PaymentEvent),
  initial: { accountId: undefined, order: undefined },
  evolve
}

/** What callers are told: `refunded` once all the money went back for good. */
export type Status = Order["status"] | "refunded"

export const statusOf = (order: Pick<Order, "captured" | "disputes" | "refunds" | "status">): Status => {
  const closed = { ...order, disputes: order.disputes.filter(({ status }) => status === "lost") }
  return order.status === "captured" && order.captured > 0 && returned(closed) === order.captured ? "refunded" : order.status
}

// decisions

type Decided = Decision<PaymentEvent>

const NOTHING: Decided = Result.succeed([])

/** Claims a payment made elsewhere. A later claim decides nothing. */
export const claim =
  (event: EventOf<"PaymentClaimed">) =>
  ({ accountId }: Payment): Decided =>
    accountId === undefined ? Result.succeed([event]) : NOTHING

/** Requests a payment, which lapses after a lifetime in milliseconds. Requesting it again changes nothing. */
export const request =
  ({ lifetime, ...terms }: Omit<Terms, "expiresAt"> & { readonly lifetime: number }) =>
  ({ accountId }: Payment, now: Timestamp): Decided =>
    accountId === undefined ? Result.succeed([{ _tag: "PaymentRequested", ...terms, expiresAt: now + lifetime }]) : NOTHING

/** The gateway knows the payment. It keeps its first reference. */
export const begun =
  (reference: string) =>
  ({ order }: Payment): Decided =>
    order !== undefined && order.reference === undefined ? Result.succeed([{ _tag: "PaymentBegun", reference }]) : NOTHING

/** Writes what is new of a standing. */
export const observe =
  (standing: Standing) =>
  ({ order }: Payment): Decided =>
    order === undefined ? NOTHING : Result.succeed([...progress(order, standing), ...returns(order, standing)])

const progress = (order: Order, { agreement, captured, reason, status }: Standing): ReadonlyArray<PaymentEvent> => {
  if (RANK[status] <= RANK[order.status]) return []
  switch (status) {
    case "captured":
      return [{ _tag: "PaymentCaptured", amount: captured, ...(agreement === undefined ? {} : { agreement }) }]
    case "failed":
      return [{ _tag: "PaymentFailed", reason: reason ?? "The payment failed" }]
    case "authorized":
      return [{ _tag: "PaymentAuthorized" }]
    case "pending":
      return []
  }
}

/** Refunds and disputes count only of what was captured. */
const returns = (order: Order, { disputes, refunds, status }: Standing): ReadonlyArray<PaymentEvent> => {
  if (status !== "captured") return []
  const known = new Map(order.refunds.map(({ failed, reference }) => [reference, failed === true]))
  const events: Array<PaymentEvent> = []
  for (const { minor, reference, status } of refunds) {
    const before = known.get(reference)
    // One that is heard of only when it has failed is written too, so that an older standing is no news
    if (before === undefined) events.push({ _tag: "PaymentRefunded", reference, amount: minor })
    if (status === "failed" && before !== true) events.push({ _tag: "PaymentRefundFailed", reference })
    known.set(reference, before === true || status === "failed")
  }
  const seen = new Map(order.disputes.map(({ reference, status }) => [reference, status]))
  for (const { minor, reference, status } of disputes) {
    const before = seen.get(reference)
    if (before !== undefined && DISPUTE_RANK[status] <= DISPUTE_RANK[before]) continue
    seen.set(reference, status)
    if (before === undefined) events.push({ _tag: "PaymentDisputed", reference, amount: minor })
    if (status === "won") events.push({ _tag: "PaymentDisputeWon", reference })
    if (status === "lost") events.push({ _tag: "PaymentDisputeLost", reference })
  }
  return events
}

/** Fails a payment that nobody paid in time. One that is authorized waits for its gateway. */
export const lapse = ({ order }: Payment, now: Timestamp): Decided =>
  order?.status === "pending" && order.expiresAt <= now
    ? Result.succeed([{ _tag: "PaymentFailed", reason: "It was not paid in time" }])
    : NOTHING

/** Fails a payment that its gateway refused to begin, for good. */
export const refuse =
  (reason: string) =>
  ({ order }: Payment): Decided =>
    order?.status === "pending" && order.reference === undefined ? Result.succeed([{ _tag: "PaymentFailed", reason }]) : NOTHING

/** Nothing can be granted for a captured payment. */
export const notGranted =
  (reason: string) =>
  ({ order }: Payment): Decided =>
    order?.status === "captured" && order.notGranted === undefined ? Result.succeed([{ _tag: "PaymentNotGranted", reason }]) : NOTHING
