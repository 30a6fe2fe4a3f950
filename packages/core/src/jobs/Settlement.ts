/** Settles a job's hold: captures or releases it in the stream of the account that pays for the job. */
import type { Aggregate } from "@millrace/event-sourcing"
import { Deferred, Effect } from "effect"
import { outcome } from "../ledger/Account.ts"
import * as Decisions from "../ledger/Decisions.ts"
import type { Ledger } from "../ledger/Ledger.ts"
import * as Job from "./Job.ts"

/** Settles the jobs of a host. */
export const make = (ledger: Ledger["Service"], { known, read }: Pick<Aggregate.Aggregate<Job.Job, Job.JobEvent>, "known" | "read">) => {
  /** The jobs whose ends this host records and settles now. */
  const ending = new Map<string, Deferred.Deferred<void>>()
  const settleBy = (jobId: string, job: Aggregate.Current<Job.Job>) => settleNow(ledger, jobId, job)
  const settle = (jobId: string) => Effect.flatMap(read(jobId), (job) => settleBy(jobId, job))
  /** Whether memory has the end of the hold. What is in memory is durable, and an end stays. */
  const isSettled = (jobId: string): boolean => {
    const job = known(jobId)
    if (job === undefined || !Job.isEnded(job)) return false
    const { accountId, reservationId } = job.accepted
    const account = ledger.known(accountId)
    return reservationId === null || (account !== undefined && outcome(account, reservationId) !== undefined)
  }
  return {
    settle,
    settleBy,
    settleOpen: (jobId: string): Effect.Effect<void, Aggregate.Failure> =>
      Effect.suspend(() => {
        const over = ending.get(jobId)
        const once = Effect.suspend(() => (isSettled(jobId) ? Effect.void : settle(jobId)))
        return over === undefined ? once : Effect.andThen(Deferred.await(over), once)
      }),
    whileEnding: <A, E>(jobId: string, end: Effect.Effect<A, E>): Effect.Effect<A, E> =>
      Effect.suspend(() => {
        const over = Deferred.makeUnsafe<void>()
        ending.set(jobId, over)
        const done = Effect.sync(() => {
          ending.delete(jobId)
          Deferred.doneUnsafe(over, Effect.void)
        })
        return Effect.ensuring(end, done)
      })
  }
}

/** Settles the hold of a job that has ended. Idempotent; does nothing before the job's end, or if the job is free. */
const settleNow = (
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
  return Effect.matchEffect(ledger.execute(accountId, decisionOf(reservationId, job), metadata), {
    onSuccess: () => Effect.void,
    onFailure
  })
}

type Refusal = Decisions.AlreadyEnded | Decisions.ReservationNotFound | Decisions.HoldExpired | Decisions.ChargeExceedsHold

const onFailure = (error: Refusal | Aggregate.Failure): Effect.Effect<void, Aggregate.Failure> => {
  switch (error._tag) {
    case "AlreadyEnded":
    case "HoldExpired":
    // The hold ended so long ago that the account has forgotten it
    case "ReservationNotFound":
      return Effect.void
    case "ChargeExceedsHold":
      return Effect.die(error)
    default:
      return Effect.fail(error)
  }
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
