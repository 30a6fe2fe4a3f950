/** Rules of jobs: the account settles a job's hold as the job's stream says that the job ended. */
import type { Job } from "@millrace/core"
import { rule } from "./Rule.ts"

/** Why the account's event contradicts the job. */
const notOf = (job: Job.Job, reservationId: string): string | undefined => {
  if (job.status === "absent") return "the job had not begun"
  const named = job.status === "refused" ? job.reservationId : job.accepted.reservationId
  return named === reservationId ? undefined : `the job is of reservation ${named}`
}

/** A job's hold is charged after the job succeeded, for its units and its result. */
export const jobIsChargedForItsResult = rule("job-is-charged-for-its-result", ["OperationSucceeded"], (event, { hold, jobs }) => {
  const job = hold?.jobId === undefined ? undefined : jobs.get(hold.jobId)
  if (job === undefined) return undefined
  const other = notOf(job, event.reservationId)
  if (other !== undefined) return other
  if (job.status !== "succeeded") return `the job was ${job.status}`
  if (event.quantity !== job.quantity) return `${event.quantity} was charged, ${job.quantity} done`
  return event.replyHash === job.result.hash ? undefined : `result ${event.replyHash} was charged, ${job.result.hash} recorded`
})

/** A job's hold is released only after the job failed, was cancelled or refused, for that reason. */
export const jobIsRefundedForItsFailure = rule("job-is-refunded-for-its-failure", ["Refunded"], (event, { hold, jobs }) => {
  const job = hold?.jobId === undefined || event.stage === "settled" ? undefined : jobs.get(hold.jobId)
  if (job === undefined) return undefined
  const other = notOf(job, event.reservationId)
  if (other !== undefined) return other
  const reason = reasonOf(job)
  if (reason === undefined) return `the job was ${job.status}`
  return reason === event.reason ? undefined : `it went back as ${event.reason}, the job ${job.status}`
})

const reasonOf = (job: Job.Job) => {
  switch (job.status) {
    case "refused":
      return "abandoned"
    case "cancelled":
      return "cancelled"
    case "failed":
      return job.failure === "TooLate" ? "expired" : "service_error"
    default:
      return undefined
  }
}
