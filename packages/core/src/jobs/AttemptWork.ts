/** The work of one attempt: opens the job's input, runs its operation, and records its progress. */
import type { Aggregate } from "@millrace/event-sourcing"
import { Deferred, Effect, Predicate, Schedule, Schema, type Stream } from "effect"
import { BlobStore } from "../vault/BlobStore.ts"
import { ofJob, type VaultFailure } from "../vault/Vault.ts"
import { inputOf } from "../work/Contract.ts"
import type { Artifact, JobOutcome, RunningJob } from "../work/JobOperation.ts"
import type { AnyJob } from "../work/Operation.ts"
import { type OperationError, type OperationFailed, UpstreamUnavailable } from "../work/OperationError.ts"
import { called, type Done, type Perform } from "../work/Perform.ts"
import * as Reason from "../work/Reason.ts"
import { isTransient } from "../work/Transient.ts"
import type { Owner } from "./Documents.ts"
import { LeaseLost } from "./Heartbeat.ts"
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

/** Runs the attempt's operation. Fails `lost` when the store refuses an event because the attempt is over. */
export const work = <E extends OperationError, R>(
  { jobs, perform }: { readonly jobs: Jobs["Service"]; readonly perform: Perform },
  operation: AnyJob<E, R>,
  jobId: string,
  job: Job.Running,
  lost: Deferred.Deferred<never, LeaseLost>
): Effect.Effect<Worked, E | UpstreamUnavailable | OperationFailed | VaultFailure, R> =>
  Effect.gen(function* () {
    const { accepted, attempt, checkpoint } = job
    const owner = { jobId, accountId: accepted.accountId }
    const { family } = operation
    const input = yield* opened(jobs, owner, "input", accepted.input, inputOf(operation.route))
    const running: RunningJob<unknown> = {
      id: jobId,
      accountId: accepted.accountId,
      attempt,
      checkpoint: checkpoint === undefined ? undefined : yield* opened(jobs, owner, "checkpoint", checkpoint, family.checkpoint),
      progress: recorder(jobs, owner, job, family.checkpoint, lost),
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

const opened = <A>(
  jobs: Jobs["Service"],
  owner: Owner,
  purpose: "input" | "checkpoint",
  document: Job.Document,
  schema: Schema.Codec<A, unknown>
): Effect.Effect<A, VaultFailure> =>
  Effect.flatMap(jobs.documents.open(owner, purpose, document), (text) =>
    Effect.catch(Schema.decodeUnknownEffect(jsonText(schema))(text), (error) => Effect.die(new Unreadable(error.message)))
  )

/**
 * Records progress durably. It removes the checkpoint before the last one, but not the last: a reader may be about to open it. Once the
 * attempt is over, it fails `lost` and never returns.
 */
const recorder = <Checkpoint>(
  jobs: Jobs["Service"],
  owner: Owner,
  { attempt, checkpoint: reached }: Job.Running,
  schema: Schema.Codec<Checkpoint, unknown>,
  lost: Deferred.Deferred<never, LeaseLost>
) => {
  const encode = Schema.encodeSync(jsonText(schema))
  let older: Job.Document | undefined
  let last = reached
  return Effect.fnUntraced(
    function* (percent: number, checkpoint?: Checkpoint) {
      const document = checkpoint === undefined ? undefined : yield* jobs.documents.keep(owner, "checkpoint", encode(checkpoint))
      yield* jobs.execute(owner.jobId, Job.progress(attempt, percent, document))
      if (document === undefined) return
      if (older !== undefined) yield* Effect.ignore(jobs.documents.drop(owner, older))
      older = last
      last = document
    },
    Effect.retry({ while: isTransient, ...RETRY_STORE }),
    Effect.catchTag("AttemptOver", () => Effect.andThen(Deferred.fail(lost, new LeaseLost()), Effect.never)),
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
