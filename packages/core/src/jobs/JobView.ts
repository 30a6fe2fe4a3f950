/** A job as those see it who asked for it. */
import { Effect, Schema } from "effect"
import { NotFound, UpstreamUnavailable } from "../operations/OperationError.ts"
import type { Timestamp } from "../Timestamp.ts"
import type * as Job from "./Job.ts"
import type { Jobs, Family as NamedFamily, Readable } from "./Jobs.ts"

/** Jobs that are read alike: what they come to, where they may go on from, and where they are read. */
export interface Family<A, Checkpoint, P extends `/${string}` = `/${string}`> extends NamedFamily {
  /** Where one is read; the parameter `job` is its id. */
  readonly path: P
  readonly result: Schema.Codec<A, unknown>
  readonly checkpoint: Schema.Codec<Checkpoint, unknown>
}

/** What is wrong with what was asked, for a job that failed with `InvalidInput`. */
export const Details = Schema.Struct({ field: Schema.String, message: Schema.String })
export type Details = typeof Details.Type

export type ReadError = NotFound | UpstreamUnavailable

export interface JobView<A, Checkpoint> {
  readonly id: string
  /** Its key. */
  readonly operation: string
  readonly status: "queued" | "running" | "succeeded" | "failed"
  /** 0 to 100. */
  readonly percent: number
  /** Units that it was asked for. */
  readonly quantity: number
  readonly acceptedAt: Timestamp
  readonly endedAt: Timestamp | undefined
  readonly failure: Job.Failure | undefined
  /** None unless it succeeded. */
  readonly artifacts: ReadonlyArray<Job.Artifact>
  /** What it came to, once it succeeded. */
  readonly result: Effect.Effect<A | undefined, ReadError>
  /** What it recorded last, also after its end; undefined where it never did. */
  readonly checkpoint: Effect.Effect<Checkpoint | undefined, ReadError>
  readonly details: Effect.Effect<Details | undefined, ReadError>
}

/** Seconds after which to ask again for a job that has not ended. */
export const RETRY_AFTER = 1

export const isOpen = ({ status }: Pick<JobView<never, never>, "status">): boolean => status === "queued" || status === "running"

/** What fails beneath a job that is read. The caller may try again; what was purged meanwhile is not there. */
export const unreadable =
  (resource: string) =>
  (error: { readonly _tag: string }): ReadError =>
    error instanceof NotFound
      ? error
      : error._tag === "SubjectDestroyed" || error._tag === "BlobNotFound"
        ? new NotFound({ resource })
        : new UpstreamUnavailable({ upstream: "jobs", reason: error._tag, isolated: true })

/** A schema's values as JSON text. */
export const jsonText = <A>(schema: Schema.Codec<A, unknown>): Schema.Codec<A, string> => Schema.fromJsonString(Schema.toCodecJson(schema))

const details = jsonText(Details)

/** Makes views of a family's jobs. */
export const viewer = <A, Checkpoint>(family: Family<A, Checkpoint>) => {
  const result = Schema.decodeUnknownEffect(jsonText(family.result))
  const checkpoint = Schema.decodeUnknownEffect(jsonText(family.checkpoint))
  const detailed = Schema.decodeUnknownEffect(details)
  return (jobs: Jobs["Service"], jobId: string, { job }: Readable): JobView<A, Checkpoint> => {
    const owner = { jobId, accountId: job.accepted.accountId }
    const opened = <T>(
      purpose: "result" | "checkpoint" | "details",
      document: Job.Document | undefined,
      decode: (text: string) => Effect.Effect<T, Schema.SchemaError>
    ): Effect.Effect<T | undefined, ReadError> =>
      document === undefined
        ? Effect.undefined
        : Effect.mapError(Effect.flatMap(jobs.documents.open(owner, purpose, document), decode), unreadable(family.resource))
    const ended = "endedAt" in job ? job : undefined
    return {
      id: jobId,
      operation: job.accepted.operation,
      status: job.status,
      percent: job.percent,
      quantity: job.accepted.quantity,
      acceptedAt: job.acceptedAt,
      endedAt: ended?.endedAt,
      failure: job.status === "failed" ? job.failure : undefined,
      artifacts: job.status === "succeeded" ? job.artifacts : [],
      result: opened("result", job.status === "succeeded" ? job.result : undefined, result),
      checkpoint: opened("checkpoint", job.checkpoint, checkpoint),
      details: opened("details", job.status === "failed" ? job.details : undefined, detailed)
    }
  }
}
