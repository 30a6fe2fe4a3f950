/**
 * Maintains jobs in the background, also after a process died. It releases a hold whose job was not accepted in time, fails a job past its
 * deadline, settles each ended job with its account, and purges documents and files after their retention.
 */
import {
  Deadlines,
  type EventHandlers,
  EventStore,
  Following,
  Lease,
  type Projection,
  Reaction,
  type StateStore
} from "@millrace/event-sourcing"
import { Clock, Context, Duration, Effect, Layer, Option, type Scope, Stream } from "effect"
import { Account } from "../ledger/Account.ts"
import type { Timestamp } from "../Timestamp.ts"
import { BlobStore } from "../vault/BlobStore.ts"
import * as Job from "./Job.ts"
import { Jobs } from "./Jobs.ts"

export interface UpkeepOptions extends Deadlines.Options {
  /** How often one of the hosts with a `BlobStore` removes files that no job needs and that are a day old: every 6 hours by default. */
  readonly sweepFilesEvery?: Duration.Input
}

/** The status of the sweep over the files of jobs. */
export interface FilesStatus {
  /** Whether this process runs the sweep. False without a `BlobStore`. */
  readonly leader: boolean
  /** The end of the last complete sweep, milliseconds since 1970. */
  readonly sweptAt: number | undefined
  /** How many unneeded files and leftovers of unfinished puts it removed. */
  readonly removed: { readonly files: number; readonly leftovers: number }
  /** Why the sweep fails now. It is retried. */
  readonly trouble: Following.Retrying | undefined
}

export class JobUpkeep extends Context.Service<
  JobUpkeep,
  {
    /** Jobs that should have been accepted, ended or purged by `now`, milliseconds since 1970. */
    readonly overdue: Deadlines.Deadlines["overdue"]
    /** Ids of all blobs that jobs return as artifacts. A running or dead attempt may have stored others. */
    readonly artifacts: Effect.Effect<
      ReadonlySet<string>,
      Projection.ProjectionBehind | Projection.ProjectionStopped | EventStore.StoreUnavailable
    >
    readonly status: Effect.Effect<{
      readonly deadlines: Deadlines.Status
      readonly settlements: Reaction.Status
      readonly files: FilesStatus
    }>
  }
>()("@millrace/core/jobs/JobUpkeep") {
  static readonly layer = (
    options: UpkeepOptions = {}
  ): Layer.Layer<JobUpkeep, never, Jobs | EventStore.EventStore | StateStore.StateStore> => Layer.effect(JobUpkeep, make(options))
}

/** The payload of a deadline: the hold of a job that is not accepted yet, or the artifacts of a job that has ended. */
interface Payload {
  readonly payer?: { readonly accountId: string; readonly reservationId: string }
  readonly artifacts?: ReadonlyArray<string>
}

const encode = (payload: Payload): string => JSON.stringify(payload)
const decode = (payload: string): Payload => (payload === "" ? {} : JSON.parse(payload))

/** At most this many settlements repeat after a crash. They are idempotent. */
const CHECKPOINT_EVERY = 100

const SWEEP_FILES_EVERY = "6 hours"
/** A file is kept this long after it was stored: an attempt may still use it that does not know yet that it is over. */
const GRACE = Duration.toMillis("1 day")

/** The deadlines of holds that wait for their job to be accepted. */
const holds = Deadlines.of(
  Account,
  {
    CreditReserved: ({ acceptBy, jobId, reservationId }, { id: accountId }) =>
      jobId === undefined || acceptBy === undefined
        ? []
        : [{ _tag: "set", key: jobId, dueAt: acceptBy, payload: encode({ payer: { accountId, reservationId } }) }]
  },
  { onlyWith: { CreditReserved: "jobId" } }
)

const retain = (
  { retainUntil }: { readonly retainUntil: Timestamp },
  { id: key }: EventHandlers.Origin
): ReadonlyArray<Deadlines.Change> => [{ _tag: "set", key, dueAt: retainUntil }]
const clear = (_: unknown, { id: key }: EventHandlers.Origin): ReadonlyArray<Deadlines.Change> => [{ _tag: "clear", key }]

/** The deadlines of jobs: to end, then to be purged. */
const lives = Deadlines.of(Job.Job, {
  JobAccepted: ({ deadline }, { id: key }) => [{ _tag: "set", key, dueAt: deadline }],
  JobRefused: clear,
  JobSucceeded: ({ artifacts, retainUntil }, { id: key }) => {
    const payload = artifacts.length === 0 ? "" : encode({ artifacts: artifacts.map(({ id }) => id) })
    return [{ _tag: "set", key, dueAt: retainUntil, payload }]
  },
  JobFailed: retain,
  JobCancelled: retain,
  JobPurged: clear
})

/** Handles a due deadline: refuses a job that was not accepted, fails an open job, or purges an ended one. */
const endDue = (jobs: Jobs["Service"]) =>
  Effect.fnUntraced(function* ({ key: jobId, payload }: Deadlines.Deadline) {
    const { payer } = decode(payload)
    if (payer === undefined) {
      yield* jobs.execute(jobId, Job.expire)
      yield* jobs.settle(jobId)
      const { state: job, at } = yield* jobs.read(jobId)
      if (Job.isEnded(job) && at >= job.retainUntil) yield* jobs.purge(jobId)
      return
    }
    yield* jobs.execute(jobId, Job.refuse(payer.accountId, payer.reservationId))
    yield* jobs.settle(jobId)
  })

