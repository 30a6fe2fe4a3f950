/** Checks every call: compares its answer with the holds, charges and refunds in the log. */
import { hash } from "node:crypto"
import { type Account, type Charge, Decisions, Lots } from "@millrace/core"
import { StreamName } from "@millrace/event-sourcing"
import { Cause, Exit, Option } from "effect"
import type { Evidence, Report, Reservation } from "../Evidence.ts"
import { isPlanned } from "../Faults.ts"
import { lastAt } from "../Histories.ts"
import * as JobEndpoints from "../JobEndpoints.ts"
import { type Call, haveSameKey, tagOf } from "../Records.ts"
import { BUG } from "../UpstreamFaults.ts"
import { checkAcceptance, checkJobAction } from "./JobAnswers.ts"

export const checkCalls = (evidence: Evidence, report: Report): void => {
  for (const call of evidence.calls) checkCall(call, evidence, (violation) => report(`${call.requestId}: ${violation}`))
}

const checkCall = (call: Call, evidence: Evidence, report: Report): void => {
  const { hungUp, intent, process, response } = call
  checkHolds(call, evidence, report)
  checkLatency(call, evidence, report)
  if (response === undefined) {
    if (evidence.survivors.has(process) && !hungUp) report("was never answered")
    return
  }
  const { answer } = response
  const isAction = JobEndpoints.actionOf(intent.operation) !== undefined
  if (isAction) checkJobAction(call, evidence, report)
  if (Exit.isFailure(answer)) return checkFailure(call, answer.cause, evidence, report)
  if (answer.value.job !== undefined) return checkAcceptance(call, evidence, report)
  if (!isAction) checkSuccess(call, answer.value, response.lengthAfter, evidence, report)
}

/** What was charged for the call and not refunded. */
const netOf = ({ requestId }: Call, { reservations }: Evidence): number => reservations.of(requestId).reduce((sum, { net }) => sum + net, 0)

const checkHolds = (call: Call, evidence: Evidence, report: Report): void => {
  const own = evidence.reservations.of(call.requestId)
  const successes = own.filter(({ success }) => success !== undefined)
  if (successes.length > 1) report(`was charged ${successes.length} times`)
  for (const { hold } of own) {
    if (hold.lateOf !== undefined && evidence.faults.late !== "charge") report("was charged late, but the host withholds late results")
    checkPrice(call, hold.priceVersion, evidence, report)
  }
  checkHoldsEnd(call, own, evidence, report)
}

/** A hold uses the newest price that had been published and was in force when the call began. The audit checks the amount. */
const checkPrice = (call: Call, priceVersion: number, { faults, prices }: Evidence, report: Report): void => {
  const newer = prices.slice(priceVersion)
  if (newer.some(({ effectiveAt, index }) => index <= call.lengthBefore && effectiveAt < call.startedAt - faults.skew))
    report(`holds at price version ${priceVersion}, which is not in force`)
}

/** While stores and hosts work, a call ends its hold before it ends itself. Its caller need not wait for the hold to expire. */
const checkHoldsEnd = (
  { ended, hungUp }: Call,
  own: ReadonlyArray<Reservation>,
  { faults, leading, recorder }: Evidence,
  report: Report
): void => {
  // A host may learn later than the caller that a link broke
  if (ended === undefined || faults.events + faults.hosts + faults.links > 0 || isPlanned(faults)) return
  const isFast = faults.delay <= 5 && faults.slow === 0
  // A call that was forwarded ends for its caller first, and then at its leader
  if (leading && hungUp) return
  for (const { hold, end } of own) {
    // An accepted job goes on; giving up a job that was not accepted may take longer than its caller waits
    const goesOn = hold.jobId !== undefined && (!isFast || recorder.job(hold.jobId).events[0]?.event._tag === "JobAccepted")
    const due = goesOn ? 0 : (hold.expiresAt ?? hold.acceptBy ?? 0)
    if (ended.at + faults.skew < due && (end === undefined || end.index > ended.lengthAfter)) report(`leaves ${hold.reservationId} held`)
  }
}

/** How long an upstream may ignore interruption after the timeout, and how long retries of stores may take: milliseconds. */
const UNINTERRUPTIBLE = 150_000
const RETRIES = 10_000

/** While nothing keeps a host from its stores, a call ends soon after its timeout. */
const checkLatency = (call: Call, { faults, longestTimeout, records, undisturbedSince }: Evidence, report: Report): void => {
  const { ended, requestId, startedAt } = call
  if (ended === undefined || startedAt < undisturbedSince) return
  const took = ended.at - startedAt
  // An upstream that ignores interruption pauses beyond the timeout, then takes up to a timeout, then works for up to one
  const late = records.ignoring.has(requestId) ? 2 * longestTimeout : 0
  if (took > longestTimeout + late + (faults.upstreams > 0 ? UNINTERRUPTIBLE : RETRIES))
    report(`took ${took} ms, but no operation may take longer than ${longestTimeout} ms`)
}

