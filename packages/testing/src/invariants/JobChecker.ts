/** Checks the events of jobs, and the account events that follow from them, with bookkeeping of its own. */
import type { AccountEvent, Job } from "@millrace/core"
import type { Report } from "./Rules.ts"

type Beginning = Job.EventOf<"JobAccepted" | "JobRefused">
type End = Job.EventOf<"JobRefused" | "JobSucceeded" | "JobFailed" | "JobCancelled">
type AttemptEvent = Exclude<Job.JobEvent, Beginning | Job.EventOf<"JobCancelled" | "JobPurged">>

/** A job, as far as its events were read. */
class Entry {
  readonly accepted: Job.EventOf<"JobAccepted"> | undefined
  end: End | undefined
  purged = false
  /** The newest attempt; whether it still runs, and when another may begin: milliseconds since 1970. */
  attempt = 0
  isRunning = false
  startFrom: number
  percent = 0

  constructor(beginning: Beginning | undefined, at: number) {
    this.accepted = beginning?._tag === "JobAccepted" ? beginning : undefined
    this.end = beginning?._tag === "JobRefused" ? beginning : undefined
    this.startFrom = at
  }
}

export class JobChecker {
  readonly #jobs = new Map<string, Entry>()
  /** Holds of jobs, by reservation: the job, and whether the hold has ended. */
  readonly #holds = new Map<string, { readonly jobId: string; hasEnded: boolean }>()
  readonly #given: { readonly accounts: boolean; readonly jobs: boolean }
  readonly #report: Report

  /** `given`: whether there are events of accounts, and of jobs. Relations between them are checked only if there are both. */
  constructor(given: { readonly accounts: boolean; readonly jobs: boolean }, report: Report) {
    this.#given = given
    this.#report = report
  }

  enter(jobId: string, event: Job.JobEvent, at: number): void {
    const job = this.#jobs.get(jobId)
    const isBeginning = event._tag === "JobAccepted" || event._tag === "JobRefused"
    if (isBeginning || job === undefined) {
      if (isBeginning === (job !== undefined)) this.#report("jobOnce", isBeginning ? "it had begun" : "it was never accepted")
      this.#jobs.set(jobId, new Entry(isBeginning ? event : undefined, at))
      if (isBeginning) this.#checkHold(jobId, event)
    } else if (event._tag === "JobPurged") {
      if (job.end === undefined || job.purged) this.#report("jobOnce", job.purged ? "purged again" : "purged before its end")
      job.purged = true
    } else {
      if (job.end !== undefined) this.#report("jobOnce", `after ${job.end._tag}`)
      if (event._tag === "JobCancelled") job.end = event
      else this.#enterAttempt(job, event, at)
    }
  }

  #checkHold(jobId: string, { _tag, reservationId }: Beginning): void {
    if (!this.#given.accounts || reservationId === null) return
    const held = this.#holds.get(reservationId)
    // A free job may be refused, too
    if (held === undefined && _tag === "JobRefused") return
    if (held?.jobId !== jobId) this.#report("jobHold", `nothing was held for it as ${reservationId}`)
    else if (held.hasEnded) this.#report("jobHold", `${reservationId} had ended`)
  }

  #enterAttempt(job: Entry, event: AttemptEvent, at: number): void {
    if (event._tag === "JobStarted" || event._tag === "JobFailed") {
      const expected = event._tag === "JobStarted" ? job.attempt + 1 : job.attempt
      if (event.attempt !== expected) this.#report("newest", `attempt ${event.attempt} after ${job.attempt}`)
    } else if (event.attempt !== job.attempt) this.#report("newest", `attempt ${event.attempt} reports, but ${job.attempt} is the newest`)
    else if (!job.isRunning) this.#report("newest", `attempt ${event.attempt} reports, but was over`)
    if ("leaseUntil" in event && event.leaseUntil <= at) this.#report("lease", `a lease until ${event.leaseUntil}, at ${at}`)
    switch (event._tag) {
      case "JobStarted": {
        const { deadline = Number.POSITIVE_INFINITY } = job.accepted ?? {}
        if (at >= deadline) this.#report("jobDeadline", `at ${at}, after ${deadline}`)
        if (at < job.startFrom) this.#report("lease", `at ${at}, before ${job.startFrom}`)
        Object.assign(job, { attempt: event.attempt, isRunning: true, startFrom: event.leaseUntil })
        return
      }
      case "JobLeaseExtended":
        job.startFrom = event.leaseUntil
        return
      case "JobProgressed":
        if (event.percent < job.percent || event.percent > 100) this.#report("progress", `${event.percent} after ${job.percent}`)
        job.percent = event.percent
        return
      case "JobReleased":
        Object.assign(job, { isRunning: false, startFrom: event.startFrom })
        return
      case "JobSucceeded":
        if (event.quantity < 0 || event.quantity > (job.accepted?.quantity ?? Number.POSITIVE_INFINITY))
          this.#report("jobHold", `${event.quantity} units of ${job.accepted?.quantity}`)
        job.end = event
        return
      case "JobFailed":
        job.end = event
    }
  }

  /** Checks an account event against the jobs of its holds. */
  follow(event: AccountEvent): void {
    if (event._tag === "CreditReserved" && event.jobId !== undefined)
      this.#holds.set(event.reservationId, { jobId: event.jobId, hasEnded: false })
    if (!(event._tag === "OperationSucceeded" || (event._tag === "Refunded" && event.stage === "reserved"))) return
    const held = this.#holds.get(event.reservationId)
    if (held === undefined) return
    held.hasEnded = true
    if (!this.#given.jobs) return
    const end = this.#jobs.get(held.jobId)?.end
    if (end === undefined) return this.#report("jobHold", `${held.jobId} has not ended`)
    const isDone = end._tag === "JobSucceeded"
    if (event._tag === "Refunded") {
      if (isDone || refundReason(end) !== event.reason)
        this.#report("jobHold", `${held.jobId} ended as ${end._tag}, refunded as ${event.reason}`)
    } else if (!isDone || end.quantity !== event.quantity || end.result.hash !== event.replyHash)
      this.#report("jobHold", `${held.jobId} ended as ${end._tag}, or with another result`)
  }
}

const refundReason = (end: Exclude<End, { readonly _tag: "JobSucceeded" }>): string => {
  if (end._tag === "JobRefused") return "abandoned"
  return end._tag === "JobCancelled" ? "cancelled" : end.failure === "TooLate" ? "expired" : "service_error"
}
