/** Checks every job in the log: a caller asked for it, it ended for a reason, was settled because of that, and was purged in time. */
import { Job } from "@millrace/core"
import { Exit } from "effect"
import { type Evidence, isEnd, type JobActionCall, type Report } from "../Evidence.ts"
import type { JobHistory, RecordedJobEvent } from "../LogRecorder.ts"
import type { AttemptRecord, Call } from "../Records.ts"
import { isCancelling, wasCancelled } from "./JobAnswers.ts"
import { checkAttempts, LONGEST_BACK_OFF } from "./JobAttempts.ts"

export const checkJobs = (evidence: Evidence, report: Report): void => {
  const { records, recorder, reservations } = evidence
  for (const job of recorder.jobs.values()) checkJob(job, evidence, (violation) => report(`${job.jobId}: ${violation}`))
  for (const { jobId } of records.attempts) if (!recorder.jobs.has(jobId)) report(`${jobId} was attempted, but never accepted`)
  for (const { hold, end } of reservations.byId.values())
    if (hold.jobId !== undefined && !recorder.jobs.has(hold.jobId) && end !== undefined)
      report(`${hold.jobId}: its hold has ended, but it was neither accepted nor refused`)
}

const checkJob = (job: JobHistory, evidence: Evidence, report: Report): void => {
  const actions = evidence.actionsOn(job.jobId)
  checkBeginning(job, evidence, report)
  checkAttempts(job, evidence, report)
  checkEnding(job, evidence, report)
  checkPurge(job, actions, evidence, report)
  const cancelled = actions.filter(({ action, call }) => action === "cancel" && wasCancelled(call))
  if (cancelled.length > 1) report(`${cancelled.length} callers were answered that they cancelled it`)
}

const checkBeginning = ({ events, jobId }: JobHistory, evidence: Evidence, report: Report): void => {
  const [first] = events
  if (first?.event._tag === "JobRefused") {
    if (events.length > 1) report("goes on after it was refused")
    if (Job.idOf(first.event.reservationId) !== jobId) report("was refused for the hold of another job")
    return
  }
  if (first?.event._tag !== "JobAccepted") return report("was never accepted")
  const { accountId, operation, requestId } = first.event
  const creation = evidence.call(requestId)
  if (creation?.intent.accountId !== accountId || creation.intent.operation !== operation) report(`is not what ${requestId} asked for`)
}

/** It ended for a reason; then its account was settled because of that. The invariants check that both agree. */
const checkEnding = (job: JobHistory, evidence: Evidence, report: Report): void => {
  const [first] = job.events
  const end = first?.event._tag === "JobRefused" ? first : job.events.find(isEnd)
  if (first === undefined || end === undefined) return report("has no end")
  const accepted = first.event._tag === "JobAccepted" ? first.event : undefined
  const creation = accepted && evidence.call(accepted.requestId)
  const { event } = end
  const attempt = "attempt" in event ? evidence.attemptsAt(job.jobId).find((one) => one.attempt === event.attempt) : undefined
  if (event._tag === "JobSucceeded") checkResult(event, accepted, attempt, report)
  if (event._tag === "JobFailed" && accepted !== undefined) checkFailure(end, event, accepted, job.events, attempt, report)
  if (event._tag === "JobCancelled") {
    const isWanted = evidence.actionsOn(job.jobId).some(({ action, call }) => action === "cancel" && call.lengthBefore < end.index)
    if (!isWanted && wasAccepted(creation)) report("was cancelled, but no caller asked for it")
  }
  const reservationId = "reservationId" in first.event ? first.event.reservationId : null
  const { end: settlement, net, success } = evidence.reservations.byId.get(reservationId ?? "") ?? {}
  const cause = settlement?.metadata["$causationId"]
  if (settlement !== undefined && cause !== `job-${job.jobId}@${end.revision}`) report(`its hold ended because of ${cause}`)
  // A caller that could not be answered gets its credits back
  if (success !== undefined && net !== success.charged && wasAccepted(creation)) report(`succeeded, but only ${net} remain charged`)
}

