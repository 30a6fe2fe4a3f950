/**
 * Checks every payment: its account has what the gateway's last standing implies, by plain arithmetic, its documents add up to that, and
 * callers were told the truth.
 */
import { lotIdOfPayment, Payment } from "@millrace/core"
import { Exit } from "effect"
import type { Evidence, Report } from "../Evidence.ts"
import { BONUSES } from "../payments/Endpoints.ts"
import type { Held } from "../payments/Gateway.ts"
import { type Call, dataOf } from "../Records.ts"
import { Dues } from "./SubscriptionDues.ts"

const DOLLAR = 1_000_000

export const checkPayments = (evidence: Evidence, report: Report): void => {
  // Their own checker reports what is wrong with subscriptions
  const dues = new Dues(evidence, () => {}).byId
  for (const held of evidence.records.paid.values()) {
    const of: Report = (violation) => report(`${held.paymentId}: ${violation}`)
    checkCredits(held, dues.get(held.paymentId)?.credits, evidence, of)
    checkDocuments(held, evidence, of)
  }
  for (const call of evidence.calls) checkAnswer(call, evidence, (violation) => report(`${call.requestId}: ${violation}`))
}

/** The lots of a payment: what it buys, and its bonus. */
export const lotsOf = (paymentId: string) => [lotIdOfPayment(paymentId), Payment.bonusLotIdOf(paymentId)] as const

/** Money that went back: at most all of it. */
const goneOf = ({ amount, standing }: Pick<Held, "amount" | "standing">): number => {
  const back = [
    ...standing.refunds.filter(({ status }) => status !== "failed"),
    ...standing.disputes.filter(({ status }) => status !== "won")
  ]
  return Math.min(
    amount,
    back.reduce((sum, { minor }) => sum + minor, 0)
  )
}

/** The invoices less the credit notes are the money that is left. A payment that was not captured has none. */
const checkDocuments = (held: Held, { recorder }: Evidence, report: Report): void => {
  const kept = held.standing.status === "captured" ? held.amount - goneOf(held) : 0
  let invoiced = 0
  for (const { event } of [...recorder.invoices.byId.values()].flatMap(({ events }) => events))
    if (event.paymentId === held.paymentId) invoiced += event._tag === "InvoiceIssued" ? event.total : -event.total
  if (invoiced !== kept) report(`its documents add up to ${invoiced}, not ${kept}`)
}

/** What its lot was granted and has left of it after what went back, and what its bonus was granted. */
const checkCredits = (
  { amount, paymentId, standing }: Held,
  /** Of a payment of a subscription; else the credits are those of a pack. */
  due: number | undefined,
  { recorder }: Evidence,
  report: Report
): void => {
  const [paid, bonus] = lotsOf(paymentId)
  const { order } = recorder.payments.stateOf(Payment.paymentIdOf(paymentId))
  const sums = { granted: 0, bonus: 0, net: 0, grants: 0, byHand: 0 }
  for (const { event, stream } of recorder.accountEvents) {
    if (!("lotId" in event) || (event.lotId !== paid && event.lotId !== bonus)) continue
    if (stream !== `account-${order?.accountId}`) report(`${stream} has its lot`)
    if (event._tag === "CreditsGranted") {
      sums.grants++
      if (event.lotId === paid) sums.granted += event.amount
      else sums.bonus += event.amount
    }
    if ((event._tag === "CreditsClawedBack" || event._tag === "ClawbackReversed") && event.change === undefined) sums.byHand++
    if (event._tag === "CreditsClawedBack") sums.net -= event.amount
    if (event._tag === "ClawbackReversed") sums.net += event.amount
  }
  const isCaptured = standing.status === "captured"
  const dollars = amount / 100
  const bought = isCaptured ? (due ?? dollars * DOLLAR) : 0
  const given = isCaptured && due === undefined ? ((BONUSES as Readonly<Record<string, number>>)[String(dollars)] ?? 0) : 0
  const gone = goneOf({ amount, standing })
  const left = isCaptured ? bought - Math.floor((bought * gone) / amount) : 0
  if (sums.granted !== bought || sums.bonus !== given || sums.grants > 2)
    report(`granted ${sums.granted} and ${sums.bonus} in ${sums.grants} lots, not ${bought} and ${given}`)
  // An administrator who takes a lot back by hand, or returns it, leaves less or more to what follows from the payment
  else if (sums.byHand === 0 && sums.granted + sums.net !== left) report(`its account keeps ${sums.granted + sums.net}, not ${left}`)
}

const OPERATIONS = new Set(["billing.topUp", "billing.captureTopUp"])

/** A caller sees its own payments only, and is told that one was captured once its credits are there. */
const checkAnswer = (call: Call, { records, recorder }: Evidence, report: Report): void => {
  const { intent, response } = call
  if (response === undefined || !OPERATIONS.has(intent.operation) || Exit.isFailure(response.answer)) return
  const { payment_id: paymentId, status } = dataOf(call) ?? {}
  const history = recorder.payments.of(Payment.paymentIdOf(paymentId))
  const { order } = history.states.at(-1) ?? {}
  if (order?.accountId !== intent.accountId) return report(`was answered the payment ${paymentId} of ${order?.accountId}`)
  if (!records.paid.has(paymentId)) return report(`was answered the payment ${paymentId}, which the gateway does not know`)
  if (status !== "captured" && status !== "refunded") return
  const [paid] = lotsOf(paymentId)
  const isGranted = recorder.accountEvents.some(
    ({ event, index }) => event._tag === "CreditsGranted" && event.lotId === paid && index <= response.lengthAfter
  )
  if (!isGranted) report(`was told that ${paymentId} is ${status}, before its credits were there`)
}
