/** Checks every wait for a verification code: its answer, its outcome in the log, and its charge. */
import { Verification } from "@millrace/core"
import { Exit } from "effect"
import type { Evidence, Report, Reservation } from "../Evidence.ts"
import { type Call, dataOf, type TextMessage } from "../Records.ts"

export const checkCodes = (evidence: Evidence, report: Report): void => {
  checkTexts(evidence, report)
  for (const reservation of evidence.reservations.byId.values())
    if (reservation.hold.operation === "verification.wait") checkOutcome(reservation, evidence, report)
  for (const call of evidence.calls) {
    const { intent, requestId, response } = call
    if (intent.operation !== "verification.wait" || response === undefined || Exit.isFailure(response.answer)) continue
    if (!response.answer.value.replayed) checkAnswer(call, evidence, (violation) => report(`${requestId}: ${violation}`))
  }
}

/** The event of a message in the log. */
const receivedOf = ({ id }: TextMessage, { records, recorder }: Evidence) => recorder.texts.of(records.textIds.get(id) ?? "").events[0]

/** A message that was taken is in the log by then, and every message in the log was brought. */
const checkTexts = (evidence: Evidence, report: Report): void => {
  const { records, recorder } = evidence
  for (const { answer, message } of records.textings) {
    const received = receivedOf(message, evidence)
    if (answer?.told === "taken" && (received === undefined || received.index > answer.lengthAfter))
      report(`${message.id} was taken, but is not in the log`)
  }
  const known = new Set(records.textIds.values())
  for (const id of recorder.texts.byId.keys()) if (!known.has(id)) report(`sms-${id} was brought by nobody`)
}

/** The outcome of the wait that a reservation pays for. A late charge pays for the wait of the hold that had lapsed. */
const outcomeOf = ({ lateOf, reservationId }: Reservation["hold"], { recorder }: Evidence) =>
  recorder.waits.of(Verification.idOf(lateOf ?? reservationId)).events[0]

/** A wait is charged for its outcome, and not if its caller left. */
const checkOutcome = ({ at, end, hold, stream, success }: Reservation, evidence: Evidence, report: Report): void => {
  const outcome = outcomeOf(hold, evidence)
  const what = `${stream}: the wait of ${hold.requestId}`
  const asked = evidence.call(hold.requestId)?.intent.input.timeout
  if (outcome?.event._tag === "WaitTimedOut" && outcome.at - at < asked * 1_000 - evidence.faults.skew && hold.lateOf === undefined)
    report(`${what} timed out after ${outcome.at - at} ms of ${asked} s`)
  if (outcome !== undefined && !stream.endsWith(outcome.event.accountId)) report(`${what} has an outcome of another account`)
  if (success === undefined) return
  if (outcome === undefined || outcome.index > (end?.index ?? 0)) report(`${what} was charged without an outcome`)
  else if (outcome.event._tag === "WaitAbandoned") report(`${what} was charged, though its caller had left`)
}

/** For how long a message can certainly be found, milliseconds. */
const REMEMBERED = 24 * 3_600_000 - 60_000

/** The code is of a message that the caller waited for, or none came in time. */
const checkAnswer = ({ intent, lengthBefore, requestId, response, startedAt }: Call, evidence: Evidence, report: Report): void => {
  if (response === undefined) return
  const { identifier, phone_number, since, timeout } = intent.input
  const data = dataOf({ intent, response } as Call)
  const [outcome] = evidence.reservations.of(requestId).flatMap(({ hold }) => outcomeOf(hold, evidence) ?? [])
  if (outcome === undefined || outcome.index > response.lengthAfter) return report("was answered before its outcome was in the log")
  if (data.code === null) {
    if (outcome.event._tag !== "WaitTimedOut") report(`was answered no code, but its outcome is ${outcome.event._tag}`)
    if (response.at - startedAt < timeout * 1_000) report(`was answered no code after ${response.at - startedAt} ms of ${timeout} s`)
    return
  }
  const message = evidence.records.textings.find(({ message }) => message.code === data.code)?.message
  const received = message && receivedOf(message, evidence)
  if (message === undefined || received === undefined) return report(`was told the code ${data.code}, which nobody sent`)
  if (outcome.event._tag !== "CodeFound" || outcome.event.sms !== evidence.records.textIds.get(message.id))
    report(`was told the code of ${message.id}, but its outcome is another`)
  if (message.to !== phone_number || message.from.toLowerCase() !== identifier || message.text !== data.message)
    report(`was told the code of ${message.id}, for which it did not wait`)
  const isFirst = ({ code, from, id, to }: TextMessage, at: number, index: number) =>
    code !== undefined &&
    id !== message.id &&
    to === phone_number &&
    from.toLowerCase() === identifier &&
    at > Math.max(Date.parse(since), startedAt - REMEMBERED) &&
    index < received.index
  for (const { message: other } of since === undefined ? [] : evidence.records.textings) {
    const before = receivedOf(other, evidence)
    if (before !== undefined && isFirst(other, before.at, before.index))
      return report(`was told the code of ${message.id}, but ${other.id} came first`)
  }
  const isEarlier = since === undefined ? received.index <= lengthBefore : received.at <= Date.parse(since)
  if (isEarlier || received.index > response.lengthAfter) report(`was told the code of ${message.id}, which did not come while it waited`)
}
