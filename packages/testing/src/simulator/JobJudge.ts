/** Holds what callers were told of jobs, and what was charged for them, against what is in the log and what upstreams did. */
import { type EventOf, Job } from "@millrace/core"
import { Exit, Result, Schema } from "effect"
import type { Call } from "./Callers.ts"
import { tagOf } from "./Callers.ts"
import * as Desk from "./Desk.ts"
import type { Faults } from "./Faults.ts"
import type { Attempted } from "./JobUpstream.ts"
import type { Evidence, Ledgers } from "./Judge.ts"
import type { JobArrival, SeenJob } from "./Witness.ts"

type Report = (what: string) => void

/** After that long without faults nothing is left of them: a host that stood still has gone on, attempts that hung are over. */
const AFTERMATH = 5 * 60_000
/** By then after its time a job has been purged, in the calm: sweeps, and their longest pause. */
const PURGED = 25 * 60_000

// what hosts log

interface Circumstances {
  readonly faults: Faults
  readonly calm: Evidence["calm"]
  readonly attempts: ReadonlyArray<Attempted>
  readonly now: number
}

/** Whether a host may log this warning under these faults: a lost lease, a store that did not answer, an operation with a bug. */
export const isExpected = (message: string, { faults, calm, attempts, now }: Circumstances): boolean => {
  const { appends, clocks, crash, delay, events, hosts, leaps, slow, states } = faults
  const ofStores = events > 0 || states > 0 || slow > 0 || hosts > 0 || leaps > 0 || appends !== undefined || crash !== undefined
  const isOver = calm !== undefined && now - calm.at > AFTERMATH
  const failed = /^Job (?<jobId>job_\w+) failed/u.exec(message)?.groups?.["jobId"]
  if (failed !== undefined)
    return attempts.some(({ came, jobId, spoilt }) => jobId === failed && (came === "Defect" || spoilt === "Defect"))
  if (message.startsWith("No snapshot of ")) return !isOver && ofStores
  // It was cancelled, and its key destroyed, as it succeeded
  if (/^What became of a job was not recorded SubjectDestroyed/u.test(message)) return true
  if (/^(?:A job's lease was lost|A job could not be claimed|What became of a job was not recorded)/u.test(message))
    return !isOver && (ofStores || (clocks > 0 && delay > 0))
  return false
}

// what the log says of each job

const isEnd = ({ event: { _tag } }: JobArrival): boolean => _tag === "JobSucceeded" || _tag === "JobFailed" || _tag === "JobCancelled"

/** Acts on each job, in the order in which callers began them. */
const actsOf = (calls: ReadonlyArray<Call>): ReadonlyMap<string, ReadonlyArray<{ readonly act: Desk.Act; readonly call: Call }>> =>
  Map.groupBy(
    calls.flatMap((call) => {
      const act = Desk.actOf(call.intent.operation)
      return act === undefined ? [] : [{ act, call }]
    }),
    ({ call }) => jobOf(call)
  )

const jobOf = ({ intent: { input } }: Call): string => String("job" in input ? input["job"] : "")

export const judgeJobs = (evidence: Evidence, ledgers: Ledgers, report: Report): void => {
  const { attempts, calls, witness } = evidence
  const acts = actsOf(calls)
  const byJob = Map.groupBy(attempts, ({ jobId }) => jobId)
  for (const job of witness.jobs.values()) {
    const wrong: Report = (what) => report(`${job.jobId}: ${what}`)
    const asked = acts.get(job.jobId) ?? []
    began(job, evidence, ledgers, wrong)
    worked(job, byJob.get(job.jobId) ?? [], evidence, wrong)
    ended(job, byJob.get(job.jobId) ?? [], asked, evidence, ledgers, wrong)
    purged(job, asked, evidence, wrong)
    const told = asked.filter(({ act, call }) => act === "cancel" && wasCancelled(call))
    if (told.length > 1) wrong(`${told.length} callers were told that they cancelled it`)
  }
  for (const { jobId } of attempts) if (!witness.jobs.has(jobId)) report(`${jobId} is worked at, and was never accepted`)
  for (const { hold, end } of ledgers.byId.values()) {
    if (hold.jobId === undefined) continue
    if (!witness.jobs.has(hold.jobId) && end !== undefined) report(`${hold.jobId}: its hold has ended, and it was not even refused`)
  }
}

const began = ({ arrivals, jobId }: SeenJob, { calls }: Evidence, ledgers: Ledgers, wrong: Report): void => {
  const [first] = arrivals
  if (first?.event._tag === "JobRefused") {
    if (arrivals.length > 1) wrong("goes on after it was refused")
    if (Job.idOf(first.event.reservationId) !== jobId) wrong("is refused for another's hold")
    return
  }
  if (first?.event._tag !== "JobAccepted") return wrong("was never accepted")
  const { accountId, operation, quantity, requestId, reservationId } = first.event
  const call = calls.find((call) => call.requestId === requestId)
  if (call?.intent.accountId !== accountId || call.intent.operation !== operation) wrong(`is not what ${requestId} asked for`)
  if (reservationId === null) return
  const known = ledgers.byId.get(reservationId)
  if (known === undefined || known.place > first.place) return wrong("was accepted before anything was held")
  const { hold, end } = known
  if (hold.jobId !== jobId || hold.quantity !== quantity || hold.operation !== operation) wrong("is not what is held for")
  if (end !== undefined && end.place < first.place) wrong("was accepted after its hold had ended")
}

/** Each attempt was claimed, by its number; and knows what was recorded before it. */
const worked = ({ arrivals }: SeenJob, attempts: ReadonlyArray<Attempted>, { calls, calm, faults }: Evidence, wrong: Report): void => {
  const [first] = arrivals
  const accepted = first?.event._tag === "JobAccepted" ? first.event : undefined
  const asked = calls.find(({ requestId }) => requestId === accepted?.requestId)?.intent.input
  const seen = new Set<number>()
  for (const { attempt, checkpoint, input, operation, accountId, place } of attempts) {
    const claim = arrivals.find(({ event }) => event._tag === "JobStarted" && event.attempt === attempt)
    if (claim === undefined || claim.place > place) wrong(`attempt ${attempt} works before it was claimed`)
    if (seen.has(attempt)) wrong(`attempt ${attempt} works twice`)
    seen.add(attempt)
    if (accepted?.accountId !== accountId || accepted.operation !== operation) wrong(`attempt ${attempt} works at something else`)
    if (asked !== undefined && !includes(input, asked)) wrong(`attempt ${attempt} was given another input than was asked`)
    // What an attempt was told to be durable, or something later
    const marks = attempts.filter((before) => before.attempt < attempt).flatMap((before) => before.marks)
    const durable = marks.findLastIndex(({ answered, text }) => answered && text !== undefined)
    const possible = marks.slice(Math.max(0, durable)).map(({ text }) => text)
    if (!possible.includes(checkpoint) && !(checkpoint === undefined && durable < 0))
      wrong(`attempt ${attempt} begins at ${checkpoint}, where ${marks[durable]?.text} was recorded`)
  }
  if (seen.size > 0 && accepted === undefined) wrong("is worked at, and was not accepted")
  for (const { at, event } of arrivals) {
    if (event._tag !== "JobReleased" || event.failure === undefined) continue
    if (event.failure !== "UpstreamUnavailable") wrong(`is tried again after ${event.failure}`)
    if (event.startFrom > at + LONGEST_BACK_OFF) wrong(`is tried again after ${event.startFrom - at} ms`)
  }
  // Leases are kept wherever nothing keeps a runner from it
  const { appends, crash, events, hosts, leaps, slow, states } = faults
  const isFine = events + states + slow + hosts + leaps === 0 && appends === undefined && crash === undefined
  const since = isFine ? 0 : (calm?.at ?? Number.POSITIVE_INFINITY) + AFTERMATH
  for (const attempt of attempts) stopped(attempt, arrivals, since, wrong)
  const end = arrivals.find(isEnd)
  if (accepted !== undefined && end !== undefined && end.at > Math.max(accepted.deadline, since) + OVERDUE) wrong("outlived its deadline")
  let running: JobArrival | undefined
  for (const arrival of arrivals) {
    const { _tag } = arrival.event
    if (_tag === "JobStarted" && running !== undefined && running.at >= since) wrong("was taken over from a runner that was well")
    if (_tag === "JobFailed" && arrival.event.failure === "Abandoned" && running !== undefined && running.at >= since)
      wrong("was given up as abandoned while its runner was well")
    if (_tag === "JobStarted") running = arrival
    else if (_tag !== "JobLeaseExtended" && _tag !== "JobProgressed") running = undefined
  }
}

/** An attempt is over before its lease is, for another may have begun; and where nothing keeps a runner from it, as soon as its job is. */
const stopped = ({ attempt, isDeaf, stopped }: Attempted, arrivals: ReadonlyArray<JobArrival>, since: number, wrong: Report): void => {
  if (stopped === undefined || isDeaf) return
  const lease = arrivals.findLast(({ event }) => "leaseUntil" in event && event.attempt === attempt)?.event
  const goesOn = (after: number) => stopped.at > Math.max(after, stopped.free) + AT_ONCE
  if (lease !== undefined && "leaseUntil" in lease && goesOn(lease.leaseUntil)) wrong(`attempt ${attempt} goes on after its lease`)
  const end = arrivals.find(isEnd)
  if (end !== undefined && end.at >= since && goesOn(end.at)) wrong(`attempt ${attempt} goes on after ${end.event._tag}`)
}

/** By then after its deadline a job is over, where nothing keeps anybody from it. */
const OVERDUE = 10_000
/** How long whatever happens at once may take, milliseconds. */
const AT_ONCE = 1_000

/** Whether the input that was kept says all that was asked; it may say more, where an input has defaults. */
const includes = (text: string, asked: object): boolean => {
  const kept: unknown = JSON.parse(text)
  return Object.entries(asked).every(
    ([name, value]) =>
      typeof value === "object" || (typeof kept === "object" && kept !== null && Reflect.get(kept, name) === value) || value === undefined
  )
}

/** It ended once, for a reason; and its account followed, once, by what became of it. */
const ended = (
  { arrivals, jobId }: SeenJob,
  attempts: ReadonlyArray<Attempted>,
  asked: ReadonlyArray<{ readonly act: Desk.Act; readonly call: Call }>,
  evidence: Evidence,
  ledgers: Ledgers,
  wrong: Report
): void => {
  const [first] = arrivals
  const ends = arrivals.filter(isEnd)
  const last = first?.event._tag === "JobRefused" ? first : ends[0]
  if (ends.length > 1) wrong(`has ${ends.length} ends`)
  if (first === undefined || last === undefined) return wrong("has no end")
  const creation = first.event._tag === "JobAccepted" ? requestOf(evidence, first.event.requestId) : undefined
  const reservationId = "reservationId" in first.event ? first.event.reservationId : null
  const reservation = reservationId === null ? undefined : ledgers.byId.get(reservationId)
  const { event } = last
  const attempt = "attempt" in event ? attempts.find((one) => one.attempt === event.attempt) : undefined

  if (event._tag === "JobSucceeded") {
    const { delivered, spoilt } = attempt ?? {}
    if (delivered === undefined || spoilt !== undefined) wrong(`succeeded by attempt ${event.attempt}, which delivered nothing`)
    else if (first.event._tag === "JobAccepted" && event.quantity !== (delivered.quantity ?? first.event.quantity))
      wrong(`succeeded with ${event.quantity} units, where ${delivered.quantity} were delivered`)
    else if (String(event.artifacts.map(({ id }) => id)) !== String(delivered.artifacts)) wrong("succeeded with other files")
  }
  if (event._tag === "JobFailed" && first.event._tag === "JobAccepted") reasoned(last, event, first.event, arrivals, attempt, wrong)
  if (event._tag === "JobCancelled") {
    const wanted = asked.some(({ act, call }) => act === "cancel" && call.floor < last.place)
    const told = creation?.told?.answer
    if (!wanted && told !== undefined && Exit.isSuccess(told)) wrong("is cancelled, and nobody asked for it")
  }

  if (reservation === undefined) return
  const { end, hold, net, success } = reservation
  if (end === undefined) return
  if (end.place < last.place) wrong(`its hold ended as ${end.event._tag} before it had ended itself`)
  if (end.metadata["$causationId"] !== `job-${jobId}@${last.revision}`) wrong(`its hold ended because of ${end.metadata["$causationId"]}`)
  if (event._tag === "JobSucceeded") {
    if (success === undefined) return wrong("succeeded, and was not charged")
    if (success.quantity !== event.quantity || success.replyHash !== event.result.hash) wrong("was charged for something else")
    // What is promised to cost nothing, or to whoever could not be told of it, is given back
    const told = creation?.told?.answer
    if (net !== success.charged && told !== undefined && Exit.isSuccess(told)) wrong(`succeeded, and ${success.charged - net} was refunded`)
    return
  }
  if (net !== 0 || success !== undefined) wrong(`ended as ${event._tag}, and is charged ${net}`)
  const reason = event._tag === "JobRefused" ? "abandoned" : event._tag === "JobCancelled" ? "cancelled" : reasonOf(event)
  if (end.event._tag !== "Refunded" || end.event.reason !== reason || end.event.amount !== hold.amount)
    wrong(`ended as ${event._tag}, and was not refunded so`)
}

const requestOf = ({ calls }: Evidence, requestId: string) => calls.find((call) => call.requestId === requestId)

const reasonOf = (event: Job.JobEvent): string => (event._tag === "JobFailed" && event.failure === "TooLate" ? "expired" : "service_error")

/** A job fails for what its attempts came to, no sooner than it has to. */
const reasoned = (
  { at, revision }: JobArrival,
  { attempt, failure }: Job.EventOf<"JobFailed">,
  { attempts: most, deadline }: Job.EventOf<"JobAccepted">,
  arrivals: ReadonlyArray<JobArrival>,
  seen: Attempted | undefined,
  wrong: Report
): void => {
  const before = arrivals.slice(0, revision)
  const handedBack = before.filter(({ event }) => event._tag === "JobReleased" && event.failure === undefined).length
  const tries = before.filter(({ event }) => event._tag === "JobStarted").length - handedBack
  if (tries > most) wrong(`was tried ${tries} times, where ${most} are allowed`)
  switch (failure) {
    case "TooLate":
      if (at < deadline) wrong("failed as too late before its deadline")
      return
    case "Abandoned": {
      const lease = before.findLast(({ event }) => "leaseUntil" in event)?.event
      if (tries < most || (lease !== undefined && "leaseUntil" in lease && lease.leaseUntil > at)) wrong("was abandoned too early")
      return
    }
    case "UpstreamUnavailable":
      // Also of a timeout, a circuit, a store: it may pass, so it is tried as often as there is time for
      if (tries < most && at + LONGEST_BACK_OFF < deadline) wrong(`failed after ${tries} of ${most} attempts`)
      return
    default: {
      const came = seen?.spoilt ?? seen?.came
      if (came !== failure) wrong(`failed as ${failure}, where attempt ${attempt} came to ${came}`)
    }
  }
}

/** Milliseconds, as hosts are set up. */
const LONGEST_BACK_OFF = 60_000

/** What it came to is kept until its time is over or a caller wants it gone, and no longer. */
const purged = (
  { arrivals, jobId, states }: SeenJob,
  asked: ReadonlyArray<{ readonly act: Desk.Act; readonly call: Call }>,
  { end, faults, keys }: Evidence,
  wrong: Report
): void => {
  const purge = arrivals.find(({ event }) => event._tag === "JobPurged")
  const last = states.at(-1)
  if (last === undefined) return
  const isGone = !keys.has(`job:${jobId}`)
  if (purge !== undefined || last.status === "refused") {
    if (!isGone) wrong("is purged, and can still be read")
  }
  if (!Job.isEnded(last)) return
  if (purge === undefined) {
    if (end - last.retainUntil > PURGED) wrong(`was to be purged by ${last.retainUntil}`)
    else if (
      isGone &&
      end + faults.skew < last.retainUntil &&
      !asked.some(({ call }) => isUnfinished(call, jobId, Number.POSITIVE_INFINITY))
    )
      wrong("is not purged, and cannot be read any more")
    return
  }
  const wanted = asked.some(({ act, call }) => act === "cancel" && call.floor < purge.place)
  if (purge.at < last.retainUntil && !wanted) wrong(`is purged at ${purge.at}, before ${last.retainUntil}`)
}

// what callers were told

/** The call became a job, or was told of the one that an earlier call under its key became. */
export const judgeAccepted = (call: Call, evidence: Evidence, ledgers: Ledgers, wrong: Report): void => {
  const { intent, requestId, told } = call
  if (told === undefined || Exit.isFailure(told.answer)) return
  const { billed, job, replayed, requestId: original, data } = told.answer.value
  if (job === undefined) return
  const [first] = evidence.witness.job(job.id).arrivals
  if (first?.event._tag !== "JobAccepted") return wrong(`was told of ${job.id}, which was not accepted`)
  if (first.place > told.ceiling) wrong(`was told of ${job.id} before it was accepted`)
  if (first.event.requestId !== original) wrong(`was told of ${job.id} as what became of ${original}`)
  if (!replayed && original !== requestId) wrong(`was told of ${original} as if it were new`)
  const asked = evidence.calls.find((other) => other.requestId === original)?.intent
  if (asked?.accountId !== intent.accountId || asked.request !== intent.request)
    wrong(`was told of ${original}, which asked for something else`)
  if (replayed && ledgers.of(requestId).some(({ net }) => net !== 0)) wrong(`was told of ${original}, and charged for itself`)
  if (!data.includes(job.id)) wrong(`was told another job than ${job.id}`)
  const { reservationId } = first.event
  const reservation = reservationId === null ? undefined : ledgers.byId.get(reservationId)
  if (reservation === undefined) {
    if (billed !== undefined && billed.charged !== 0) wrong(`was told a cost of ${billed.charged} for what is free`)
    return
  }
  const { hold, success } = reservation
  if (billed === undefined) return wrong("was told nothing of its cost")
  if (billed.charged !== 0 && (!replayed || billed.charged !== success?.charged)) wrong(`was told ${billed.charged} as its cost`)
  if (intent.maxCost !== undefined && !replayed && hold.amount > intent.maxCost) wrong(`held ${hold.amount}, more than ${intent.maxCost}`)
}

/** What a job was, at some instant between the question and the answer. */
const statesBetween = ({ arrivals, states }: SeenJob, floor: number, ceiling: number): ReadonlyArray<Job.Job> => {
  const first = arrivals.filter(({ place }) => place <= floor).length - 1
  const last = arrivals.filter(({ place }) => place <= ceiling).length - 1
  return [...(first < 0 ? [Job.Job.initial] : []), ...states.slice(Math.max(0, first), last + 1)]
}

interface Question {
  readonly jobId: string
  readonly accountId: string
  readonly floor: number
  readonly ceiling: number
  readonly at: number
}

/** That there is no such job is true where it was never there, is another's, cancelled, purged or about to be, or outdated. */
const isNotThere = ({ accountId, at, ceiling, floor, jobId }: Question, { calls, faults, witness }: Evidence): boolean =>
  statesBetween(witness.job(jobId), floor, ceiling).some(
    (state) => !Job.isReadable(state, at + faults.skew) || state.accepted.accountId !== accountId
  ) || calls.some((call) => isUnfinished(call, jobId, floor) && call.floor <= ceiling)

/** A caller wants it gone, and was not told by then that it is: it may be. */
const isUnfinished = (call: Call, jobId: string, floor: number): boolean => {
  const { intent, told } = call
  if (Desk.actOf(intent.operation) !== "cancel" || jobOf(call) !== jobId) return false
  return told === undefined || told.ceiling >= floor || (Exit.isFailure(told.answer) && tagOf(told.answer) !== "NotFound")
}

const hasNoFile = (state: Job.Job): boolean => state.status !== "succeeded" || state.artifacts.length === 0

/** What was read, cancelled or described at the desk. */
export const judgeActs = (call: Call, evidence: Evidence, ledgers: Ledgers, wrong: Report): void => {
  const { floor, intent, told } = call
  const act = Desk.actOf(intent.operation)
  if (told === undefined || act === undefined) return
  const { answer, at, ceiling } = told
  const jobId = jobOf(call)
  const job = evidence.witness.job(jobId)
  const question: Question = { jobId, accountId: intent.accountId, floor, ceiling, at }
  const states = statesBetween(job, floor, ceiling)
  if (Exit.isFailure(answer)) {
    if (tagOf(answer) === "NotFound" && !isNotThere(question, evidence) && !(act === "download" && states.some(hasNoFile)))
      wrong(`is told that ${jobId} is not there`)
    return
  }
  const owner = states.find((state) => "accepted" in state)
  if (owner !== undefined && "accepted" in owner && owner.accepted.accountId !== intent.accountId)
    return wrong(`is told of ${jobId}, which is another's`)
  if (act === "cancel") {
    const [end] = job.arrivals.filter(isEnd)
    if (end === undefined || end.place > ceiling) return wrong(`is told that ${jobId} is over, and it was not`)
    if (wasCancelled(call) !== (end.event._tag === "JobCancelled"))
      return wrong(`is told that ${jobId} was ${wasCancelled(call) ? "" : "not "}cancelled, and it ended as ${end.event._tag}`)
    if (wasCancelled(call) && end.place <= floor) wrong(`is told that it cancelled ${jobId}, which had been before`)
    const purge = job.arrivals.find(({ event }) => event._tag === "JobPurged")
    if (!wasCancelled(call) && (purge === undefined || purge.place > ceiling)) wrong(`is told that ${jobId} is gone, and it is not`)
    return
  }
  if (act === "download") {
    const { tag } = decodeFile(answer.value.data)
    const isThere = states.some((state) => state.status === "succeeded" && state.artifacts[0]?.id === tag && !state.purged)
    return isThere ? paid(job, ledgers, wrong) : wrong(`is told of a file of ${jobId} that was not there`)
  }
  const shown = decodeShown(answer.value.data)
  const was = states.filter((state) => isShown(state, shown, job, evidence))
  if (was.length === 0) return wrong(`is shown ${jobId} as it never was: ${answer.value.data}`)
  if (was.every((state) => "retainUntil" in state && state.retainUntil <= call.startedAt)) wrong(`is shown ${jobId}, whose time is over`)
  if (shown.status === "succeeded") paid(job, ledgers, wrong)
}

const decodeShown = Schema.decodeUnknownSync(Schema.fromJsonString(Desk.Shown))
const decodeFile = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Struct({ tag: Schema.String })))
const decodeCancelled = Schema.decodeUnknownResult(Schema.fromJsonString(Schema.Struct({ cancelled: Schema.Boolean })))

