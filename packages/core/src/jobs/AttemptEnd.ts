/** Records how an attempt ended: a result, a failure, or a job handed back. */
import type { Aggregate, EventStore } from "@millrace/event-sourcing"
import { Cause, Effect, Exit, Random, Schema } from "effect"
import type { Vault, VaultFailure } from "../vault/Vault.ts"
import { Details } from "../work/JobOperation.ts"
import type { OperationError, OperationFailed } from "../work/OperationError.ts"
import * as Reason from "../work/Reason.ts"
import { retryTransient } from "../work/Transient.ts"
import { RETRY_STORE, Unreadable, type Worked } from "./AttemptWork.ts"
import type { LeaseLost } from "./Heartbeat.ts"
import * as Job from "./Job.ts"
import type { Jobs } from "./Jobs.ts"
import { jsonText } from "./JobView.ts"

export type AttemptError = OperationError | OperationFailed | VaultFailure | LeaseLost

/** The pause before the second attempt, and the longest pause between two attempts. Milliseconds. */
export interface BackOff {
  readonly first: number
  readonly longest: number
}

interface Needs {
  readonly jobs: Jobs["Service"]
  readonly vault: Vault["Service"]
  readonly backOff: BackOff
}

/** The attempt that ends. */
export interface Ending {
  readonly jobId: string
  readonly job: Job.Running
  /** Called with the log position of the end once it is recorded, before the job is settled. */
  readonly onEnd: (position: EventStore.Position) => void
}

/** How long a stopping runner tries to hand a job back. */
const HAND_BACK_WITHIN = "5 seconds"

/** Returns the log position of the attempt's end; undefined if it is unknown or another attempt has the job. */
export const record = (
  needs: Needs,
  { job, jobId, onEnd }: Ending,
  exit: Exit.Exit<Worked, AttemptError>
): Effect.Effect<EventStore.Position | undefined> => {
  if (Exit.isSuccess(exit)) return recorded(needs, { jobId, onEnd }, succeeded(needs, jobId, job, exit.value))
  const { cause } = exit
  if (Cause.hasInterruptsOnly(cause)) return handBack(needs, jobId, job)
  if (cause.reasons.some((reason) => reason._tag === "Fail" && reason.error._tag === "LeaseLost"))
    return Effect.as(Effect.logWarning("A job's lease was lost", { jobId, attempt: job.attempt }), undefined)
  return recorded(needs, { jobId, onEnd }, failed(needs, jobId, job, cause))
}

/** Releases a job that another runner may start at once. If the store does not answer, the lease ends. */
export const handBack = ({ jobs }: Pick<Needs, "jobs">, jobId: string, { attempt }: Job.Running): Effect.Effect<undefined> =>
  Effect.as(Effect.timeoutOption(Effect.exit(jobs.execute(jobId, Job.release(attempt))), HAND_BACK_WITHIN), undefined)

/** Appends the end of an attempt, with retries, and settles a job that it ends. */
const recorded = (
  { jobs }: Needs,
  { jobId, onEnd }: Omit<Ending, "job">,
  end: Effect.Effect<Aggregate.Committed<Job.Job, Job.JobEvent>, Job.AttemptOver | Aggregate.Failure | VaultFailure>
): Effect.Effect<EventStore.Position | undefined> =>
  jobs
    .whileEnding(
      jobId,
      end.pipe(
        retryTransient(RETRY_STORE),
        Effect.tap((committed) => {
          onEnd(committed.position)
          return Job.isEnded(committed.state) ? Effect.ignore(jobs.settleBy(jobId, committed)) : Effect.void
        })
      )
    )
    .pipe(
      Effect.map(({ position }) => position),
      Effect.catch((error) =>
        Effect.as(error._tag === "AttemptOver" ? Effect.void : Effect.logWarning("The end of a job was not recorded", error), undefined)
      )
    )

const succeeded = (needs: Needs, jobId: string, job: Job.Running, { artifacts, done }: Worked) =>
  needs.jobs.documents.keep({ jobId, accountId: job.accepted.accountId }, "result", done.data).pipe(
    Effect.flatMap((result) => needs.jobs.execute(jobId, Job.succeed(job.attempt, { quantity: done.quantity, result, artifacts }))),
    Effect.catchDefect((defect) => failed(needs, jobId, job, Cause.die(defect)))
  )

const encodeDetails = Schema.encodeSync(jsonText(Details))

const failed = Effect.fnUntraced(function* (
  { backOff, jobs, vault }: Needs,
  jobId: string,
  { accepted, attempt, tries }: Job.Running,
  cause: Cause.Cause<AttemptError>
) {
  const { details, failure, mayPass, reason } = failureOf(cause)
  const { accountId, operation, requestId } = accepted
  const facts = { requestId, accountId, operation, attempt, ...(reason === undefined ? {} : { reason }) }
  if (failure === "Defect" || failure === "Unreadable") yield* Effect.logError(`Job ${jobId} failed because of a bug`, facts, cause)
  else if (reason !== undefined) yield* Effect.logWarning("An attempt at a job failed", { jobId, ...facts })
  // The job fails even if its details cannot be stored
  const kept = details && (yield* Effect.option(jobs.documents.keep({ jobId, accountId }, "details", encodeDetails(details))))
  const random = yield* Random.next
  const after = Math.ceil(Math.min(backOff.longest, backOff.first * 2 ** (tries - 1)) * (1 - random / 2))
  const sealed = yield* Reason.seal(vault, accountId, reason)
  const decide = Job.fail(attempt, { failure, mayPass, after, details: kept?._tag === "Some" ? kept.value : undefined })
  return yield* jobs.execute(jobId, decide, sealed === undefined ? undefined : { failure: sealed })
})

interface AttemptFailure {
  readonly failure: Job.Failure
  /** Whether another attempt may succeed. */
  readonly mayPass: boolean
  readonly details?: Details
  /** The cause, for operators. */
  readonly reason?: string
}

const failureOf = (cause: Cause.Cause<AttemptError>): AttemptFailure => {
  for (const reason of cause.reasons) {
    if (reason._tag === "Die" && reason.defect instanceof Unreadable) return { failure: "Unreadable", mayPass: false }
    if (reason._tag !== "Fail") continue
    const { error } = reason
    switch (error._tag) {
      case "InvalidInput":
        return { failure: "InvalidInput", mayPass: false, details: { field: error.field, message: error.message } }
      case "DownloadUnavailable":
        return { failure: "UpstreamUnavailable", mayPass: false, reason: error.message }
      case "NotFound":
      case "UpstreamNotConfigured":
        return { failure: error._tag, mayPass: false }
      case "AddressNotVerified":
        return { failure: "InvalidInput", mayPass: false, details: { field: "account", message: error.message } }
      case "UpstreamUnavailable":
      case "StateUnavailable":
        return { failure: "UpstreamUnavailable", mayPass: true, reason: error.reason }
      case "TooManyJobs":
      case "TooManyPayments":
      case "TooManySubmissions":
        return { failure: "UpstreamUnavailable", mayPass: true }
      case "SubjectDestroyed":
      case "Tampered":
        return { failure: "Unreadable", mayPass: false }
      case "OperationFailed":
        return { failure: "Defect", mayPass: false, reason: error.reason }
      case "LeaseLost":
        break
    }
  }
  return { failure: "Defect", mayPass: false }
}
