/** Checks the answers to callers about jobs: acceptances, views, cancellations, ends and files. */
import { type Charge, Job } from "@millrace/core"
import { Exit, Result, Schema } from "effect"
import { type Evidence, isEnd, jobIdOf, type Report, type Reservation, statesBetween } from "../Evidence.ts"
import * as JobEndpoints from "../JobEndpoints.ts"
import type { JobHistory } from "../LogRecorder.ts"
import { type Call, type JobObservation, tagOf } from "../Records.ts"

/** The call became a job, or was answered the job of an earlier call under its key. */
export const checkAcceptance = (call: Call, evidence: Evidence, report: Report): void => {
  const { intent, requestId, response } = call
  if (response === undefined || Exit.isFailure(response.answer)) return
  const { data, job, replayed, requestId: original } = response.answer.value
  if (job === undefined) return
  const [first] = evidence.recorder.job(job.id).events
  if (first?.event._tag !== "JobAccepted") return report(`was answered ${job.id}, which was not accepted`)
  if (first.index > response.lengthAfter) report(`was answered ${job.id} before it was accepted`)
  if (first.event.requestId !== original) report(`was answered ${job.id} as the job of ${original}`)
  if (!replayed && original !== requestId) report(`was answered the job of ${original} as a new one`)
  const asked = evidence.call(original)?.intent
  if (asked?.accountId !== intent.accountId || asked.request !== intent.request)
    report(`was answered the job of ${original}, which is another request`)
  if (replayed && evidence.reservations.of(requestId).some(({ net }) => net !== 0))
    report(`was answered the job of ${original}, and charged as well`)
  if (!data.includes(job.id)) report(`was answered another job than ${job.id}`)
  checkQuotedCost(call, response.answer.value, evidence.reservations.byId.get(first.event.reservationId ?? ""), report)
}

const checkQuotedCost = (call: Call, { billed, replayed }: Charge.Reply, reservation: Reservation | undefined, report: Report): void => {
  const { maxCost } = call.intent
  if (reservation === undefined) {
    if (billed !== undefined && billed.charged !== 0) report(`was answered a cost of ${billed.charged}, but its job is free`)
    return
  }
  const { hold, success } = reservation
  if (billed === undefined) return report("was answered no cost")
  if (billed.charged !== 0 && (!replayed || billed.charged !== success?.charged)) report(`was answered a cost of ${billed.charged}`)
  if (maxCost !== undefined && !replayed && hold.amount > maxCost) report(`held ${hold.amount}, more than its limit of ${maxCost}`)
}

/** The answer of a call that read, cancelled or downloaded a job. */
export const checkJobAction = (call: Call, evidence: Evidence, report: Report): void => {
  const { intent, lengthBefore, response } = call
  const action = JobEndpoints.actionOf(intent.operation)
  if (response === undefined || action === undefined) return
  const { answer, at, lengthAfter } = response
  const jobId = jobIdOf(call)
  const job = evidence.recorder.job(jobId)
  const states = statesBetween(job, lengthBefore, lengthAfter)
  if (Exit.isFailure(answer)) {
    const question = { jobId, accountId: intent.accountId, lengthBefore, lengthAfter, at }
    if (tagOf(answer) === "NotFound" && !mayBeNotFound(question, evidence) && !(action === "download" && states.some(hasNoFile)))
      report(`was answered that ${jobId} does not exist`)
    return
  }
  const owned = states.find((state) => "accepted" in state)
  if (owned !== undefined && "accepted" in owned && owned.accepted.accountId !== intent.accountId)
    return report(`was shown ${jobId} of another account`)
  switch (action) {
    case "cancel":
      return checkCancellation(call, lengthAfter, job, report)
    case "download":
      return checkDownload(answer.value.data, states, job, evidence, report)
    case "read":
      return checkView(call, answer.value.data, states, job, evidence, report)
  }
}

const checkCancellation = (call: Call, lengthAfter: number, { events, jobId }: JobHistory, report: Report): void => {
  const isCancelled = wasCancelled(call)
  const [end] = events.filter(isEnd)
  if (end === undefined || end.index > lengthAfter) return report(`was answered that ${jobId} is over, but it was not`)
  if (isCancelled !== (end.event._tag === "JobCancelled"))
    return report(`was answered that ${jobId} was ${isCancelled ? "" : "not "}cancelled, but it ended as ${end.event._tag}`)
  if (isCancelled && end.index <= call.lengthBefore) report(`was answered that it cancelled ${jobId}, which was cancelled before`)
  const purge = events.find(({ event }) => event._tag === "JobPurged")
  if (!isCancelled && (purge === undefined || purge.index > lengthAfter)) report(`was answered that ${jobId} is purged, but it is not`)
}

const checkDownload = (data: string, states: ReadonlyArray<Job.Job>, job: JobHistory, evidence: Evidence, report: Report): void => {
  const { tag } = decodeFile(data)
  const wasThere = states.some((state) => state.status === "succeeded" && state.artifacts[0]?.id === tag && !state.purged)
  if (wasThere) checkPaid(job, evidence, report)
  else report(`was answered a file of ${job.jobId} that did not exist`)
}

const checkView = (
  { startedAt }: Call,
  data: string,
  states: ReadonlyArray<Job.Job>,
  job: JobHistory,
  evidence: Evidence,
  report: Report
): void => {
  const view = decodeView(data)
  const matching = states.filter((state) => isViewOf(state, view, job, evidence))
  if (matching.length === 0) return report(`was shown ${job.jobId} as it never was: ${data}`)
  if (matching.every((state) => "retainUntil" in state && state.retainUntil <= startedAt))
    report(`was shown ${job.jobId}, but its time was over`)
  if (view.status === "succeeded") checkPaid(job, evidence, report)
}

