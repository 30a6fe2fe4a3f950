/**
 * The service that accepts, reads, awaits, cancels and purges jobs. `JobRunner` runs them; `JobUpkeep` completes what a process left undone
 * when it died.
 */
import { Aggregate, type EventStore, Following, type Projection, type StateStore } from "@millrace/event-sourcing"
import { Context, Duration, Effect, Layer, Option } from "effect"
import { Ledger } from "../ledger/Ledger.ts"
import type { Timestamp } from "../Timestamp.ts"
import { BlobStore } from "../vault/BlobStore.ts"
import type { Vault } from "../vault/Vault.ts"
import type { JobFamily } from "../work/JobOperation.ts"
import { NotFound, TooManyJobs } from "../work/OperationError.ts"
import * as Documents from "./Documents.ts"
import * as EndWaiters from "./EndWaiters.ts"
import * as Files from "./Files.ts"
import * as Job from "./Job.ts"
import type { JobQueue } from "./JobQueue.ts"
import * as OpenJobs from "./OpenJobs.ts"
import * as Places from "./Places.ts"
import * as Settlement from "./Settlement.ts"

export interface JobsOptions extends Omit<Aggregate.Options<Job.Job>, "snapshots" | "queueLimit"> {
  /** The most open jobs of all accounts: 100,000 by default. Each takes about a kilobyte of memory at every host. */
  readonly queueLimit?: number
  /** How long results are kept after a job's end. Overrides the operations' settings. */
  readonly retention?: Duration.Input
  /**
   * Where small inputs and results are stored, sealed: in the state store, the default, or in the job's events. A release that cannot read
   * them in events fails such jobs, so first all hosts on the log must run one that can.
   */
  readonly documents?: Documents.Place
  /** Options of the projection of open jobs. */
  readonly openJobs?: Projection.Options
}

/** A call that becomes a job. */
export interface JobCall {
  readonly accountId: string
  readonly requestId: string
  readonly jobId: string
  /** Null if the job is free. */
  readonly reservationId: string | null
  readonly quantity: number
}

/** The name of a family of jobs, and of its resource in a 404. */
export type FamilyName = Pick<JobFamily<unknown, unknown>, "name" | "resource">

/** The present state of a job that its owner can read. */
export interface Readable {
  readonly job: Job.Queued | Job.Running | Job.Succeeded | Job.Failed
  readonly at: Timestamp
}

const QUEUE_LIMIT = 100_000
/** Seconds after which a caller who found the queue full may try again. */
const RETRY_AFTER = 5

