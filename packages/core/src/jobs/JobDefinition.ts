/** What an operation has that is a job: how it is accepted, how it is answered, and what runs it. */
import type { Aggregate, StateStore } from "@millrace/event-sourcing"
import { Clock, Duration, Effect, Schema, type Stream } from "effect"
import { UpstreamUnavailable } from "../operations/OperationError.ts"
import { BlobStore } from "../vault/BlobStore.ts"
import { ofJob, type VaultFailure } from "../vault/Vault.ts"
import * as Job from "./Job.ts"
import { Jobs } from "./Jobs.ts"
import { type Family, isOpen, type JobView, jsonText, type ReadError, unreadable, viewer } from "./JobView.ts"
import type { Limits } from "./Schedule.ts"

// what runs

/** What a job has in hand while it runs. */
export interface RunningJob<Checkpoint> {
  /** For an upstream that takes an idempotency key: every attempt has the same. */
  readonly id: string
  readonly accountId: string
  /** Counted from 1: greater for each later attempt, also after one that was handed back. */
  readonly attempt: number
  /** What an earlier attempt recorded last: where to go on. */
  readonly checkpoint: Checkpoint | undefined
  /** Records how far it is, 0 to 100, and where the next attempt may go on. Once it answers, that is durable. */
  readonly progress: (percent: number, checkpoint?: Checkpoint) => Effect.Effect<void, UpstreamUnavailable>
  /** Keeps a file, sealed, to be given back among the `artifacts`: never whole in memory. */
  readonly store: <E = never, R = never>(
    content: Uint8Array | Stream.Stream<Uint8Array, E, R>,
    options: { readonly contentType: string }
  ) => Effect.Effect<Job.Artifact, E | UpstreamUnavailable, R | BlobStore>
}

/** What a job came to. `quantity` when less was done than was held for. */
export interface JobOutcome<A> {
  readonly data: A
  readonly quantity?: number
  readonly artifacts?: ReadonlyArray<Job.Artifact>
}

/** An attempt as its runner gives it to {@link JobDefinition.perform}: documents as text. */
export interface Attempt {
  readonly jobId: string
  readonly accountId: string
  readonly attempt: number
  readonly input: string
  readonly checkpoint: string | undefined
  readonly progress: (percent: number, checkpoint: string | undefined) => Effect.Effect<void, UpstreamUnavailable>
}

// how it is called

/** A call that is to become a job. */
export interface JobCall {
  readonly accountId: string
  readonly requestId: string
  readonly jobId: string
  /** Null where nothing is held for it. */
  readonly reservationId: string | null
  readonly quantity: number
}

/** All is ready but the word: `data` is what the caller is answered once `accept` has made it a job. */
export interface Prepared<Success> {
  readonly data: Success
  readonly accept: Effect.Effect<void, Job.JobWasRefused | Aggregate.Failure>
}

/** The creation's answer as it would be given now. */
export interface JobAnswer {
  /** As JSON text. */
  readonly data: string
  readonly ended: boolean
}

export interface JobLimits extends Limits {
  /** Jobs of one account that may wait or run. */
  readonly ofAccount: number
}

export interface JobDefinition<Input, Success, E, R> {
  readonly family: Family<unknown, unknown>
  readonly limits: JobLimits
  readonly prepare: (input: Input, call: JobCall) => Effect.Effect<Prepared<Success>, VaultFailure, R>
  /** What became of a call that was to be a job. */
  readonly statusOf: (jobId: string) => Effect.Effect<"absent" | "refused" | "begun", Aggregate.Failure, R>
  readonly abandon: (call: JobCall) => Effect.Effect<void, Aggregate.Failure | StateStore.StateUnavailable, R>
  /** Waits for the job's end for so long, if it is told to, and answers as the creation would then. */
  readonly answer: (accountId: string, jobId: string, within?: Duration.Input) => Effect.Effect<JobAnswer, ReadError, R>
  /** `Schema.SchemaError`: what was kept cannot be read by this release. */
  readonly perform: (attempt: Attempt) => Effect.Effect<JobOutcome<unknown>, E | Schema.SchemaError, R>
}