const checkSuccess = (call: Call, reply: Charge.Reply, lengthAfter: number, evidence: Evidence, report: Report): void => {
  const { intent, requestId } = call
  const { calls, records, reservations } = evidence
  const own = reservations.of(requestId)
  const [charge] = (reply.replayed ? reservations.of(reply.requestId) : own).filter(({ success }) => success !== undefined)
  if (reply.replayed && (netOf(call, evidence) !== 0 || own.some(({ success }) => success !== undefined)))
    report(`was answered the reply of ${reply.requestId}, and charged as well`)
  const asked = calls.find((other) => other.requestId === reply.requestId)?.intent
  if (asked?.accountId !== intent.accountId || asked.request !== intent.request)
    report(`was answered the reply of ${reply.requestId}, which is another request`)
  if (!reply.replayed && reply.requestId !== requestId) report(`was answered the reply of ${reply.requestId} as a new one`)
  const delivered = records.deliveries.filter(
    ({ data, requestId, reservationId }) =>
      data === reply.data && (requestId === reply.requestId || (requestId === undefined && reservationId === charge?.hold.reservationId))
  )
  if (delivered.length === 0) report("was answered data that no upstream delivered for it")
  if (isFree(reply, evidence)) return
  if (reply.billed === undefined) return report("was answered no cost")
  if (charge?.success === undefined) return report("was answered a success that is not in the ledger")
  const { end, hold, net, success } = charge
  if ((end?.index ?? 0) > lengthAfter) report("was answered a success before it was written")
  if (success.charged !== reply.billed.charged) report(`was answered a cost of ${reply.billed.charged}, but charged ${success.charged}`)
  if (net !== success.charged) report(`was answered a success, but refunded ${success.charged - net}`)
  if (success.replyHash !== hash("sha256", reply.data, "base64url")) report("was answered another reply than the ledger has")
  if (!delivered.some(({ quantity }) => success.quantity === (quantity ?? hold.quantity)))
    report(`was charged for ${success.quantity} units that no upstream delivered`)
  if (intent.maxCost !== undefined && !reply.replayed && hold.amount > intent.maxCost)
    report(`held ${hold.amount}, more than its limit of ${intent.maxCost}`)
}

/** Whether the call cost nothing and held nothing. */
export const isFree = ({ billed, requestId }: Charge.Reply, { reservations }: Evidence): boolean =>
  (billed?.charged ?? 0) === 0 && reservations.of(requestId).length === 0

const checkFailure = (call: Call, cause: Cause.Cause<{ readonly _tag: string }>, evidence: Evidence, report: Report): void => {
  const { hungUp, intent, process, requestId } = call
  const survived = evidence.survivors.has(process)
  const net = netOf(call, evidence)
  const tag = tagOf(Exit.failCause(cause))
  switch (tag) {
    case "Disconnected":
      return
    case "OutcomeUnknown": {
      // Its host makes it free; if the host dies, another does, provided that the promise was recorded
      const isPromised = evidence.reservations.of(requestId).some(({ hold }) => evidence.records.promised.has(hold.reservationId))
      if (intent.key === undefined && net !== 0 && (survived || isPromised))
        report(`has an unknown outcome and no key, but is charged ${net}`)
      return
    }
    case undefined:
      if (Cause.hasInterruptsOnly(cause)) return hungUp || !survived ? undefined : report("was interrupted, but its caller did not hang up")
      if (!isInjectedDefect(cause)) report(`died: ${Cause.pretty(cause)}`)
      break
    case "ReplyUnavailable":
      if (!isReplyExpired(call, evidence)) report("was answered that its reply is gone, but it must be kept")
      break
    case "KeyReused":
      if (!isKeyReused(call, evidence)) report("was answered that its key belongs to another request, but there is none")
      break
    case "InFlight":
      if (!isInFlight(call, evidence)) report("was answered that another call runs under its key, but none did")
      break
    case "InsufficientCredits":
      checkInsufficient(call, evidence, report)
      break
  }
  if (net !== 0) report(`failed with ${tag ?? "a defect"}, but is charged ${net}`)
}

const isInjectedDefect = (cause: Cause.Cause<unknown>): boolean => {
  const error = Cause.squash(cause)
  if (error instanceof Decisions.ChargeExceedsHold) return true
  // Of a call that ran at another host, the text is told
  return error instanceof Error && (error.message.includes(BUG) || error.message.includes("ChargeExceedsHold"))
}

/** How long a reply can be replayed, milliseconds. */
const REPLY_LIFETIME = 24 * 3_600_000