const make = Effect.fnUntraced(function* ({
  documents: place = "state",
  openJobs: projectionOptions,
  queueLimit = QUEUE_LIMIT,
  retention,
  ...options
}: JobsOptions) {
  const ledger = yield* Ledger
  const blobs = Option.getOrUndefined(yield* Effect.serviceOption(BlobStore))
  const documents = yield* Documents.make(place)
  const files = yield* Files.make("jobFiles")
  const { begin, execute, known, read, refused } = yield* Aggregate.make(Job.Job, options)
  const openJobs = yield* OpenJobs.make(projectionOptions)
  const waiters = EndWaiters.make(openJobs)
  const places = Places.make(openJobs)
  yield* Effect.forkScoped(Following.retryForever(waiters.watch, () => {}))

  const { settle, settleBy, settleOpen, whileEnding } = Settlement.make(ledger, { known, read })

  const find = Effect.fnUntraced(function* (accountId: string, { name, resource }: FamilyName, jobId: string) {
    const { state: job, at } = Job.isId(jobId) ? yield* read(jobId) : { state: Job.Job.initial, at: 0 }
    if (!Job.isReadable(job, at) || job.accepted.accountId !== accountId || job.accepted.family !== name)
      return yield* new NotFound({ resource })
    return { job, at }
  })

  const purge = Effect.fnUntraced(function* (jobId: string) {
    const { state: job } = yield* read(jobId)
    if (job.status === "refused") {
      yield* documents.destroy({ jobId, accountId: job.accountId })
      return false
    }
    if (!Job.isEnded(job) || job.purged) return false
    yield* documents.destroy({ jobId, accountId: job.accepted.accountId })
    if (job.status === "succeeded" && blobs !== undefined)
      for (const { id } of job.artifacts) yield* Effect.andThen(blobs.remove(id), files.forget({ owner: jobId, id }))
    const { events } = yield* execute(jobId, Job.purge)
    return events.length > 0
  })

  const cancel = Effect.fnUntraced(function* (accountId: string, family: FamilyName, jobId: string) {
    yield* find(accountId, family, jobId)
    const committed = yield* execute(jobId, Job.cancel)
    const { events, state: job } = committed
    if (job.status !== "cancelled" && (yield* purge(jobId))) return false
    if (job.status !== "cancelled" || events.length === 0) return yield* new NotFound(family)
    // `JobUpkeep` repeats what fails here
    yield* Effect.ignore(Effect.andThen(settleBy(jobId, committed), purge(jobId)))
    return true
  }, Effect.uninterruptible)

  const abandon = Effect.fnUntraced(function* ({
    accountId,
    jobId,
    reservationId
  }: Pick<JobCall, "jobId" | "accountId" | "reservationId">) {
    const refuse = reservationId === null ? undefined : Job.refuse(accountId, reservationId)
    const { state } = yield* execute(jobId, (job, now) => (job.status === "absent" && refuse ? refuse(job) : Job.cancel(job, now)))
    yield* settle(jobId)
    if (state.status === "absent") yield* documents.destroy({ jobId, accountId })
    else if (state.status === "refused" || state.status === "cancelled") yield* Effect.ignore(purge(jobId))
  })

  return {
    /** Decides on a job: see `Job.ts`. */
    execute,
    /** Decides on a job whose id was just made, as `execute`, without reading its stream first. */
    begin,
    /** The present state of a job, including events that other hosts wrote. */
    read,
    /** The state of a job in memory, which may be old. Undefined if it is not in memory. */
    known,
    /** Jobs whose streams this host cannot read. */
    refused,
    /** The projection of open jobs. */
    openJobs,
    /** Places for jobs that this process accepts. */
    places,
    documents,
    files,
    /** The host's retention of results in milliseconds, if it overrides the operations' settings. */
    retention: retention === undefined ? undefined : Duration.toMillis(retention),
    /** An account's own job of a family. A job that is foreign, missing, refused, cancelled, purged or past its retention is not found. */
    find,
    /**
     * Cancels an open job, wherever it runs, and purges it; purges a job that has ended. Returns whether this call ended the job, which is
     * then free. Of several concurrent calls for a job, one succeeds and the others fail with `NotFound`.
     */
    cancel,
    /** Captures or releases the hold of a job that has ended. Idempotent; does nothing before the job's end. */
    settle,
    /** As `settle`, by the state right after the event that ended the job. */
    settleBy,
    /** Records the end of a job and settles it. `settleOpen` waits for that, because it would mostly find nothing left to do. */
    whileEnding,
    /** As `settle`. Asks no store if this host has in memory that the hold has ended: an end that is durable stays. */
    settleOpen,
    /** Destroys the documents and artifacts of a job that has ended or was refused. Returns whether this call recorded the purge. */
    purge,
    /** Refuses a job that was not accepted, or cancels an accepted one: for a call that could not confirm the acceptance to its caller. */
    abandon,
    /**
     * Fails if the queue is full, by a projection that may lag a moment. Answers at once if that does. `limit`: the most open jobs of this
     * account.
     */
    admit: (accountId: string, limit: number) =>
      Effect.flatMapEager(OpenJobs.current(openJobs), ({ state }) => roomFor(state, queueLimit, accountId, limit)),
    /** Waits at most `within` until the job has ended. */
    wait: (jobId: string, within: Duration.Input) => waiters.wait(jobId, read(jobId), within)
  }
})

const roomFor = (open: JobQueue, queueLimit: number, accountId: string, limit: number): Effect.Effect<void, TooManyJobs> =>
  open.size >= queueLimit
    ? Effect.fail(new TooManyJobs({ scope: "host", limit: queueLimit, retryAfter: RETRY_AFTER }))
    : open.sizeOf(accountId) >= limit
      ? Effect.fail(new TooManyJobs({ scope: "account", limit, retryAfter: RETRY_AFTER }))
      : Effect.void

export class Jobs extends Context.Service<Jobs, Effect.Success<ReturnType<typeof make>>>()("@millrace/core/jobs/Jobs") {
  /** With a `BlobStore`, the blobs of purged artifacts are removed. Without one they are unreadable as well, as their key is destroyed. */
  static readonly layer = (
    options: JobsOptions = {}
  ): Layer.Layer<Jobs, never, EventStore.EventStore | StateStore.StateStore | Vault | Ledger> => Layer.effect(this, make(options))
}