const decodeView = Schema.decodeUnknownSync(Schema.fromJsonString(JobEndpoints.JobView))
const decodeFile = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Struct({ tag: Schema.String })))
const decodeCancelled = Schema.decodeUnknownResult(Schema.fromJsonString(Schema.Struct({ cancelled: Schema.Boolean })))

/** Whether the caller was answered that it cancelled the job. */
export const wasCancelled = ({ response }: Call): boolean => {
  if (response === undefined || Exit.isFailure(response.answer)) return false
  const decoded = decodeCancelled(response.answer.value.data)
  return Result.isSuccess(decoded) && decoded.success.cancelled
}

/** Whether a caller cancels the job, and was not answered before the log had so many events that the job is gone. */
export const isCancelling = (call: Call, jobId: string, length = Number.POSITIVE_INFINITY): boolean => {
  const { intent, response } = call
  if (JobEndpoints.actionOf(intent.operation) !== "cancel" || jobIdOf(call) !== jobId) return false
  return (
    response === undefined || response.lengthAfter >= length || (Exit.isFailure(response.answer) && tagOf(response.answer) !== "NotFound")
  )
}

/** Whether the view shows the job in this state. */
const isViewOf = (state: Job.Job, view: JobEndpoints.JobView, { jobId }: JobHistory, evidence: Evidence): boolean => {
  if (!("accepted" in state) || state.status !== view.status || view.id !== jobId) return false
  const { accepted, attempt, checkpoint, percent } = state
  if (view.operation !== accepted.operation || view.quantity !== accepted.quantity || view.percent !== percent) return false
  const attempts = evidence.attemptsAt(jobId).filter((one) => one.attempt <= attempt)
  const isRecorded = attempts.some(({ checkpoints }) => checkpoints.some(({ text }) => text === view.checkpoint))
  if (checkpoint === undefined ? view.checkpoint !== null : !isRecorded) return false
  if (state.status === "failed") return view.failure === state.failure && view.result === null
  if (state.status !== "succeeded") return view.result === null && view.artifacts.length === 0 && view.failure === null
  const delivered = attempts.find((one) => one.attempt === attempt)?.delivered
  return view.result === delivered?.data && String(view.artifacts) === String(state.artifacts.map(({ id }) => id)) && !state.purged
}

const hasNoFile = (state: Job.Job): boolean => state.status !== "succeeded" || state.artifacts.length === 0

/** `NotFound` is true for a job that does not exist, belongs to another account, is over its time, or is being cancelled. */
const mayBeNotFound = (
  { accountId, at, jobId, lengthAfter, lengthBefore }: Pick<JobObservation, "jobId" | "accountId" | "lengthBefore" | "lengthAfter" | "at">,
  { calls, faults, recorder }: Evidence
): boolean =>
  statesBetween(recorder.job(jobId), lengthBefore, lengthAfter).some(
    (state) => !Job.isReadable(state, at + faults.skew) || state.accepted.accountId !== accountId
  ) || calls.some((call) => isCancelling(call, jobId, lengthBefore) && call.lengthBefore <= lengthAfter)

/** A caller that read a result was charged for it, and the charge was not refunded. */
const checkPaid = ({ events, jobId }: JobHistory, { reservations }: Evidence, report: Report): void => {
  const [first] = events
  if (first?.event._tag !== "JobAccepted" || first.event.reservationId === null) return
  const { net, success } = reservations.byId.get(first.event.reservationId) ?? {}
  if (success === undefined || net !== success.charged) report(`has the result of ${jobId}, but was not charged for it`)
}

/** Errors that may break off a wait or a download at any time. */
const TRANSIENT = new Set(["UpstreamUnavailable", "Disconnected", "BlobUnavailable", "StateUnavailable", "SubjectDestroyed"])

/** Checks the answers to callers that waited for a job or downloaded its file. */
export const checkObservations = (evidence: Evidence, report: Report): void => {
  for (const observation of evidence.records.observations) {
    const { accountId, jobId, kind } = observation
    const prefix = `${accountId} ${kind === "waits" ? "waited for" : "downloaded"} ${jobId}, and `
    checkObservation(observation, evidence, (violation) => report(prefix + violation))
  }
}

const checkObservation = (observation: JobObservation, evidence: Evidence, report: Report): void => {
  const { answer, failed, jobId, kind, lengthAfter, lengthBefore, process } = observation
  const job = evidence.recorder.job(jobId)
  if (failed) {
    // A file that is purged between its key and its bytes breaks off
    if (answer === "NotFound" || answer === "BlobNotFound") {
      const hadNoFile = kind === "fetches" && statesBetween(job, lengthBefore, lengthAfter).some(hasNoFile)
      if (!hadNoFile && !mayBeNotFound(observation, evidence)) report("was answered that it does not exist")
    } else if (!TRANSIENT.has(answer) && !(answer === "died" && !evidence.survivors.has(process))) report(`was answered ${answer}`)
    return
  }
  const [end] = job.events.filter(isEnd)
  if (kind === "fetches") {
    if (end?.event._tag === "JobSucceeded" && end.index <= lengthAfter) checkPaid(job, evidence, report)
    else report("was given a file before it had succeeded")
  } else if (answer === "ended" && (end === undefined || end.index > lengthAfter)) report("was answered an end that it did not have")
  else if (answer === "open" && end !== undefined && end.index <= lengthBefore) report("was answered that it has not ended")
}
