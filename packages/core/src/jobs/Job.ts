/**
 * A job: work that continues after the call that requested it was answered. Its stream decides whether it was accepted, which attempt has
 * it and how it ended; the account's hold is settled by that. Stream `job-{jobId}`.
 *
 * The number of an attempt is its fencing token: events of older attempts are refused, so at most one runner records a result.
 */
import { type Decider, type Decision, EventCodec } from "@millrace/event-sourcing"
import { Result, Schema } from "effect"
import { Timestamp } from "../Timestamp.ts"
import { Artifact, JobFailure as Failure } from "../work/JobOperation.ts"

export { isJobId as isId, jobIdOf as idOf } from "../Ids.ts"
export { Artifact, JobFailure as Failure } from "../work/JobOperation.ts"

// events

/**
 * A sealed text: the size in bytes and the SHA-256, base64url, of its stored bytes. It is stored outside the log, or as `sealed` in the event
 * itself.
 */
export const Document = Schema.Struct({ size: Schema.Int, hash: Schema.String, sealed: Schema.optionalKey(Schema.String) })
export type Document = typeof Document.Type

export const JobEvent = Schema.TaggedUnion({
  JobAccepted: {
    accountId: Schema.String,
    operation: Schema.String,
    /** The name of the job's family, whose operations read it. */
    family: Schema.String,
    requestId: Schema.String,
    /** The hold that pays for it; null if it is free. */
    reservationId: Schema.NullOr(Schema.String),
    /** Units held. */
    quantity: Schema.Int,
    input: Document,
    /** The most attempts. Attempts that were handed back do not count. */
    attempts: Schema.Int,
    /** A job that has not ended by then fails. */
    deadline: Timestamp,
    /** How long the result is kept after the job's end, milliseconds. */
    retention: Schema.Int
  },
  /** The job was not accepted in time. The first and only event. */
  JobRefused: { accountId: Schema.String, reservationId: Schema.String },
  JobStarted: { runner: Schema.String, attempt: Schema.Int, leaseUntil: Timestamp },
  JobLeaseExtended: { attempt: Schema.Int, leaseUntil: Timestamp },
  JobProgressed: {
    attempt: Schema.Int,
    /** 0 to 100; never less than before. */
    percent: Schema.Int,
    checkpoint: Schema.optionalKey(Document)
  },
  /** The attempt ended but the job did not: it was handed back, or a failure may be temporary. */
  JobReleased: {
    attempt: Schema.Int,
    /** The earliest start of the next attempt. */
    startFrom: Timestamp,
    failure: Schema.optionalKey(Failure)
  },
  JobSucceeded: {
    attempt: Schema.Int,
    /** Units done. */
    quantity: Schema.Int,
    result: Document,
    artifacts: Schema.Array(Artifact),
    retainUntil: Timestamp
  },
  JobFailed: {
    /** The newest attempt; 0 before the first. */
    attempt: Schema.Int,
    failure: Failure,
    /** Whether the failure may be temporary. */
    mayPass: Schema.Boolean,
    /** Which input is invalid and why, for the caller. */
    details: Schema.optionalKey(Document),
    retainUntil: Timestamp
  },
  JobCancelled: { retainUntil: Timestamp },
  /** The job's key was destroyed, so its documents and artifacts are unreadable. */
  JobPurged: {}
})
export type JobEvent = typeof JobEvent.Type

export type EventOf<Tag extends JobEvent["_tag"]> = Extract<JobEvent, { readonly _tag: Tag }>

// state

export type Accepted = Omit<EventOf<"JobAccepted">, "_tag">

interface Common {
  readonly accepted: Accepted
  readonly acceptedAt: Timestamp
  /** The newest attempt; 0 before the first. */
  readonly attempt: number
  /** Attempts that were not handed back. */
  readonly tries: number
  readonly percent: number
  readonly checkpoint: Document | undefined
}

interface Ending {
  readonly endedAt: Timestamp
  readonly retainUntil: Timestamp
  readonly purged: boolean
}

export type Queued = Common & { readonly status: "queued"; readonly startFrom: Timestamp }
export type Running = Common & { readonly status: "running"; readonly runner: string; readonly leaseUntil: Timestamp }
export type Succeeded = Common &
  Ending & {
    readonly status: "succeeded"
    readonly quantity: number
    readonly result: Document
    readonly artifacts: ReadonlyArray<Artifact>
  }
export type Failed = Common & Ending & { readonly status: "failed"; readonly failure: Failure; readonly details: Document | undefined }
export type Cancelled = Common & Ending & { readonly status: "cancelled" }

export type Begun = Queued | Running | Succeeded | Failed | Cancelled
export type Ended = Succeeded | Failed | Cancelled
export type Refused = { readonly status: "refused"; readonly accountId: string; readonly reservationId: string }
export type Job = { readonly status: "absent" } | Refused | Begun

export const isOpen = (job: Job): job is Queued | Running => job.status === "queued" || job.status === "running"
export const isEnded = (job: Job): job is Ended => job.status === "succeeded" || job.status === "failed" || job.status === "cancelled"

