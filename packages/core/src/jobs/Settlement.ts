/** Settles a job's hold: captures or releases it in the stream of the account that pays for the job. */
import type { Aggregate } from "@millrace/event-sourcing"
import { Effect } from "effect"
import * as Decisions from "../ledger/Decisions.ts"
import type { Ledger } from "../ledger/Ledger.ts"
import * as Job from "./Job.ts"

/** Settles the hold of a job that has ended. Idempotent; does nothing before the job's end, or if the job is free. */
export const settle = (
  ledger: Ledger["Service"],
  jobId: string,
  { revision, state: job }: Aggregate.Current<Job.Job>
): Effect.Effect<void, Aggregate.Failure> => {
  if (job.status !== "refused" && !Job.isEnded(job)) return Effect.void
  const { accountId, reservationId } = job.status === "refused" ? job : job.accepted
  if (reservationId === null) return Effect.void
  const metadata = {
    ...("accepted" in job ? { $correlationId: job.accepted.requestId } : {}),
    // The event that ended the job: only a purge can come after it
    $causationId: `${Job.Job.category}-${jobId}@${"purged" in job && job.purged ? revision - 1 : revision}`
  }
  return Effect.asVoid(ledger.execute(accountId, decisionOf(reservationId, job), metadata)).pipe(
    // `ReservationNotFound`: the hold ended so long ago that the account has forgotten it
    Effect.catchTag(["AlreadyEnded", "ReservationNotFound", "HoldExpired"], () => Effect.void),
    Effect.catchTag("ChargeExceedsHold", Effect.die)
  )
}

const decisionOf = (reservationId: string, job: Job.Ended | Job.Refused) => {
  switch (job.status) {
    case "succeeded":
      return Decisions.settle({ reservationId, quantity: job.quantity, replyHash: job.result.hash })
    case "failed":
      return Decisions.release(reservationId, job.failure === "TooLate" ? "expired" : "service_error")
    case "cancelled":
      return Decisions.release(reservationId, "cancelled")
    case "refused":
      return Decisions.release(reservationId, "abandoned")
  }
}
