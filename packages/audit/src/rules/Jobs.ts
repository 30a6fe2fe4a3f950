/** Rules of jobs: the account settles a job's hold as the job's stream says that the job ended. */
import type { Job } from "@millrace/core"
import { type Rule, rule, type Step, wholeOf } from "./Rule.ts"

export const jobRules: ReadonlyArray<Rule> = [
  // A job's hold is charged after the job succeeded, for its units and its result
  rule(
    "job-is-charged-for-its-result",
    ["OperationSucceeded"],
    (event, step) => {
      const job = jobOf(step)
      if (job === undefined) return undefined
      const other = otherReservation(job, event.reservationId)
      if (other !== undefined) return other
      if (job.status !== "succeeded") return `the job was ${job.status}`
      if (event.quantity !== job.quantity) return `${event.quantity} units were charged, but the job did ${job.quantity}`
      return event.replyHash === job.result.hash ? undefined : `result ${event.replyHash} was charged, but the job has ${job.result.hash}`
    },
    (event, step, say) => wholeOf(event, `for a job that ${endOf(step)}`, say)
  ),

  // A job's hold is released only after the job failed, was cancelled or refused, for that reason
  rule(
    "job-is-refunded-for-its-failure",
    ["Refunded"],
    (event, step) => {
      const job = event.stage === "settled" ? undefined : jobOf(step)
      if (job === undefined) return undefined
      const other = otherReservation(job, event.reservationId)
      if (other !== undefined) return other
      const reason = refundReason(job)
      if (reason === undefined) return `the job was ${job.status}`
      return reason === event.reason ? undefined : `the refund's reason is ${event.reason}, but the job was ${job.status}`
    },
    (event, step, say) => wholeOf(event, `for a job that ${endOf(step)}`, say)
  )
]

/** The job of the hold; undefined for other holds, and if the job's stream could not be replayed. */
const jobOf = ({ hold, jobs }: Step): Job.Job | undefined => (hold?.jobId === undefined ? undefined : jobs.get(hold.jobId))

/** How the job of the hold ended, for a sentence. */
const endOf = (step: Step): string => {
  const status = jobOf(step)?.status ?? "absent"
  if (status === "absent") return "is not in the log by then"
  if (status === "succeeded") return "succeeded, but with another result, quantity or hold"
  return status === "failed" ? "failed" : `was ${status}`
}

const otherReservation = (job: Job.Job, reservationId: string): string | undefined => {
  if (job.status === "absent") return "the job does not exist yet"
  const own = job.status === "refused" ? job.reservationId : job.accepted.reservationId
  return own === reservationId ? undefined : `the job belongs to reservation ${own}`
}

const refundReason = (job: Job.Job) => {
  if (job.status === "refused") return "abandoned"
  if (job.status === "cancelled") return "cancelled"
  return job.status !== "failed" ? undefined : job.failure === "TooLate" ? "expired" : "service_error"
}