const evolve = (job: Job, event: JobEvent, at: Timestamp): Job => {
  switch (event._tag) {
    case "JobAccepted": {
      const { _tag: _, ...accepted } = event
      if (job.status !== "absent") throw new Error("A job is accepted first, and once")
      return { status: "queued", accepted, acceptedAt: at, attempt: 0, tries: 0, percent: 0, checkpoint: undefined, startFrom: at }
    }
    case "JobRefused": {
      const { accountId, reservationId } = event
      if (job.status !== "absent") throw new Error("A job that began is not refused")
      return { status: "refused", accountId, reservationId }
    }
    case "JobStarted": {
      const { attempt, leaseUntil, runner } = event
      if (!isOpen(job) || attempt !== job.attempt + 1) throw new Error(`Attempt ${attempt} does not follow`)
      return { ...commonOf(job), status: "running", attempt, tries: job.tries + 1, runner, leaseUntil }
    }
    case "JobLeaseExtended":
      return { ...current(job, event.attempt), leaseUntil: event.leaseUntil }
    case "JobProgressed": {
      const { attempt, checkpoint, percent } = event
      const running = current(job, attempt)
      return { ...running, percent, checkpoint: checkpoint ?? running.checkpoint }
    }
    case "JobReleased": {
      const { attempt, failure, startFrom } = event
      const running = current(job, attempt)
      return { ...commonOf(running), status: "queued", tries: running.tries - (failure === undefined ? 1 : 0), startFrom }
    }
    case "JobSucceeded": {
      const { _tag: _, attempt, ...success } = event
      return { ...commonOf(current(job, attempt)), ...success, percent: 100, status: "succeeded", endedAt: at, purged: false }
    }
    case "JobFailed": {
      const { details, failure, retainUntil } = event
      return { ...commonOf(open(job)), status: "failed", failure, details, endedAt: at, retainUntil, purged: false }
    }
    case "JobCancelled":
      return { ...commonOf(open(job)), status: "cancelled", endedAt: at, retainUntil: event.retainUntil, purged: false }
    case "JobPurged":
      if (!isEnded(job)) throw new Error("A job that has not ended is not purged")
      return { ...job, purged: true }
  }
}

const commonOf = ({ accepted, acceptedAt, attempt, checkpoint, percent, tries }: Begun): Common => ({
  accepted,
  acceptedAt,
  attempt,
  tries,
  percent,
  checkpoint
})

// The decisions guarantee these states, so a log that breaks them was not written by this code

const open = (job: Job): Queued | Running => {
  if (!isOpen(job)) throw new Error("The job is not open")
  return job
}

const current = (job: Job, attempt: number): Running => {
  if (job.status !== "running" || job.attempt !== attempt) throw new Error(`Attempt ${attempt} is over`)
  return job
}

export const Job: Decider<Job, JobEvent> = {
  category: "job",
  codec: EventCodec.make(JobEvent),
  initial: { status: "absent" },
  evolve
}

// decisions

type Decided<E = never> = Decision<JobEvent, E>

/** The job was refused, and its hold released, before it could be accepted. */
export class JobWasRefused extends Schema.TaggedError<JobWasRefused>()("JobWasRefused", {}) {
  override get message(): string {
    return "The job was refused before it could be accepted"
  }
}
/** Another attempt has begun, or the job has ended. Nothing of this attempt is recorded. */
export class AttemptOver extends Schema.TaggedError<AttemptOver>()("AttemptOver", { attempt: Schema.Int }) {
  override get message(): string {
    return `Attempt ${this.attempt} at the job is over: another has begun, or the job has ended`
  }
}

const NOTHING: Decided = Result.succeed([])

const one = (event: JobEvent): Decided => Result.succeed([event])

/** The command that accepts a job. `within`: milliseconds until the deadline. */
export interface Accept extends Omit<Accepted, "deadline"> {
  readonly within: number
}

/** Accepts a job. Accepting again decides nothing. */
export const accept =
  ({ within, ...accepted }: Accept) =>
  (job: Job, now: Timestamp): Decided<JobWasRefused> => {
    if (job.status === "refused") return Result.fail(new JobWasRefused())
    return job.status === "absent" ? one({ _tag: "JobAccepted", ...accepted, deadline: now + within }) : NOTHING
  }

/** The state of the job right after it is accepted. */
export const accepted = ({ within, ...accept }: Accept, now: Timestamp): Queued => {
  const job = evolve(Job.initial, { _tag: "JobAccepted", ...accept, deadline: now + within }, now)
  if (job.status !== "queued") throw new Error("A job that was just accepted is queued")
  return job
}

/** A runner's claim of a job. `lease` in milliseconds. */
export interface Claim {
  readonly runner: string
  readonly lease: number
}

