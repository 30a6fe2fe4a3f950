/** Builds the view of a job for its owner. Sealed documents are opened only when they are read. */
import { Effect, Function, Schema } from "effect"
import { Details, type JobFamily, type JobView, type ReadError } from "../work/JobOperation.ts"
import { NotFound, UpstreamUnavailable } from "../work/OperationError.ts"
import type { Purpose } from "./Documents.ts"
import type * as Job from "./Job.ts"
import type { Jobs, Readable } from "./Jobs.ts"

/** Seconds after which a client should ask again for an open job. */
export const RETRY_AFTER = 1

export const isOpen = ({ status }: Pick<JobView<never, never>, "status">): boolean => status === "queued" || status === "running"

/** Maps a storage error to one for the job's reader: a purged job is not found; any other error may be temporary. */
export const unreadable =
  (resource: string, upstream = "jobs") =>
  (error: { readonly _tag: string }): ReadError =>
    error instanceof NotFound
      ? error
      : error._tag === "SubjectDestroyed" || error._tag === "BlobNotFound"
        ? new NotFound({ resource })
        : new UpstreamUnavailable({ upstream, reason: error._tag, isolated: true })

/** The codec of a schema's values as JSON text. */
export const jsonText = <A>(schema: Schema.Codec<A, unknown>): Schema.Codec<A, string> => Schema.fromJsonString(Schema.toCodecJson(schema))

const decodeDetails = Schema.decodeUnknownEffect(jsonText(Details))

type Viewer<A, Checkpoint> = (jobs: Jobs["Service"], jobId: string, job: Readable) => JobView<A, Checkpoint>

/** Returns the function that builds views of a family's jobs. */
export const viewer = <A, Checkpoint>(family: JobFamily<A, Checkpoint>) => viewerOf(family) as Viewer<A, Checkpoint>

const viewerOf = Function.memoize((family: JobFamily<unknown, unknown>): Viewer<unknown, unknown> => {
  const decodeResult = Schema.decodeUnknownEffect(jsonText(family.result))
  const decodeCheckpoint = Schema.decodeUnknownEffect(jsonText(family.checkpoint))
  return (jobs, jobId, { job }) => {
    const owner = { jobId, accountId: job.accepted.accountId }
    const opened = <T>(
      purpose: Purpose,
      document: Job.Document | undefined,
      decode: (text: string) => Effect.Effect<T, Schema.SchemaError>
    ): Effect.Effect<T | undefined, ReadError> =>
      document === undefined
        ? Effect.undefined
        : Effect.mapError(Effect.flatMap(jobs.documents.open(owner, purpose, document), decode), unreadable(family.resource))
    return {
      id: jobId,
      operation: job.accepted.operation,
      status: job.status,
      percent: job.percent,
      quantity: job.accepted.quantity,
      acceptedAt: job.acceptedAt,
      endedAt: "endedAt" in job ? job.endedAt : undefined,
      failure: job.status === "failed" ? job.failure : undefined,
      artifacts: job.status === "succeeded" ? job.artifacts : [],
      result: opened("result", job.status === "succeeded" ? job.result : undefined, decodeResult),
      checkpoint: opened("checkpoint", job.checkpoint, decodeCheckpoint),
      details: opened("details", job.status === "failed" ? job.details : undefined, decodeDetails)
    }
  }
})
