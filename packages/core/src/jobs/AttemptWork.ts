/** The work of one attempt: opens the job's input, runs its operation, and records its progress. */
import type { Aggregate } from "@millrace/event-sourcing"
import { Effect, type Fiber, Function, Predicate, Schedule, Schema, type Stream } from "effect"
import { BlobStore } from "../vault/BlobStore.ts"
import { ofJob, type VaultFailure } from "../vault/Vault.ts"
import { inputOf } from "../work/Contract.ts"
import type { Artifact, JobOutcome, RunningJob } from "../work/JobOperation.ts"
import type { AnyJob } from "../work/Operation.ts"
import { type OperationError, type OperationFailed, UpstreamUnavailable } from "../work/OperationError.ts"
import { called, type Done, type Perform } from "../work/Perform.ts"
import * as Reason from "../work/Reason.ts"
import { retryTransient } from "../work/Transient.ts"
import type { Owner } from "./Documents.ts"
import * as Job from "./Job.ts"
import type { Jobs } from "./Jobs.ts"
import { jsonText } from "./JobView.ts"

/** The job's stored input or checkpoint cannot be decoded. */
export class Unreadable extends Error {
  override readonly name = "Unreadable"
}

export interface Worked {
  readonly done: Done
  readonly artifacts: ReadonlyArray<Artifact>
}

/** Retries a store for about ten seconds. */
export const RETRY_STORE = { schedule: Schedule.min([Schedule.exponential("100 millis"), Schedule.spaced("2 seconds")]), times: 8 } as const

export interface Attempt {
  readonly jobId: string
  readonly job: Job.Running
  /** The job's input as JSON text, where this process has it or is opening it. Otherwise it is opened. */
  readonly input: Effect.Effect<string, VaultFailure> | undefined
  /** Interrupts the attempt. Called when the store refuses an event because the attempt is over. */
  readonly lose: () => void
}

/**
 * Begins to open the input of a job that is about to be claimed, if the job is in memory: so that takes no time after the claim. Its store is
 * asked for the keys as ever.
 */
export const openEarly = (jobs: Jobs["Service"], jobId: string): Effect.Effect<Fiber.Fiber<string, VaultFailure> | undefined> =>
  Effect.suspend(() => {
    const job = jobs.known(jobId)
    if (job === undefined || !Job.isOpen(job)) return Effect.undefined
    const { accountId, input } = job.accepted
    return Effect.forkChild(jobs.documents.open({ jobId, accountId }, "input", input), { startImmediately: true })
  })

/** Runs the attempt's operation. */
export const work = <E extends OperationError, R>(
  { jobs, perform }: { readonly jobs: Jobs["Service"]; readonly perform: Perform },
  operation: AnyJob<E, R>,
  { input: text, job, jobId, lose }: Attempt
): Effect.Effect<Worked, E | UpstreamUnavailable | OperationFailed | VaultFailure, R> =>
  Effect.gen(function* () {
    const { accepted, attempt, checkpoint } = job
    const owner = { jobId, accountId: accepted.accountId }
    const { family } = operation
    const readInput = inputReaderOf(operation)
    const input = yield* readInput(yield* text ?? jobs.documents.open(owner, "input", accepted.input))
    // Made at the first progress, because many jobs report none
    let record: RunningJob<unknown>["progress"] | undefined
    const running: RunningJob<unknown> = {
      id: jobId,
      accountId: accepted.accountId,
      attempt,
      checkpoint: checkpoint && (yield* readerOf(family.checkpoint)(yield* jobs.documents.open(owner, "checkpoint", checkpoint))),
      progress: (percent, checkpoint) => {
        record ??= recorder(jobs, owner, job, family.checkpoint, lose)
        return record(percent, checkpoint)
      },
      store: <E, R>(content: Uint8Array | Stream.Stream<Uint8Array, E, R>, { contentType }: { readonly contentType: string }) =>
        stored(jobs, owner, content, contentType)
    }
    let artifacts: ReadonlyArray<Artifact> = []
    const ran = Effect.map(
      called(operation, "run", () => operation.run(input, running)),
      (outcome: JobOutcome<unknown>) => {
        artifacts = outcome.artifacts ?? []
        return outcome
      }
    )
    const performed = perform(operation, family.result, ran)
    const done = yield* Effect.mapError(performed, (error) => Reason.withoutInput(error, input))
    return { done, artifacts }
  })

/** Decodes JSON text. A text that does not fit is a defect, {@link Unreadable}. */
type Reader = (text: string) => Effect.Effect<unknown>

const readerOf = Function.memoize((schema: Schema.Codec<unknown, unknown>): Reader => {
  const decode = Schema.decodeUnknownEffect(jsonText(schema))
  return (text) => Effect.catch(decode(text), (error) => Effect.die(new Unreadable(error.message)))
})

const inputReaderOf = Function.memoize((operation: AnyJob): Reader => readerOf(inputOf(operation.route)))

const encoderOf = Function.memoize((schema: Schema.Codec<unknown, unknown>) => Schema.encodeSync(jsonText(schema)))

/**
 * Records progress durably. It removes the checkpoint before the last one, but not the last: a reader may be about to open it. Once the
 * attempt is over, it calls `lose` and never returns.
 */
const recorder = <Checkpoint>(
  jobs: Jobs["Service"],
  owner: Owner,
  { attempt, checkpoint: reached }: Job.Running,
  schema: Schema.Codec<Checkpoint, unknown>,
  lose: () => void
) => {
  let older: Job.Document | undefined
  let last = reached
  return Effect.fnUntraced(
    function* (percent: number, checkpoint?: Checkpoint) {
      const document = checkpoint === undefined ? undefined : yield* jobs.documents.keep(owner, "checkpoint", encoderOf(schema)(checkpoint))
      yield* jobs.execute(owner.jobId, Job.progress(attempt, percent, document))
      if (document === undefined) return
      if (older !== undefined) yield* Effect.ignore(jobs.documents.drop(owner, older))
      older = last
      last = document
    },
    retryTransient(RETRY_STORE),
    Effect.catchTag("AttemptOver", () => Effect.andThen(Effect.sync(lose), Effect.never)),
    Effect.mapError((error: Aggregate.Failure | VaultFailure) => unavailable("jobs", error))
  )
}

/** Stores a file. It is noted first, so that the sweep finds the files of attempts that died. */
const stored = <E, R>(
  { files }: Jobs["Service"],
  { accountId, jobId }: Owner,
  content: Uint8Array | Stream.Stream<Uint8Array, E, R>,
  contentType: string
): Effect.Effect<Artifact, E | UpstreamUnavailable, R | BlobStore> =>
  Effect.flatMap(BlobStore, (blobs) => blobs.put(ofJob(jobId, accountId), content, ({ id }) => files.note({ owner: jobId, id }))).pipe(
    Effect.map(({ id, size }) => ({ id, size, contentType })),
    Effect.mapError((error) => (isOfTheStore(error) ? unavailable("blobs", error) : (error as E)))
  )

const unavailable = (upstream: string, { _tag }: { readonly _tag: string }) =>
  new UpstreamUnavailable({ upstream, reason: _tag, isolated: true })

type StoreError = VaultFailure | { readonly _tag: "BlobUnavailable" }

const isOfTheStore = (error: unknown): error is StoreError =>
  ["BlobUnavailable", "SubjectDestroyed", "Tampered", "StateUnavailable"].some((tag) => Predicate.isTagged(error, tag))