/** Accepts a job and claims it. A job that was accepted before is not claimed. */
export const acceptAndStart =
  (command: Accept, claim: Claim) =>
  (job: Job, now: Timestamp): Decided<JobWasRefused> =>
    Result.flatMap(accept(command)(job, now), (events) =>
      events.length === 0 ? NOTHING : Result.map(start(claim)(accepted(command, now), now), (started) => [...events, ...started])
    )

/** Refuses a job that was not accepted. A job that was accepted stays. */
export const refuse =
  (accountId: string, reservationId: string) =>
  (job: Job): Decided =>
    job.status === "absent" ? one({ _tag: "JobRefused", accountId, reservationId }) : NOTHING

/**
 * Claims the job for a runner, for `lease` milliseconds. Decides nothing if another runner has the job, it may not start yet, or it has
 * ended. Fails a job that has no attempts left or is past its deadline.
 */
export const start =
  ({ runner, lease }: Claim) =>
  (job: Job, now: Timestamp): Decided => {
    if (!isOpen(job)) return NOTHING
    if (now >= job.accepted.deadline) return one(failed(job, "TooLate", true, now))
    if (now < (job.status === "queued" ? job.startFrom : job.leaseUntil)) return NOTHING
    if (job.tries >= job.accepted.attempts) return one(failed(job, "Abandoned", true, now))
    return one({ _tag: "JobStarted", runner, attempt: job.attempt + 1, leaseUntil: now + lease })
  }

/** A decision on behalf of an attempt: refused unless the attempt is the newest and runs. */
const during =
  (attempt: number, decide: (job: Running, now: Timestamp) => JobEvent) =>
  (job: Job, now: Timestamp): Decided<AttemptOver> =>
    job.status === "running" && job.attempt === attempt ? one(decide(job, now)) : Result.fail(new AttemptOver({ attempt }))

/** Extends the lease to `lease` milliseconds from now. */
export const extendLease = (attempt: number, lease: number) =>
  during(attempt, (_, now) => ({ _tag: "JobLeaseExtended", attempt, leaseUntil: now + lease }))

/** Records 0 to 100 percent, never less than before, and a checkpoint. */
export const progress = (attempt: number, percent: number, checkpoint?: Document) =>
  during(attempt, (job) => ({
    _tag: "JobProgressed",
    attempt,
    percent: Math.max(job.percent, Math.min(100, Math.floor(percent))),
    ...(checkpoint === undefined ? {} : { checkpoint })
  }))

/** Hands the job back: another runner may start it at once, and the attempt does not count. */
export const release = (attempt: number) => during(attempt, (_, now) => ({ _tag: "JobReleased", attempt, startFrom: now }))

/** Records the result. A quantity of more units than held is a defect. */
export const succeed = (
  attempt: number,
  { quantity, result, artifacts }: Pick<EventOf<"JobSucceeded">, "result" | "artifacts"> & { readonly quantity?: number | undefined }
) =>
  during(attempt, ({ accepted }, now) => {
    const done = quantity ?? accepted.quantity
    if (!(Number.isInteger(done) && done >= 0 && done <= accepted.quantity))
      throw new Error(`${done} units were done of ${accepted.quantity} asked`)
    return { _tag: "JobSucceeded", attempt, quantity: done, result, artifacts, retainUntil: now + accepted.retention }
  })

/** Fails the attempt. If the failure may be temporary, and attempts and time are left, the job starts again after `after` milliseconds. */
export const fail = (
  attempt: number,
  { failure, mayPass, details, after }: { failure: Failure; mayPass: boolean; details?: Document | undefined; after: number }
) =>
  during(attempt, (job, now) => {
    const again = mayPass && job.tries < job.accepted.attempts && now + after < job.accepted.deadline
    return again ? { _tag: "JobReleased", attempt, startFrom: now + after, failure } : failed(job, failure, mayPass, now, details)
  })

const failed = (job: Queued | Running, failure: Failure, mayPass: boolean, now: Timestamp, details?: Document): EventOf<"JobFailed"> => ({
  _tag: "JobFailed",
  attempt: job.attempt,
  failure,
  mayPass,
  ...(details === undefined ? {} : { details }),
  retainUntil: now + job.accepted.retention
})

/** Cancels a job. A job that has ended stays as it is. */
export const cancel = (job: Job, now: Timestamp): Decided => (isOpen(job) ? one({ _tag: "JobCancelled", retainUntil: now }) : NOTHING)

/** Fails a job that is past its deadline. */
export const expire = (job: Job, now: Timestamp): Decided =>
  isOpen(job) && now >= job.accepted.deadline ? one(failed(job, "TooLate", true, now)) : NOTHING

/** Records that the job's documents were destroyed. Only for a job that has ended. */
export const purge = (job: Job): Decided => (isEnded(job) && !job.purged ? one({ _tag: "JobPurged" }) : NOTHING)

/** Whether the job's owner can still read it. */
export const isReadable = (job: Job, now: Timestamp): job is Queued | Running | Succeeded | Failed =>
  isOpen(job) || ((job.status === "succeeded" || job.status === "failed") && !job.purged && now < job.retainUntil)