/** A job under this key took longer than its reply is kept, and was charged by then. */
const isReplyExpired = ({ intent, response }: Call, { calls, faults, reservations }: Evidence): boolean =>
  calls
    .filter((other) => haveSameKey(other.intent, intent))
    .flatMap(({ requestId }) => reservations.of(requestId))
    .some(({ at, end, hold, success }) => {
      if (hold.jobId === undefined || success === undefined || end === undefined) return false
      return end.at - at > REPLY_LIFETIME - faults.skew && end.index <= (response?.lengthAfter ?? 0)
    })

const isKeyReused = ({ intent, response }: Call, { calls }: Evidence): boolean =>
  calls.some(
    (other) => haveSameKey(other.intent, intent) && other.intent.request !== intent.request && other.startedAt <= (response?.at ?? 0)
  )

/** How much longer than its call's timeout a free call's claim on its key lasts, milliseconds. */
const CLAIM_MARGIN = 30_000
/** How long a host may be paused before it claims a key and dies, milliseconds. */
const PAUSED = 10 * 60_000

/**
 * Whether a free call had the key at some instant between question and answer. It holds nothing: its claim on the key is not in the log, and
 * outlives a host that dies.
 */
const isClaimed = ({ intent, requestId, response, startedAt: askedAt }: Call, { calls, faults, longestTimeout }: Evidence): boolean =>
  calls.some(({ ended, intent: other, requestId: otherId, startedAt }) => {
    if (otherId === requestId || !haveSameKey(other, intent) || startedAt > (response?.at ?? 0)) return false
    return askedAt - (ended?.at ?? startedAt + PAUSED) <= longestTimeout + CLAIM_MARGIN + faults.skew
  })

const isInFlight = (call: Call, evidence: Evidence): boolean => {
  const { lengthBefore, response } = call
  const { reservations } = evidence
  if (response === undefined) return false
  if (isClaimed(call, evidence)) return true
  const error = Option.getOrUndefined(Exit.findErrorOption(response.answer))
  const running = error?._tag === "InFlight" ? reservations.byId.get(error.reservationId) : undefined
  return running !== undefined && running.index <= response.lengthAfter && (running.end === undefined || running.end.index > lengthBefore)
}

/** The balance that a refusal names was the balance at some instant between question and answer. */
const checkInsufficient = (call: Call, { faults, recorder }: Evidence, report: Report): void => {
  const { intent, lengthBefore, response, startedAt } = call
  const error = response && Option.getOrUndefined(Exit.findErrorOption(response.answer))
  if (response === undefined || error?._tag !== "InsufficientCredits") return
  const events = recorder.accountEvents.filter(
    ({ stream }) => StreamName.isStreamName(stream) && StreamName.id(stream) === intent.accountId
  )
  const end = response.at + faults.skew
  for (let revision = lastAt(events, lengthBefore); revision <= lastAt(events, response.lengthAfter); revision++) {
    const state = recorder.stateAt(intent.accountId, revision)
    const holds = [...state.purse.holds].map(([, hold]) => hold)
    const due = [...state.purse.lots, ...holds].map(({ expiresAt }) => expiresAt ?? Number.NaN)
    const instants = [startedAt, end, ...due.filter((at) => at >= startedAt && at <= end)]
    // The ledger never decides at a time before its last event
    const decidedAt = events[revision]?.at ?? 0
    if (instants.some((at) => availableAt(state, Math.max(at, decidedAt)) === error.available)) return
  }
  report(`was answered that ${error.available} are available, which was never so`)
}

const availableAt = (state: Account.Account, at: number): number => Lots.available(Decisions.asOf(state, at).purse.lots, at)

/** How long a success is certainly replayed, milliseconds. */
const REPLAYED = 24 * 3_600_000 - 60_000

/** Idempotency: all answers under one key, within a day, are one success, byte for byte. */
export const checkKeys = (evidence: Evidence, report: Report): void => {
  const replies = new Map<string, { readonly at: number; readonly data: string; readonly requestId: string }>()
  for (const { intent, requestId, response } of evidence.calls) {
    if (intent.key === undefined || response === undefined || Exit.isFailure(response.answer)) continue
    const { data, requestId: original } = response.answer.value
    if (isFree(response.answer.value, evidence)) continue
    const name = `${intent.accountId} ${intent.key}`
    const before = replies.get(name)
    if (before !== undefined && Math.abs(response.at - before.at) < REPLAYED && (before.data !== data || before.requestId !== original))
      report(`${requestId}: the key ${intent.key} succeeded again, as ${original} after ${before.requestId}`)
    if (before === undefined || before.requestId !== original) replies.set(name, { at: response.at, data, requestId: original })
  }
}
