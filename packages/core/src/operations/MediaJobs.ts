/** What jobs that make files have in common: how they are told to who asked for them. */
import { Effect, Schema } from "effect"
import type { JobView, ReadError } from "../work/JobOperation.ts"

/** Of the answer that made the job. */
export const Created = Schema.Struct({
  /** For every later call about the job. */
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
  /** Where the file is; null until there is one. */
  download_url: Schema.NullOr(Schema.String),
  /** How many files there are: the first is read at `download_url`, each of them there with `?part=`, counted from 1. */
  parts: Schema.Int,
  /** Why it failed, in words; null otherwise. A job that failed cost nothing. */
  error: Schema.NullOr(Schema.String)
})
export type MediaJob = typeof MediaJob.Type

/** `path`: where the job is read, with `:job`. */
export const view =
  (path: string) =>
  (job: JobView<unknown, unknown>): Effect.Effect<MediaJob, ReadError> =>
    Effect.map(job.details, (details) => ({
      job_id: job.id,
      status: job.status === "succeeded" ? "completed" : job.status === "failed" ? "failed" : "processing",
      download_url: job.artifacts.length === 0 ? null : `/api/v1${path.replace(":job", job.id)}/artifact`,
      parts: job.artifacts.length,
      error:
        job.status !== "failed"
          ? null
          : details === undefined
            ? "The service behind this operation failed."
            : `${details.field}: ${details.message}`
    }))

export const EXAMPLE_JOB = "job_01JD7X2M9G4YQ0V5Z8K3T6W1RB"

export const exampleOf = (path: string) => ({
  input: { job: EXAMPLE_JOB },
  data: {
    job_id: EXAMPLE_JOB,
    status: "completed" as const,
    download_url: `/api/v1${path.replace(":job", EXAMPLE_JOB)}/artifact`,
    parts: 1,
    error: null
  }
})
