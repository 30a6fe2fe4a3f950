/** Checks the events of jobs, and the account events that follow from them, with bookkeeping of its own. */
import type { AccountEvent, EventOf, Job } from "@millrace/core"
import type { Report } from "./Rules.ts"

type End = Job.EventOf<"JobRefused" | "JobSucceeded" | "JobFailed" | "JobCancelled">

interface Entry {
  accepted: Job.EventOf<"JobAccepted"> | undefined
  end: End | undefined
  purged: boolean
  /** The newest attempt; whether it still runs, and when another may begin: milliseconds since 1970. */
  attempt: number
  isRunning: boolean
  startFrom: number
  percent: number
}

const FIRST = "a job is accepted or refused first, and ends once"
const NEWEST = "attempts are counted, and only the newest is heard"
const LEASE = "a job is taken over when its lease is over, and tried again when it is time"
const DEADLINE = "a job is not begun after its deadline"
const HOLD = "a job's hold is made before it and ends after it, as it ended"

export class JobChecker {
  readonly #jobs = new Map<string, Entry>()
  /** Holds of jobs, by reservation: whose they are, and whether they have ended. */
  readonly #holds = new Map<string, { readonly jobId: string; readonly hold: EventOf<"CreditReserved">; hasEnded: boolean }>()
  readonly #withAccounts: boolean
  readonly #withJobs: boolean

  /** Whether there are events of accounts and of jobs at all: relations are checked only if there are both. */
  constructor({ accounts, jobs }: { readonly accounts: boolean; readonly jobs: boolean }) {
    this.#withAccounts = accounts
    this.#withJobs = jobs
  }

  enter(jobId: string, event: Job.JobEvent, at: number, report: Report): void {
    const known = this.#jobs.get(jobId)
    if (event._tag === "JobAccepted" || event._tag === "JobRefused") {
      if (known !== undefined) report(FIRST, "it had begun")
      this.#begin(jobId, event, at, report)
      return
    }
    if (known === undefined) {
      report(FIRST, "it was never accepted")
      this.#jobs.set(jobId, { accepted: undefined, end: undefined, purged: false, attempt: 0, isRunning: false, startFrom: at, percent: 0 })
      return
    }
    if (event._tag === "JobPurged") {
      if (known.end === undefined || known.purged) report(FIRST, known.purged ? "purged again" : "purged before its end")
      known.purged = true
      return
    }
    if (known.end !== undefined) report(FIRST, `after ${known.end._tag}`)
    switch (event._tag) {
      case "JobStarted":
        if (event.attempt !== known.attempt + 1) report(NEWEST, `${event.attempt} after ${known.attempt}`)
        if (known.accepted !== undefined && at >= known.accepted.deadline) report(DEADLINE, `at ${at}, after ${known.accepted.deadline}`)
        if (at < known.startFrom) report(LEASE, `at ${at}, before ${known.startFrom}`)
        if (event.leaseUntil <= at) report(LEASE, `a lease until ${event.leaseUntil}, at ${at}`)
        known.attempt = event.attempt
        known.isRunning = true
        known.startFrom = event.leaseUntil
        return
      case "JobLeaseExtended":
        this.#isHeard(known, event.attempt, report)
        if (event.leaseUntil <= at) report(LEASE, `a lease until ${event.leaseUntil}, at ${at}`)
        known.startFrom = event.leaseUntil
        return
      case "JobProgressed":
        this.#isHeard(known, event.attempt, report)
        if (event.percent < known.percent || event.percent > 100)
          report("progress never goes back", `${event.percent} after ${known.percent}`)
        known.percent = event.percent
        return
      case "JobReleased":
        this.#isHeard(known, event.attempt, report)
        known.isRunning = false
        known.startFrom = event.startFrom
        return
      case "JobSucceeded": {
        this.#isHeard(known, event.attempt, report)
        const { accepted } = known
        if (event.quantity < 0 || (accepted !== undefined && event.quantity > accepted.quantity))
          report(HOLD, `${event.quantity} units of ${accepted?.quantity}`)
        known.end = event
        return
      }
      case "JobFailed":
        if (event.attempt !== known.attempt) report(NEWEST, `${event.attempt} failed, where ${known.attempt} is the newest`)
        known.end = event
        return
      case "JobCancelled":
        known.end = event
        return
    }
  }

  #begin(jobId: string, event: Job.EventOf<"JobAccepted" | "JobRefused">, at: number, report: Report): void {
    const isRefused = event._tag === "JobRefused"
    this.#jobs.set(jobId, {
      accepted: isRefused ? undefined : event,
      end: isRefused ? event : undefined,
      purged: false,
      attempt: 0,
      isRunning: false,
      startFrom: at,
      percent: 0
    })
    if (!this.#withAccounts || event.reservationId === null) return
    const held = this.#holds.get(event.reservationId)
    // One that was to cost nothing is refused, too
    if (held === undefined && isRefused) return
    if (held?.jobId !== jobId) report(HOLD, `nothing was held for it as ${event.reservationId}`)
    else if (held.hasEnded) report(HOLD, `${event.reservationId} had ended`)
  }

  #isHeard({ attempt, isRunning }: Entry, own: number, report: Report): void {
    if (own !== attempt) report(NEWEST, `${own} is heard, where ${attempt} is the newest`)
    else if (!isRunning) report(NEWEST, `${own} is heard, and was over`)
  }

  /** Checks an account event against the jobs of its holds. */
  follow(event: AccountEvent, report: Report): void {
    if (event._tag === "CreditReserved" && event.jobId !== undefined)
      this.#holds.set(event.reservationId, { jobId: event.jobId, hold: event, hasEnded: false })
    if (!(event._tag === "OperationSucceeded" || (event._tag === "Refunded" && event.stage === "reserved"))) return
    const held = this.#holds.get(event.reservationId)
    if (held === undefined) return
    held.hasEnded = true
    if (!this.#withJobs) return
    const end = this.#jobs.get(held.jobId)?.end
    if (end === undefined) return report(HOLD, `${held.jobId} has not ended`)
    if (event._tag === "OperationSucceeded") {
      if (end._tag !== "JobSucceeded" || end.quantity !== event.quantity || end.result.hash !== event.replyHash)
        report(HOLD, `${held.jobId} ended as ${end._tag}, or came to something else`)
    } else if (REASONS[end._tag]?.(end) !== event.reason) report(HOLD, `${held.jobId} ended as ${end._tag}, refunded as ${event.reason}`)
  }
}

const REASONS: Readonly<Partial<Record<End["_tag"], (end: End) => string>>> = {
  JobRefused: () => "abandoned",
  JobCancelled: () => "cancelled",
  JobFailed: (end) => (end._tag === "JobFailed" && end.failure === "TooLate" ? "expired" : "service_error")
}