const wasCancelled = ({ told }: Call): boolean => {
  if (told === undefined || Exit.isFailure(told.answer)) return false
  const decoded = decodeCancelled(told.answer.value.data)
  return Result.isSuccess(decoded) && decoded.success.cancelled
}

const isShown = (state: Job.Job, shown: Desk.Shown, { jobId }: SeenJob, { attempts }: Evidence): boolean => {
  if (!("accepted" in state) || state.status !== shown.status || shown.id !== jobId) return false
  const { accepted, attempt, checkpoint, percent } = state
  if (shown.operation !== accepted.operation || shown.quantity !== accepted.quantity || shown.percent !== percent) return false
  const own = attempts.filter((one) => one.jobId === jobId && one.attempt <= attempt)
  const isRecorded = own.some(({ marks }) => marks.some(({ text }) => text === shown.checkpoint))
  if (checkpoint === undefined ? shown.checkpoint !== null : !isRecorded) return false
  if (state.status === "failed") return shown.failure === state.failure && shown.result === null
  if (state.status !== "succeeded") return shown.result === null && shown.artifacts.length === 0 && shown.failure === null
  const delivered = own.find((one) => one.attempt === attempt)?.delivered
  return shown.result === delivered?.data && String(shown.artifacts) === String(state.artifacts.map(({ id }) => id)) && !state.purged
}