/** Settles each ended job with its account. */
const settlementsOf = (jobs: Jobs["Service"]) => {
  const settle = (_: unknown, { id }: EventHandlers.Origin) => jobs.settle(id)
  const settleAndPurge = (_: unknown, { id }: EventHandlers.Origin) => Effect.andThen(jobs.settle(id), jobs.purge(id))
  return {
    name: "jobSettlements",
    start: "beginning",
    ...Reaction.of<Job.JobEvent, Effect.Error<ReturnType<typeof settleAndPurge>>>(Job.Job, {
      JobRefused: settleAndPurge,
      JobSucceeded: settle,
      JobFailed: settle,
      JobCancelled: settleAndPurge
    })
  } as const
}

const make = (
  options: UpkeepOptions
): Effect.Effect<JobUpkeep["Service"], never, Jobs | EventStore.EventStore | StateStore.StateStore | Scope.Scope> =>
  Effect.gen(function* () {
    const jobs = yield* Jobs
    const events = yield* EventStore.EventStore
    const deadlines = yield* Deadlines.make(
      { name: "jobDeadlines", version: 1, ...Deadlines.all(holds, lives), onDue: endDue(jobs) },
      options
    )
    const settlements = yield* Reaction.make(settlementsOf(jobs), { ...options, checkpointEvery: CHECKPOINT_EVERY })
    const artifacts = Effect.gen(function* () {
      const all = yield* deadlines.list({ atLeast: yield* events.head })
      return new Set(all.flatMap(({ payload }) => decode(payload).artifacts ?? []))
    })
    const blobs = yield* Effect.serviceOption(BlobStore)
    const files = Option.isNone(blobs) ? undefined : new FileSweeper(jobs, blobs.value, artifacts, options)
    if (files !== undefined) yield* Effect.forkScoped(Lease.keep("jobFiles", options)((lease) => files.lead(lease)))
    return JobUpkeep.of({
      overdue: deadlines.overdue,
      artifacts,
      status: Effect.all({
        deadlines: deadlines.status,
        settlements: settlements.status,
        files: Effect.sync(() => files?.status() ?? NO_FILES)
      })
    })
  })

const NO_FILES: FilesStatus = { leader: false, sweptAt: undefined, removed: { files: 0, leftovers: 0 }, trouble: undefined }

/** Removes files that no job needs, while it holds the lease. */
class FileSweeper {
  readonly #jobs: Jobs["Service"]
  readonly #blobs: BlobStore["Service"]
  readonly #artifacts: JobUpkeep["Service"]["artifacts"]
  readonly #every: Duration.Input
  #status = NO_FILES

  constructor(jobs: Jobs["Service"], blobs: BlobStore["Service"], artifacts: JobUpkeep["Service"]["artifacts"], options: UpkeepOptions) {
    this.#jobs = jobs
    this.#blobs = blobs
    this.#artifacts = artifacts
    this.#every = options.sweepFilesEvery ?? SWEEP_FILES_EVERY
  }

  status(): FilesStatus {
    return this.#status
  }

  #update(change: Partial<FilesStatus>): void {
    this.#status = { ...this.#status, ...change }
  }

  /** Sweeps at intervals until the lease is lost. */
  lead(lease: Lease.Held): Effect.Effect<never, Lease.LeaseLost> {
    const swept = this.#sweep(lease).pipe(
      Effect.as(Effect.void),
      Effect.catchTag("LeaseLost", (lost) => Effect.succeed(Effect.fail(lost)))
    )
    const once = Effect.flatten(Following.retryForever(swept, (trouble) => this.#update({ trouble })))
    return Effect.suspend(() => {
      this.#update({ leader: true })
      return Effect.forever(Effect.andThen(once, Effect.sleep(this.#every)))
    }).pipe(Effect.ensuring(Effect.sync(() => this.#update({ leader: false }))))
  }

  readonly #sweep = Effect.fn("JobUpkeep.sweepFiles")({ self: this }, function* (lease: Lease.Held) {
    const needed = yield* this.#artifacts
    const before = (yield* Clock.currentTimeMillis) - GRACE
    let files = 0
    yield* Stream.runForEach(this.#jobs.files.notedBy(before), ({ id, jobId }) =>
      Effect.gen({ self: this }, function* () {
        if (needed.has(id) || (yield* this.#isNeeded(jobId, id))) return
        yield* this.#blobs.remove(id)
        // A leader that lost its lease stops here. The file that it removed is needed by no job
        yield* lease.write([this.#jobs.files.forgotten({ jobId, id })])
        files++
        const { removed } = this.#status
        this.#update({ removed: { ...removed, files: removed.files + 1 } })
      })
    )
    // Other blobs may belong to something else, so only leftovers of unfinished puts are removed
    const { leftovers } = yield* this.#blobs.sweep(() => Effect.succeed(true), GRACE)
    const { removed } = this.#status
    this.#update({ removed: { ...removed, leftovers: removed.leftovers + leftovers }, sweptAt: yield* Clock.currentTimeMillis })
    if (files + leftovers > 0) yield* Effect.logInfo("Removed files that no job needs", { files, leftovers })
  })

  /**
   * An open job may still name the file, in this attempt or, from a checkpoint, in the next. A job that cannot be read may need it, too.
   */
  #isNeeded(jobId: string, id: string): Effect.Effect<boolean> {
    return Effect.map(Effect.option(this.#jobs.read(jobId)), (found) => {
      if (Option.isNone(found)) return true
      const { state: job } = found.value
      return Job.isOpen(job) || (job.status === "succeeded" && !job.purged && job.artifacts.some((artifact) => artifact.id === id))
    })
  }
}
