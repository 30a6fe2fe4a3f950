/**
 * Jobs as they are accepted, asked for, awaited and ended. What runs them is `JobRunner`; what sees to it that nothing of them is left
 * undone, `JobUpkeep`. Money moves in the account alone, after the job's stream has said how it ended.
 */
import type { Decide } from "@millrace/event-sourcing"
import { Aggregate, type EventStore, Following, type Projection, type StateStore } from "@millrace/event-sourcing"
import { Context, Deferred, type Duration, Effect, Layer, Option } from "effect"
import * as Decisions from "../ledger/Decisions.ts"
import { Ledger } from "../ledger/Ledger.ts"
import { NotFound, TooManyJobs } from "../operations/OperationError.ts"
import type { Timestamp } from "../Timestamp.ts"
import { BlobStore, type BlobUnavailable } from "../vault/BlobStore.ts"
import type { Vault } from "../vault/Vault.ts"
import * as Board from "./Board.ts"
import * as Documents from "./Documents.ts"
import * as Files from "./Files.ts"
import * as Job from "./Job.ts"

export interface JobsOptions extends Omit<Aggregate.Options<Job.Job>, "snapshots" | "queueLimit"> {
  /** Jobs that may wait or run, of all accounts: 100,000 by default. Each takes about a kilobyte of memory at every host. */
  readonly queueLimit?: number
  /** How long what a job came to is kept after its end, whatever its operation says. */
  readonly retention?: Duration.Input
  readonly board?: Projection.Options
}

/** What is asked of the queue before a job may enter it. */
export interface Admission {
  readonly accountId: string
  /** Jobs of the account that may wait or run. */
  readonly limit: number
}

/** A job that can be read, as it is now. */
export interface Readable {
  readonly job: Job.Queued | Job.Running | Job.Succeeded | Job.Failed
  readonly at: Timestamp
}

type Committed = Aggregate.Committed<Job.Job, Job.JobEvent>

export class Jobs extends Context.Service<
  Jobs,
  {
    readonly execute: <E>(
      jobId: string,
      decide: Decide<Job.Job, Job.JobEvent, E>,
      metadata?: Aggregate.Metadata
    ) => Effect.Effect<Committed, E | Aggregate.Failure>
    readonly read: (jobId: string) => Effect.Effect<Aggregate.Current<Job.Job>, Aggregate.Failure>
    /** Jobs that this host refuses to read at present. */
    readonly refused: () => ReadonlyArray<Aggregate.StreamRefused>
    /** The jobs that have not ended. */
    readonly board: Board.Board
    readonly documents: Documents.Documents
    readonly files: Files.Files
    /** Set by the host, for all operations. */
    readonly retention: Duration.Input | undefined
    /** Whether there is room: counted as the log was a moment ago. */
    readonly admit: (admission: Admission) => Effect.Effect<void, TooManyJobs | Projection.ProjectionBehind | Projection.ProjectionStopped>
    /** An account's own job of a family; the foreign, missing, refused, cancelled, purged or outdated are all the same. */
    readonly find: (accountId: string, family: Family, jobId: string) => Effect.Effect<Readable, NotFound | Aggregate.Failure>
    /**
     * Ends a job that has not ended, and purges it in any case. True when it was this that ended it: then it costs nothing. Interrupts it
     * wherever it runs.
     */
    readonly cancel: (
      accountId: string,
      family: Family,
      jobId: string
    ) => Effect.Effect<boolean, NotFound | Aggregate.Failure | StateStore.StateUnavailable | BlobUnavailable>
    /** Waits until the job has ended, at the longest `within`. Woken by the log. */
    readonly wait: (
      jobId: string,
      within: Duration.Input
    ) => Effect.Effect<void, Aggregate.Failure | Projection.ProjectionBehind | Projection.ProjectionStopped>
    /** Carries a job's end to its account: charged, or given back. Again, or before its end: nothing. */
    readonly settle: (jobId: string) => Effect.Effect<void, Aggregate.Failure>
    /** Destroys all that was sealed for a job that has ended or was refused. Again: nothing. */
    readonly purge: (jobId: string) => Effect.Effect<void, Aggregate.Failure | StateStore.StateUnavailable | BlobUnavailable>
    /**
     * Nobody shall pay for this job: refused if it was not accepted yet, else cancelled. For calls that cannot say that it was accepted.
     */
    readonly abandon: (call: {
      readonly jobId: string
      readonly accountId: string
      /** Null where nothing is held for it. */
      readonly reservationId: string | null
    }) => Effect.Effect<void, Aggregate.Failure | StateStore.StateUnavailable>
  }
