/**
 * Checks every subscription: each payment costs and brings what its plan says and buys one thing, or its money goes back; and callers were
 * told the truth.
 */
import { Subscription } from "@millrace/core"
import { Exit } from "effect"
import type { Evidence, Report } from "../Evidence.ts"
import type { Held } from "../payments/Gateway.ts"
import { type Call, dataOf, tagOf } from "../Records.ts"
import { PLANS } from "../subscriptions/Endpoints.ts"
import { type Due, Dues } from "./SubscriptionDues.ts"

export const checkSubscriptions = (evidence: Evidence, report: Report): void => {
  const { byId } = new Dues(evidence, report)
  for (const held of evidence.records.paid.values())
    if (held.recurring !== undefined)
      checkPayment(held, byId.get(held.paymentId), evidence, (violation) => report(`${held.paymentId}: ${violation}`))
  for (const call of evidence.calls) checkAnswer(call, evidence, (violation) => report(`${call.requestId}: ${violation}`))
}

/** What the gateway was asked for is due, and what was captured bought it, or has gone back. */
const checkPayment = ({ amount, recurring, standing }: Held, due: Due | undefined, { recorder }: Evidence, report: Report): void => {
  if (due === undefined) return report("the gateway was asked for it, and no subscription was")
  if (amount !== due.amount) report(`it costs ${amount}, not ${due.amount}`)
  const isOwn =
    typeof recurring !== "string" ||
    [...recorder.payments.byId.values()].some(
      ({ states }) => states.at(-1)?.order?.accountId === due.accountId && recurring === `means_${states.at(-1)?.order?.paymentId}`
    )
  if (!isOwn) report(`it was taken by ${recurring}, the means of another account`)
  if (standing.status !== "captured") {
    if (due.outcome !== undefined) report(`it is ${standing.status}, and bought something`)
    return
  }
  if (due.outcome === undefined) return report("it was captured, and bought nothing")
  if (due.outcome === "bought") return
  const back = standing.refunds.reduce((sum, { minor }) => sum + minor, 0)
  const taken = standing.disputes.reduce((sum, { minor, status }) => (status === "won" ? sum : sum + minor), 0)
  // A bank may take money, give it back later, and refuse a refund: what was asked for counts
  if (
    back + taken < amount &&
    !standing.disputes.some(({ status }) => status === "won") &&
    !standing.refunds.some(({ status }) => status === "failed")
  )
    report(`it was not needed, and ${amount - back - taken} of it was not given back`)
}

type Shown = Subscription.Subscription

/** What a subscription may be shown as between two times: milliseconds since 1970. */
const statusesOf = ({ canceled, endedAt, period }: Shown, from: number, until: number): ReadonlyArray<string> => {
  if (endedAt !== null) return ["ended"]
  if (period === null) return ["pending"]
  const [before, after] = canceled ? ["canceled", "ended"] : ["active", "past_due"]
  return [...(from < period.until ? [before] : []), ...(until >= period.until ? [after] : [])].filter((status) => status !== undefined)
}

const OPERATIONS = new Set(["billing.subscribe", "billing.subscriptions", "billing.cancelSubscription"])

/** An answer shows the caller's own subscription as it was at some instant between question and answer. */
const checkAnswer = (call: Call, evidence: Evidence, report: Report): void => {
  const { intent, lengthBefore, response, startedAt } = call
  if (response === undefined || !OPERATIONS.has(intent.operation)) return
  const { answer, at, lengthAfter } = response
  const states = evidence.recorder.subscriptions.between(Subscription.streamOf(intent.accountId), lengthBefore, lengthAfter)
  if (Exit.isFailure(answer)) return checkRefusal(call, states, report)
  // A replay shows how it was
  if (answer.value.replayed) return
  const data = dataOf(call) ?? {}
  const shown = intent.operation === "billing.subscriptions" ? data["subscriptions"] : [data]
  const until = at + evidence.faults.skew
  const isSo = states.some(({ current }) =>
    shown.length === 0 ? current === null : current !== null && isShown(current, shown[0], statusesOf(current, startedAt, until))
  )
  if (!isSo) report(`was shown ${JSON.stringify(shown)}, which was never so`)
  if (intent.operation === "billing.subscribe") checkWanted(call, data, states, evidence, report)
  if (intent.operation === "billing.cancelSubscription") {
    const isDone = states.some(
      ({ current }) => current !== null && (current.endedAt !== null || (intent.input.now !== "true" && current.canceled))
    )
    if (!isDone) report("was told that it cancelled, and nothing was cancelled")
  }
}

/** It was told that there is no such subscription: so there was none, of this account. */
const checkRefusal = ({ intent, response }: Call, states: ReadonlyArray<Subscription.Subscriptions>, report: Report): void => {
  const error = response && Exit.findErrorOption(response.answer)
  const tag = response && tagOf(response.answer)
  if (tag !== "NotFound" || error?._tag !== "Some" || !("resource" in error.value) || error.value.resource !== "subscription") return
  const isThere = states.every(({ current }) => current?.subscriptionId === intent.input.subscription)
  if (isThere) report(`was told that there is no ${intent.input.subscription}, which it has`)
}

const isShown = (
  { next, period, plan, subscriptionId, endedAt }: Shown,
  data: Readonly<Record<string, unknown>>,
  statuses: ReadonlyArray<string>
): boolean =>
  data["subscription_id"] === subscriptionId &&
  data["plan"] === plan.plan &&
  data["credits_per_period"] === Number(PLANS.find((one) => one.plan === plan.plan)?.credits) / 1_000 &&
  data["current_period_end"] === (period === null ? null : new Date(period.until).toISOString()) &&
  data["next_plan"] === (next.plan === plan.plan || endedAt !== null ? undefined : next.plan) &&
  statuses.includes(String(data["status"]))

/** The plan that was wanted is in force, chosen, or to be paid; what is to be paid costs what the gateway asks for. */
const checkWanted = (
  { intent }: Call,
  data: Readonly<Record<string, unknown>>,
  states: ReadonlyArray<Subscription.Subscriptions>,
  { records }: Evidence,
  report: Report
): void => {
  const wanted = intent.input.plan ?? PLANS[0].plan
  const isWanted = states.some(
    ({ current, open }) => current?.plan.plan === wanted || current?.next.plan === wanted || open.some(({ plan }) => plan.plan === wanted)
  )
  if (!isWanted) report(`wanted the plan ${wanted}, and was answered without it`)
  if (!states.some(({ current }) => current !== null && !current.canceled)) report("subscribed again, and stays cancelled")
  const { amount, payment_id: paymentId } = data
  if (paymentId === undefined) return
  const held = records.paid.get(String(paymentId))
  if (held === undefined) return report(`was told to pay ${paymentId}, which the gateway does not know`)
  if (held.amount !== Math.round(Number(amount) * 100)) report(`was told to pay ${amount} for ${paymentId}, which costs ${held.amount}`)
  if (!states.some(({ open }) => open.some((attempt) => attempt.paymentId === paymentId)))
    report(`was told to pay ${paymentId}, which its subscription does not wait for`)
}
