/** What PayPal says of an order, its captures, refunds and disputes, as a standing. */
import type { PaymentGateway } from "@millrace/core"
import * as Amounts from "./Amounts.ts"
import type { Capture, Dispute, Order, Refund } from "./PayPalModel.ts"

type Standing = PaymentGateway.Standing

/** Reasons for which a capture waits again after the money had come. The dispute or the refund itself tells what became of it. */
const AFTER_CAPTURE: ReadonlySet<string> = new Set(["BUYER_COMPLAINT", "CHARGEBACK", "REFUNDED"])

const hasMoney = ({ status, status_details }: Capture): boolean =>
  status === "COMPLETED" ||
  status === "PARTIALLY_REFUNDED" ||
  status === "REFUNDED" ||
  (status === "PENDING" && AFTER_CAPTURE.has(status_details?.reason ?? ""))

export const capturesOf = ({ purchase_units }: Order): ReadonlyArray<Capture> =>
  purchase_units.flatMap(({ payments }) => payments?.captures ?? [])

export const refundsOf = ({ purchase_units }: Order): ReadonlyArray<Refund> =>
  purchase_units.flatMap(({ payments }) => payments?.refunds ?? [])

/** The capture whose money came. An order has one at most. */
export const captureOf = (order: Order): Capture | undefined => capturesOf(order).find(hasMoney)

const standing = (status: Standing["status"], reason: string | null = null): Standing => ({
  status,
  reason,
  captured: 0,
  refunds: [],
  disputes: []
})

/** An order that PayPal has forgotten: nobody can approve it any more, and this host alone could have captured it. */
export const FORGOTTEN: Standing = standing("failed", "The payment was not completed in time")

/** Undefined if an amount is malformed, or if an order is completed without a capture. */
export const standingOf = (order: Order, disputes: ReadonlyArray<Dispute>): Standing | undefined => {
  const captures = capturesOf(order)
  const capture = captureOf(order)
  if (capture !== undefined) return capturedOf(capture, refundsOf(order), disputes)
  // PayPal has taken the order to capture it, and waits for the money, as of an eCheck: still, nobody has it
  if (captures.some(({ status }) => status === "PENDING")) return standing("authorized", "PayPal is waiting for the money")
  if (captures.length > 0) return standing("failed", "PayPal declined the payment")
  switch (order.status) {
    case "APPROVED":
      return standing("authorized")
    case "VOIDED":
      return standing("failed", "The payment was cancelled")
    case "COMPLETED":
      return undefined
    default:
      return standing("pending")
  }
}

const capturedOf = ({ amount }: Capture, refunds: ReadonlyArray<Refund>, disputes: ReadonlyArray<Dispute>): Standing | undefined => {
  const { currency_code: currency } = amount
  const captured = Amounts.fromPayPal(amount.value, currency)
  if (captured === undefined) return undefined
  const given: Array<PaymentGateway.Refund> = []
  for (const { amount, id, status } of refunds) {
    const minor = Amounts.fromPayPal(amount.value, currency)
    if (minor === undefined) return undefined
    given.push({ reference: id, minor, status: REFUND_STATUS[status] })
  }
  const taken = disputes.flatMap((dispute) => disputeOf(dispute, currency, captured))
  return { status: "captured", reason: null, captured, refunds: given, disputes: taken }
}

/** The money has left the host's balance, unless it could not be given back. */
const REFUND_STATUS: Readonly<Record<Refund["status"], PaymentGateway.Refund["status"]>> = {
  PENDING: "pending",
  COMPLETED: "succeeded",
  FAILED: "failed",
  CANCELLED: "failed"
}

const WON: ReadonlySet<string> = new Set(["RESOLVED_SELLER_FAVOUR", "CANCELED_BY_BUYER", "DENIED"])
const LOST: ReadonlySet<string> = new Set(["RESOLVED_BUYER_FAVOUR", "ACCEPTED"])

/** While payer and host talk (`INQUIRY`), no money is taken: the dispute counts once it is a claim or a chargeback, or is lost. */
const disputeOf = (dispute: Dispute, currency: string, captured: number): ReadonlyArray<PaymentGateway.Dispute> => {
  const { dispute_amount: amount, dispute_id: reference, dispute_life_cycle_stage: stage } = dispute
  const status = endOf(dispute)
  if (stage === "INQUIRY" && status !== "lost") return []
  // A dispute in another currency than the payment's is of the whole payment
  const minor = (amount?.currency_code === currency ? Amounts.fromPayPal(amount.value, currency) : undefined) ?? captured
  return [{ reference, minor, status }]
}

/** With another code, such as `RESOLVED_WITH_PAYOUT`, the host may have paid, or PayPal in its stead. */
const endOf = (dispute: Dispute): PaymentGateway.Dispute["status"] => {
  if (dispute.status !== "RESOLVED") return "open"
  const code = dispute.dispute_outcome?.outcome_code ?? ""
  if (WON.has(code)) return "won"
  return LOST.has(code) || takenFromHost(dispute) > 0 ? "lost" : "won"
}

/** In units of some currency: only its sign matters. */
const takenFromHost = ({ money_movements = [] }: Dispute): number =>
  money_movements
    .filter(({ affected_party }) => affected_party === "SELLER")
    .reduce((sum, { amount, type }) => sum + Number(amount?.value ?? 0) * (type === "DEBIT" ? 1 : -1), 0)