>()("@millrace/core/jobs/Jobs") {
  /** Artifacts of purged jobs are removed where the host has a `BlobStore`; that nobody can read them any more does not depend on it. */
  static readonly layer = (
    options: JobsOptions = {}
  ): Layer.Layer<Jobs, never, EventStore.EventStore | StateStore.StateStore | Vault | Ledger> => Layer.effect(Jobs, make(options))
}

/** Jobs that are read alike. `resource`: what they are called where there is none. */
export interface Family {
  readonly name: string
  readonly resource: string
}

const QUEUE_LIMIT = 100_000
/** Seconds after which one who found the queue full may try again. */
const RETRY_AFTER = 5

const make = Effect.fnUntraced(function* ({ board: boardOptions, queueLimit = QUEUE_LIMIT, retention, ...options }: JobsOptions) {
  const ledger = yield* Ledger
  const blobs = yield* Effect.serviceOption(BlobStore)
  const documents = yield* Documents.make
  const files = yield* Files.make
  const { execute, read, refused } = yield* Aggregate.make(Job.Job, options)
  const board = yield* Board.make(boardOptions)

  const admit: Jobs["Service"]["admit"] = ({ accountId, limit }) =>
    Effect.flatMap(board.read(), ({ state }) =>
      state.size >= queueLimit
        ? Effect.fail(new TooManyJobs({ scope: "host", limit: queueLimit, retryAfter: RETRY_AFTER }))
        : state.sizeOf(accountId) >= limit
          ? Effect.fail(new TooManyJobs({ scope: "account", limit, retryAfter: RETRY_AFTER }))
          : Effect.void
    )

  const find: Jobs["Service"]["find"] = Effect.fnUntraced(function* (accountId, { name, resource }, jobId) {
    const { state: job, at } = Job.isId(jobId) ? yield* read(jobId) : { state: Job.Job.initial, at: 0 }
    if (!Job.isReadable(job, at) || job.accepted.accountId !== accountId || job.accepted.family !== name)
      return yield* new NotFound({ resource })
    return { job, at }
  })

  const cancel: Jobs["Service"]["cancel"] = Effect.fnUntraced(function* (accountId, family, jobId) {
    yield* find(accountId, family, jobId)
    const { events, state: job } = yield* execute(jobId, Job.cancel)
    if (job.status === "cancelled") {
      // Another one was first
      if (events.length === 0) return yield* new NotFound(family)
      // What of this fails now is done from the log
      yield* Effect.ignore(Effect.andThen(settle(jobId), purge(jobId)))
      return true
    }
    yield* purge(jobId)
    return false
  }, Effect.uninterruptible)

  // settling

  const settle: Jobs["Service"]["settle"] = (jobId) =>
    Effect.flatMap(read(jobId), ({ revision, state: job }) => {
      const account = payer(job)
      const decide = account && ending(account.reservationId, job)
      if (account === undefined || decide === undefined) return Effect.void
      const metadata = {
        ...("accepted" in job ? { $correlationId: job.accepted.requestId } : {}),
        // The event that ended it, of which only a purge can come after
        $causationId: `${Job.Job.category}-${jobId}@${"purged" in job && job.purged ? revision - 1 : revision}`
      }
      // Not known any more: it ended so long ago that the account forgot it
      return Effect.asVoid(ledger.execute(account.accountId, decide, metadata)).pipe(
        Effect.catchTag(["AlreadyEnded", "ReservationNotFound", "HoldExpired"], () => Effect.void),
        Effect.catchTag("ChargeExceedsHold", Effect.die)
      )
    })

  const purge: Jobs["Service"]["purge"] = Effect.fnUntraced(function* (jobId) {
    const { state: job } = yield* read(jobId)
    if (job.status === "refused") return yield* documents.destroy({ jobId, accountId: job.accountId })
    if (!Job.isEnded(job) || job.purged) return
    yield* documents.destroy({ jobId, accountId: job.accepted.accountId })
    if (job.status === "succeeded" && Option.isSome(blobs))
      for (const { id } of job.artifacts) yield* Effect.andThen(blobs.value.remove(id), files.forget({ jobId, id }))
    yield* execute(jobId, Job.purge)
  })

  const abandon: Jobs["Service"]["abandon"] = Effect.fnUntraced(function* ({ accountId, jobId, reservationId }) {
    const refuse = reservationId === null ? undefined : Job.refuse(accountId, reservationId)
    const { state } = yield* execute(jobId, (job, now) => (job.status === "absent" && refuse ? refuse(job) : Job.cancel(job, now)))
    yield* settle(jobId)
    if (state.status === "absent") yield* documents.destroy({ jobId, accountId })
    else if (state.status === "refused" || state.status === "cancelled") yield* Effect.ignore(purge(jobId))
  })

  // waiting

  const awaited = new Map<string, Set<Deferred.Deferred<void>>>()
  const tell = Effect.gen(function* () {
    for (;;) {
      const { position, state } = yield* board.read()
      for (const [jobId, waiting] of awaited)
        if (state.get(jobId) === undefined) for (const one of waiting) Deferred.doneUnsafe(one, Effect.void)
      yield* board.past(position)
    }
  })
  yield* Effect.forkScoped(Following.retryForever(tell, () => {}))

  const wait: Jobs["Service"]["wait"] = (jobId, within) => {
    const ended = Effect.acquireUseRelease(
      Effect.sync(() => Deferred.makeUnsafe<void>()),
      Effect.fnUntraced(function* (one) {
        const { position, state: job } = yield* read(jobId)
        if (!Job.isOpen(job)) return
        const { state } = yield* board.read({ atLeast: position, within })
        if (state.get(jobId) === undefined) return
        // Not before: a board that does not know the job yet would seem to say that it has ended. Whatever ends it after this is told
        awaited.set(jobId, (awaited.get(jobId) ?? new Set()).add(one))
        yield* Deferred.await(one)
      }),
      (one) =>
        Effect.sync(() => {
          const waiting = awaited.get(jobId)
          waiting?.delete(one)
          if (waiting?.size === 0) awaited.delete(jobId)
        })
    )
    return Effect.asVoid(Effect.timeoutOption(ended, within))
  }

  return Jobs.of({ execute, read, refused, board, documents, files, retention, admit, find, cancel, wait, settle, purge, abandon })
})

/** Who pays for a job that has ended, and by which reservation; undefined while it has not, or where nobody does. */
const payer = (job: Job.Job): { readonly accountId: string; readonly reservationId: string } | undefined => {
  if (job.status === "refused") return job
  if (!Job.isEnded(job)) return undefined
  const { accountId, reservationId } = job.accepted
  return reservationId === null ? undefined : { accountId, reservationId }
}

/** What its end means for the account. */
const ending = (reservationId: string, job: Job.Job) => {
  switch (job.status) {
    case "succeeded":
      return Decisions.settle({ reservationId, quantity: job.quantity, replyHash: job.result.hash })
    case "failed":
      return Decisions.refund(reservationId, job.failure === "TooLate" ? "expired" : "service_error")
    case "cancelled":
      return Decisions.refund(reservationId, "cancelled")
    case "refused":
      return Decisions.refund(reservationId, "abandoned")
    default:
      return undefined
  }
}
