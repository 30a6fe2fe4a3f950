/** Checks the attempts at each job: they were claimed, resumed from what was recorded, kept to their leases, and ended with the job. */
import { type Evidence, isEnd, type Report } from "../Evidence.ts"
import type { JobHistory, RecordedJobEvent } from "../LogRecorder.ts"
import type { AttemptRecord } from "../Records.ts"

/** The longest pause of a runner before it tries again, milliseconds. */
export const LONGEST_BACK_OFF = 60_000
/** An undisturbed host ends a job so long after its deadline at the latest, milliseconds. */
const OVERDUE = 10_000
/** What happens at once may take so long, milliseconds. */
const AT_ONCE = 1_000

export const checkAttempts = (job: JobHistory, evidence: Evidence, report: Report): void => {
  const attempts = evidence.attemptsAt(job.jobId)
  checkClaims(job, attempts, evidence, report)
  for (const attempt of attempts) checkResumption(attempt, attempts, report)
  checkRetries(job, report)
  const since = evidence.undisturbedSince
  for (const attempt of attempts) checkStop(attempt, job.events, since, report)
  checkDeadline(job, since, report)
  checkTakeovers(job, since, report)
}

/** Each attempt was claimed first, under its own number, and got the job's input. */
const checkClaims = ({ events }: JobHistory, attempts: ReadonlyArray<AttemptRecord>, evidence: Evidence, report: Report): void => {
  const [first] = events
  const accepted = first?.event._tag === "JobAccepted" ? first.event : undefined
  const asked = accepted && evidence.call(accepted.requestId)?.intent.input
  const seen = new Set<number>()
  for (const { accountId, attempt, input, lengthBefore, operation } of attempts) {
    const claim = events.find(({ event }) => event._tag === "JobStarted" && event.attempt === attempt)
    if (claim === undefined || claim.index > lengthBefore) report(`attempt ${attempt} works before it was claimed`)
    if (seen.has(attempt)) report(`attempt ${attempt} works twice`)
    seen.add(attempt)
    if (accepted?.accountId !== accountId || accepted.operation !== operation) report(`attempt ${attempt} works at another job`)
    if (asked !== undefined && !includes(input, asked)) report(`attempt ${attempt} got another input than the call had`)
  }
  if (seen.size > 0 && accepted === undefined) report("was attempted, but never accepted")
}

/** Whether the recorded input has every field of the call's input; an input may have defaults besides. */
const includes = (text: string, asked: object): boolean => {
  const kept: unknown = JSON.parse(text)
  return Object.entries(asked).every(
    ([name, value]) =>
      typeof value === "object" || (typeof kept === "object" && kept !== null && Reflect.get(kept, name) === value) || value === undefined
  )
}

/** An attempt resumes from the last checkpoint that was confirmed, or from a later one that was recorded without being confirmed. */
const checkResumption = ({ attempt, checkpoint }: AttemptRecord, attempts: ReadonlyArray<AttemptRecord>, report: Report): void => {
  const earlier = attempts.filter((before) => before.attempt < attempt).flatMap(({ checkpoints }) => checkpoints)
  const durable = earlier.findLastIndex(({ confirmed, text }) => confirmed && text !== undefined)
  const possible = earlier.slice(Math.max(0, durable)).map(({ text }) => text)
  if (!possible.includes(checkpoint) && !(checkpoint === undefined && durable < 0))
    report(`attempt ${attempt} resumes from ${checkpoint}, but ${earlier[durable]?.text} was recorded`)
}

const checkRetries = ({ events }: JobHistory, report: Report): void => {
  for (const { at, event } of events) {
    if (event._tag !== "JobReleased" || event.failure === undefined) continue
    if (event.failure !== "UpstreamUnavailable") report(`is retried after ${event.failure}`)
    if (event.startFrom > at + LONGEST_BACK_OFF) report(`is retried after ${event.startFrom - at} ms`)
  }
}

/** An attempt stops before its lease ends, for another may begin then; and while hosts are undisturbed, as soon as its job ends. */
const checkStop = (record: AttemptRecord, events: ReadonlyArray<RecordedJobEvent>, undisturbedSince: number, report: Report): void => {
  const { attempt, isUninterruptible, stopped } = record
  if (stopped === undefined || isUninterruptible) return
  const lease = events.findLast(({ event }) => "leaseUntil" in event && event.attempt === attempt)?.event
  const goesOnAfter = (at: number) => stopped.at > Math.max(at, stopped.unhinderedSince) + AT_ONCE
  if (lease !== undefined && "leaseUntil" in lease && goesOnAfter(lease.leaseUntil)) report(`attempt ${attempt} goes on after its lease`)
  const end = events.find(isEnd)
  if (end !== undefined && end.at >= undisturbedSince && goesOnAfter(end.at)) report(`attempt ${attempt} goes on after ${end.event._tag}`)
}

const checkDeadline = ({ events }: JobHistory, undisturbedSince: number, report: Report): void => {
  const [first] = events
  const end = events.find(isEnd)
  if (first?.event._tag !== "JobAccepted" || end === undefined) return
  if (end.at > Math.max(first.event.deadline, undisturbedSince) + OVERDUE) report("outlived its deadline")
}

/** An undisturbed runner keeps its lease: no other runner takes its job over, and no host gives the job up as abandoned. */
const checkTakeovers = ({ events }: JobHistory, undisturbedSince: number, report: Report): void => {
  let running: RecordedJobEvent | undefined
  for (const recorded of events) {
    const { event } = recorded
    const isKept = running !== undefined && running.at >= undisturbedSince
    if (event._tag === "JobStarted" && isKept) report("was taken over from a healthy runner")
    if (event._tag === "JobFailed" && event.failure === "Abandoned" && isKept)
      report("was given up as abandoned while its runner was healthy")
    if (event._tag === "JobStarted") running = recorded
    else if (event._tag !== "JobLeaseExtended" && event._tag !== "JobProgressed") running = undefined
  }
}