/** Whether the call was answered that the job exists. */
const wasAccepted = (creation: Call | undefined): boolean => creation?.response !== undefined && Exit.isSuccess(creation.response.answer)

const checkResult = (
  event: Job.EventOf<"JobSucceeded">,
  accepted: Job.EventOf<"JobAccepted"> | undefined,
  { delivered, rejectedAs }: Partial<AttemptRecord> = {},
  report: Report
): void => {
  if (delivered === undefined || rejectedAs !== undefined) report(`succeeded by attempt ${event.attempt}, which delivered nothing`)
  else if (accepted !== undefined && event.quantity !== (delivered.quantity ?? accepted.quantity))
    report(`succeeded with ${event.quantity} units, but ${delivered.quantity} were delivered`)
  else if (String(event.artifacts.map(({ id }) => id)) !== String(delivered.artifacts)) report("succeeded with other files")
}

/** A job fails for the reason that its last attempt ended with, and not before it must. */
const checkFailure = (
  { at, revision }: RecordedJobEvent,
  { attempt, failure }: Job.EventOf<"JobFailed">,
  { attempts: most, deadline }: Job.EventOf<"JobAccepted">,
  events: ReadonlyArray<RecordedJobEvent>,
  record: AttemptRecord | undefined,
  report: Report
): void => {
  const before = events.slice(0, revision)
  const handedBack = before.filter(({ event }) => event._tag === "JobReleased" && event.failure === undefined).length
  const tries = before.filter(({ event }) => event._tag === "JobStarted").length - handedBack
  if (tries > most) report(`was tried ${tries} times, but ${most} are allowed`)
  switch (failure) {
    case "TooLate":
      if (at < deadline) report("failed as too late before its deadline")
      return
    case "Abandoned": {
      const lease = before.findLast(({ event }) => "leaseUntil" in event)?.event
      if (tries < most || (lease !== undefined && "leaseUntil" in lease && lease.leaseUntil > at)) report("was abandoned too early")
      return
    }
    case "UpstreamUnavailable":
      // Timeouts, an open circuit and unavailable stores count as well: they may pass, so the job is tried as often as it may be
      if (tries < most && at + LONGEST_BACK_OFF < deadline) report(`failed after ${tries} of ${most} attempts`)
      return
    default: {
      const outcome = record?.rejectedAs ?? record?.outcome
      if (outcome !== failure) report(`failed as ${failure}, but attempt ${attempt} ended with ${outcome}`)
    }
  }
}

/** Recovery purges a job so long after its time at the latest, once faults have ended: milliseconds. */
const PURGED_WITHIN = 25 * 60_000

/** The data of a job is kept until its retention ends or a caller cancels it, and no longer. */
const checkPurge = (job: JobHistory, actions: ReadonlyArray<JobActionCall>, { end, faults, vaultKeys }: Evidence, report: Report): void => {
  const { events, jobId, states } = job
  const purge = events.find(({ event }) => event._tag === "JobPurged")
  const last = states.at(-1)
  if (last === undefined) return
  const isUnreadable = !vaultKeys.has(`job:${jobId}`)
  if ((purge !== undefined || last.status === "refused") && !isUnreadable) report("was purged, but can still be read")
  if (!Job.isEnded(last)) return
  if (purge === undefined) {
    if (end - last.retainUntil > PURGED_WITHIN) report(`was to be purged by ${last.retainUntil}`)
    else if (isUnreadable && end + faults.skew < last.retainUntil && !actions.some(({ call }) => isCancelling(call, jobId)))
      report("was not purged, but cannot be read any more")
    return
  }
  const isWanted = actions.some(({ action, call }) => action === "cancel" && call.lengthBefore < purge.index)
  if (purge.at < last.retainUntil && !isWanted) report(`was purged at ${purge.at}, before ${last.retainUntil}`)
}
