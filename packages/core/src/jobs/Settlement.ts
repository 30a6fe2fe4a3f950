/** Settles a job's hold: captures or releases it in the stream of the account that pays for the job. */
import type { Aggregate } from "@millrace/event-sourcing"
import { Effect } from "effect"
import * as Decisions from "../ledger/Decisions.ts"
import type { Ledger } from "../ledger/Ledger.ts"
import * as Job from "./Job.ts"

/** Settles the hold of a job that has ended. Idempotent; does nothing before the job's end. */
export const settle = (
  ledger: Ledger["Service"],
  jobId: string,
  { revision, state: job }: Aggregate.Current<Job.Job>
): Effect.Effect<void, Aggregate.Failure> => {
  const hold = holdOf(job)
  const decide = hold && decisionOf(hold.reservationId, job)
  if (hold === undefined || decide === undefined) return Effect.void
  const metadata = {
    ...("accepted" in job ? { $correlationId: job.accepted.requestId } : {}),
    // The event that ended the job: only a purge can come after it
    $causationId: `${Job.Job.category}-${jobId}@${"purged" in job && job.purged ? revision - 1 : revision}`
  }
  return Effect.asVoid(ledger.execute(hold.accountId, decide, metadata)).pipe(
    // `ReservationNotFound`: the hold ended so long ago that the account has forgotten it
    Effect.catchTag(["AlreadyEnded", "ReservationNotFound", "HoldExpired"], () => Effect.void),
    Effect.catchTag("ChargeExceedsHold", Effect.die)
  )
}

/** The hold of a job that has ended; undefined while the job is open or if it is free. */
const holdOf = (job: Job.Job): { readonly accountId: string; readonly reservationId: string } | undefined => {
  if (job.status === "refused") return job
  if (!Job.isEnded(job)) return undefined
  const { accountId, reservationId } = job.accepted
  return reservationId === null ? undefined : { accountId, reservationId }
}

const decisionOf = (reservationId: string, job: Job.Job) => {
  switch (job.status) {
    case "succeeded":
      return Decisions.settle({ reservationId, quantity: job.quantity, replyHash: job.result.hash })
    case "failed":
      return Decisions.release(reservationId, job.failure === "TooLate" ? "expired" : "service_error")
    case "cancelled":
      return Decisions.release(reservationId, "cancelled")
    case "refused":
      return Decisions.release(reservationId, "abandoned")
    default:
      return undefined
  }
}
