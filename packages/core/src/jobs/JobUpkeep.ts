/**
 * Maintains jobs in the background, also after a process died. It releases a hold whose job was not accepted in time, fails a job past its
 * deadline, settles each ended job with its account, and purges documents and files after their retention.
 */
import { Deadlines, type EventHandlers, EventStore, Lease, type Projection, Reaction, type StateStore } from "@millrace/event-sourcing"
import { Context, type Duration, Effect, Layer, Option } from "effect"
import { Account } from "../ledger/Account.ts"
import type { Timestamp } from "../Timestamp.ts"
import { BlobStore } from "../vault/BlobStore.ts"
import * as FileSweeper from "./FileSweeper.ts"
import type { File } from "./Files.ts"
import * as Job from "./Job.ts"
import { Jobs } from "./Jobs.ts"

export interface UpkeepOptions extends Deadlines.Options {
  /** How often one of the hosts with a `BlobStore` removes files that no job needs and that are a day old: every 6 hours by default. */
  readonly sweepFilesEvery?: Duration.Input
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
  const settle = (_: unknown, { id }: EventHandlers.Origin) => jobs.settleOpen(id)
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

/** An open job may still name the file, in this attempt or, from a checkpoint, in the next. A job that cannot be read may need it, too. */
const mayBeNamed = (jobs: Jobs["Service"], { id, owner }: File): Effect.Effect<boolean> =>
  Effect.map(Effect.option(jobs.read(owner)), (found) => {
    if (Option.isNone(found)) return true
    const { state: job } = found.value
    return Job.isOpen(job) || (job.status === "succeeded" && !job.purged && job.artifacts.some((artifact) => artifact.id === id))
  })

const make = Effect.fnUntraced(function* (options: UpkeepOptions = {}) {
  const jobs = yield* Jobs
  const events = yield* EventStore.EventStore
  const deadlines = yield* Deadlines.make(
    { name: "jobDeadlines", version: 1, ...Deadlines.all(holds, lives), onDue: endDue(jobs) },
    options
  )
  const settlements = yield* Reaction.make(settlementsOf(jobs), { ...options, checkpointEvery: CHECKPOINT_EVERY })
  const artifacts: Effect.Effect<
    ReadonlySet<string>,
    Projection.ProjectionBehind | Projection.ProjectionStopped | EventStore.StoreUnavailable
  > = Effect.map(
    Effect.flatMap(events.head, (atLeast) => deadlines.list({ atLeast })),
    (all) => new Set(all.flatMap(({ payload }) => decode(payload).artifacts ?? []))
  )
  const isNeeded = Effect.map(artifacts, (needed) => (file: File) => (needed.has(file.id) ? Effect.succeed(true) : mayBeNamed(jobs, file)))
  const every = options.sweepFilesEvery === undefined ? {} : { every: options.sweepFilesEvery }
  const blobs = yield* Effect.serviceOption(BlobStore)
  const files = Option.isNone(blobs) ? undefined : FileSweeper.make({ files: jobs.files, isNeeded, ...every }, blobs.value)
  if (files !== undefined) yield* Effect.forkScoped(Lease.keep("jobFiles", options)((lease) => files.lead(lease)))
  return {
    /** Jobs that should have been accepted, ended or purged by `now`, milliseconds since 1970. */
    overdue: deadlines.overdue,
    /** Ids of all blobs that jobs return as artifacts. A running or dead attempt may have stored others. */
    artifacts,
    status: Effect.all({
      deadlines: deadlines.status,
      settlements: settlements.status,
      files: Effect.sync(() => files?.status() ?? FileSweeper.NOT_SWEEPING)
    })
  }
})

export class JobUpkeep extends Context.Service<JobUpkeep, Effect.Success<ReturnType<typeof make>>>()("@millrace/core/jobs/JobUpkeep") {
  static readonly layer = (options?: UpkeepOptions): Layer.Layer<JobUpkeep, never, Jobs | EventStore.EventStore | StateStore.StateStore> =>
    Layer.effect(this, make(options))
}