/** What a caller has read was charged, and stays charged. */
const paid = ({ arrivals, jobId }: SeenJob, ledgers: Ledgers, wrong: Report): void => {
  const [first] = arrivals
  if (first?.event._tag !== "JobAccepted" || first.event.reservationId === null) return
  const reservation = ledgers.byId.get(first.event.reservationId)
  const success: EventOf<"OperationSucceeded"> | undefined = reservation?.success
  if (success === undefined || reservation?.net !== success.charged) wrong(`has what ${jobId} came to, and did not pay for it`)
}

/** What a file may break off with half-way, besides the answers of the desk. */
const UNREADABLE = new Set(["UpstreamUnavailable", "Disconnected", "BlobUnavailable", "StateUnavailable", "SubjectDestroyed"])

/** What whoever waited, or fetched a file, was told. */
export const judgeTidings = (evidence: Evidence, ledgers: Ledgers, report: Report): void => {
  const { survived, tidings, witness } = evidence
  for (const { accountId, answer, at, ceiling, failed, floor, jobId, process, what } of tidings) {
    const wrong: Report = (said) => report(`${accountId} ${what === "waits" ? "waited for" : "fetched"} ${jobId}, and ${said}`)
    const job = witness.job(jobId)
    if (failed) {
      if (answer === "NotFound") {
        const hadNone = what === "fetches" && statesBetween(job, floor, ceiling).some(hasNoFile)
        if (!hadNone && !isNotThere({ jobId, accountId, floor, ceiling, at }, evidence)) wrong("was told that it is not there")
      } else if (!UNREADABLE.has(answer) && !(answer === "died" && !survived.has(process))) wrong(`was told ${answer}`)
      continue
    }
    const [end] = job.arrivals.filter(isEnd)
    if (what === "fetches") {
      if (end?.event._tag === "JobSucceeded" && end.place <= ceiling) paid(job, ledgers, wrong)
      else wrong("was given a file before it had succeeded")
    } else if (answer === "ended" && (end === undefined || end.place > ceiling)) wrong("was told of its end before it had one")
    else if (answer === "open" && end !== undefined && end.place <= floor) wrong("was told that it has not ended")
  }
}
