/** The replies that create and read jobs which make files. */
import { Effect, Schema } from "effect"
import type { JobView, ReadError } from "../work/JobOperation.ts"
import * as ApiPath from "./ApiPath.ts"

/** The reply to a call that creates a job. */
export const Created = Schema.Struct({
  /** The job's id, for later calls. */
  id: Schema.String,
  status: Schema.Literals(["processing", "succeeded", "failed"])
})

export const created = ({ id, status }: JobView<unknown, unknown>): typeof Created.Type => ({
  id,
  status: status === "succeeded" || status === "failed" ? status : "processing"
})

export const MediaJob = Schema.Struct({
  job_id: Schema.String,
  status: Schema.Literals(["processing", "completed", "failed"]),
  /** The path of the file; null until it exists. */
  download_url: ApiPath.mark(Schema.NullOr(Schema.String)),
  /** The number of files. `download_url` returns the first; `?part=` selects any of them, from 1. */
  parts: Schema.Int,
  /** Why the job failed; null if it did not. A failed job is free. */
  error: Schema.NullOr(Schema.String)
})
export type MediaJob = typeof MediaJob.Type

const artifactPath = (path: string, jobId: string): string => `${path.replace(":job", jobId)}/artifact`

/** The view of a job for its caller. `path`: the path of the job, with `:job` for its id. */
export const view =
  (path: string) =>
  (job: JobView<unknown, unknown>): Effect.Effect<MediaJob, ReadError> =>
    Effect.map(job.details, (details) => ({
      job_id: job.id,
      status: job.status === "succeeded" ? "completed" : job.status === "failed" ? "failed" : "processing",
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

/** A finished job for the documentation. */
export const exampleOf = (path: string) => ({
  input: { job: EXAMPLE_JOB },
  data: {
    job_id: EXAMPLE_JOB,
    status: "completed" as const,
    download_url: artifactPath(path, EXAMPLE_JOB),
    parts: 1,
    error: null
  }
})
