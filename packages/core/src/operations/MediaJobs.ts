/** What operations on jobs that make files have in common. */
import { Effect, Schema } from "effect"
import * as JobOperations from "../jobs/JobOperations.ts"
import type { Path } from "../work/Contract.ts"
import type { JobFamily, JobView, ReadError } from "../work/JobOperation.ts"
import * as ApiPath from "./ApiPath.ts"

/** The reply to a call that creates a job. */
const Created = Schema.Struct({
  /** The job's id, for later calls. */
  id: Schema.String,
  status: Schema.Literals(["processing", "succeeded", "failed"])
})

const created = ({ id, status }: JobView<unknown, unknown>): typeof Created.Type => ({
  id,
  status: status === "succeeded" || status === "failed" ? status : "processing"
})

/** The status of a job in replies. */
export const Status = Schema.Literals(["processing", "completed", "failed"])

export const statusOf = (status: JobView<unknown, unknown>["status"]): typeof Status.Type =>
  status === "succeeded" ? "completed" : status === "failed" ? "failed" : "processing"

const MediaJob = Schema.Struct({
  job_id: Schema.String,
  status: Status,
  /** The path of the file; null until it exists. */
  download_url: ApiPath.mark(Schema.NullOr(Schema.String)),
  /** The number of files. `download_url` returns the first; `?part=` selects any of them, from 1. */
  parts: Schema.Int,
  /** Why the job failed; null if it did not. A failed job is free. */
  error: Schema.NullOr(Schema.String)
})
type MediaJob = typeof MediaJob.Type

const artifactPath = (path: string, jobId: string): string => `${path.replace(":job", jobId)}/artifact`

/** The view of a job for its caller. `path`: the path of the job, with `:job` for its id. */
const view =
  (path: string) =>
  (job: JobView<unknown, unknown>): Effect.Effect<MediaJob, ReadError> =>
    Effect.map(job.details, (details) => ({
      job_id: job.id,
      status: statusOf(job.status),
      download_url: job.artifacts.length === 0 ? null : artifactPath(path, job.id),
      parts: job.artifacts.length,
      error:
        job.status !== "failed"
          ? null
          : details === undefined
            ? "The service behind this operation failed."
            : `${details.field}: ${details.message}`
    }))

export const EXAMPLE_JOB = "job_01JD7X2M9G4YQ0V5Z8K3T6W1RB"

/** What all operations that create such jobs of an area have in common. */
export const creates = (area: string) => ({
  success: Created,
  created,
  links: [
    { operation: `${area}.read`, parameters: { job: "/id" } },
    { operation: `${area}.download`, parameters: { job: "/id" } }
  ]
})

/** The operations that read and cancel the jobs of a family, and download their files. `summaries` describe them. */
export const operationsOf = <const Area extends string, const P extends Path>(
  area: Area,
  family: JobFamily<unknown, unknown, P>,
  {
    summaries,
    contentTypes
  }: { readonly summaries: Readonly<Record<"read" | "cancel" | "download", string>>; readonly contentTypes: ReadonlyArray<string> }
) => ({
  read: JobOperations.readJob(`${area}.read`, family, {
    summary: summaries.read,
    success: MediaJob,
    view: view(family.path),
    example: {
      input: { job: EXAMPLE_JOB },
      data: { job_id: EXAMPLE_JOB, status: "completed", download_url: artifactPath(family.path, EXAMPLE_JOB), parts: 1, error: null }
    },
    links: [{ operation: `${area}.download`, parameters: { job: "/job_id" } }]
  }),
  cancel: JobOperations.cancelJob(`${area}.cancel`, family, {
    summary: summaries.cancel,
    example: { input: { job: EXAMPLE_JOB }, data: { cancelled: true, job_id: EXAMPLE_JOB } }
  }),
  download: JobOperations.downloadJob(`${area}.download`, family, {
    summary: summaries.download,
    contentTypes,
    example: { job: EXAMPLE_JOB }
  })
})