export interface Options<Input, A, Checkpoint, Success, E, R> {
  readonly key: string
  readonly family: Family<A, Checkpoint>
  readonly input: Schema.Codec<Input, unknown>
  readonly success: Schema.Codec<Success, unknown>
  readonly created: (job: JobView<A, Checkpoint>) => Success
  readonly run: (input: Input, job: RunningJob<Checkpoint>) => Effect.Effect<JobOutcome<A>, E, R>
  readonly attempts: number
  readonly deadline: Duration.Input
  readonly retention: Duration.Input
  readonly limits: JobLimits
}

export const define = <Input, A, Checkpoint, Success, E, R>({
  key,
  family,
  input: inputSchema,
  success,
  created,
  run,
  attempts,
  deadline,
  retention,
  limits
}: Options<Input, A, Checkpoint, Success, E, R>): JobDefinition<Input, Success, E, R | Jobs> => {
  const input = jsonText(inputSchema)
  const encodeInput = Schema.encodeSync(input)
  const decodeInput = Schema.decodeUnknownEffect(input)
  const checkpoint = jsonText(family.checkpoint)
  const encodeCheckpoint = Schema.encodeSync(checkpoint)
  const decodeCheckpoint = Schema.decodeUnknownEffect(checkpoint)
  const encodeAnswer = Schema.encodeSync(jsonText(success))
  const viewOf = viewer(family)

  return {
    family,
    limits,

    prepare: Effect.fnUntraced(function* (asked, { accountId, jobId, quantity, requestId, reservationId }) {
      const jobs = yield* Jobs
      const now = yield* Clock.currentTimeMillis
      const accept: Job.Accept = {
        accountId,
        operation: key,
        family: family.name,
        requestId,
        reservationId,
        quantity,
        input: yield* jobs.documents.keep({ jobId, accountId }, "input", encodeInput(asked)),
        attempts,
        within: Duration.toMillis(deadline),
        retention: Duration.toMillis(jobs.retention ?? retention)
      }
      const { within: _, ...accepted } = accept
      const job = Job.Job.evolve(Job.Job.initial, { _tag: "JobAccepted", ...accepted, deadline: now + accept.within }, now)
      if (job.status !== "queued") return yield* Effect.die(new Error("A job that is accepted waits"))
      return {
        data: created(viewOf(jobs, jobId, { job, at: now })),
        accept: Effect.asVoid(jobs.execute(jobId, Job.accept(accept), { $correlationId: requestId }))
      }
    }),

    statusOf: (jobId) =>
      Effect.flatMap(Jobs, (jobs) =>
        Effect.map(jobs.read(jobId), ({ state: { status } }) => (status === "absent" || status === "refused" ? status : "begun"))
      ),

    abandon: (call) => Effect.flatMap(Jobs, (jobs) => jobs.abandon(call)),

    answer: Effect.fnUntraced(
      function* (accountId, jobId, within) {
        const jobs = yield* Jobs
        if (within !== undefined) yield* jobs.wait(jobId, within)
        const view = viewOf(jobs, jobId, yield* jobs.find(accountId, family, jobId))
        return { data: encodeAnswer(created(view)), ended: !isOpen(view) }
      },
      Effect.mapError(unreadable(family.resource))
    ),

    perform: Effect.fnUntraced(function* ({ accountId, attempt, checkpoint, input, jobId, progress }) {
      const { files } = yield* Jobs
      return yield* run(yield* decodeInput(input), {
        id: jobId,
        accountId,
        attempt,
        checkpoint: checkpoint === undefined ? undefined : yield* decodeCheckpoint(checkpoint),
        progress: (percent, reached) => progress(percent, reached === undefined ? undefined : encodeCheckpoint(reached)),
        store: (content, { contentType }) =>
          Effect.flatMap(BlobStore, (blobs) => blobs.put(ofJob(jobId, accountId), content, ({ id }) => files.note({ jobId, id }))).pipe(
            Effect.map(({ id, size }) => ({ id, size, contentType })),
            Effect.mapError((error) => (isOfTheStore(error) ? unstored(error) : error))
          )
      })
    })
  }
}

type StoreError = VaultFailure | { readonly _tag: "BlobUnavailable" }

const STORE_ERRORS: ReadonlySet<unknown> = new Set(["BlobUnavailable", "SubjectDestroyed", "Tampered", "StateUnavailable"])

const isOfTheStore = (error: unknown): error is StoreError =>
  typeof error === "object" && error !== null && "_tag" in error && STORE_ERRORS.has(error._tag)

const unstored = ({ _tag }: StoreError) => new UpstreamUnavailable({ upstream: "blobs", reason: _tag, isolated: true })
