/** Operations that let callers read, cancel and download the jobs of any workload: three for each family of jobs. */
import { Operation } from "@millrace/core"
import { Effect, Schema } from "effect"
import { encoderOf } from "./Records.ts"

/** A job as a caller reads it, with all its data. */
export const JobView = Schema.Struct({
  id: Schema.String,
  operation: Schema.String,
  status: Schema.Literals(["queued", "running", "succeeded", "failed"]),
  percent: Schema.Int,
  quantity: Schema.Int,
  failure: Schema.NullOr(Schema.String),
  artifacts: Schema.Array(Schema.String),
  /** As JSON text. */
  result: Schema.NullOr(Schema.String),
  checkpoint: Schema.NullOr(Schema.String),
  message: Schema.NullOr(Schema.String)
})
export type JobView = typeof JobView.Type

export type JobAction = "read" | "cancel" | "download"

const PREFIX = "simulator"

/** The key of the operation that does this to the jobs of a family. */
export const keyOf = (action: JobAction, family: string): string => `${PREFIX}.${action}.${family}`

/** The action that an operation's key stands for; undefined for the workload's own operations. */
export const actionOf = (key: string): JobAction | undefined => {
  const [prefix, action] = key.split(".")
  return prefix === PREFIX && (action === "read" || action === "cancel" || action === "download") ? action : undefined
}

const optional = (textOf: (value: unknown) => string) => (value: unknown) => (value === undefined ? null : textOf(value))

const endpointsOf = (family: Operation.JobFamily<unknown, unknown>) => {
  const result = optional(encoderOf(family.result))
  const checkpoint = optional(encoderOf(family.checkpoint))
  return [
    Operation.readJob(keyOf("read", family.name), family, {
      summary: "Read a job",
      success: JobView,
      view: (job) =>
        Effect.gen(function* () {
          const { artifacts, failure = null, id, operation, percent, quantity, status } = job
          return {
            ...{ id, operation, status, percent, quantity, failure },
            artifacts: artifacts.map(({ id }) => id),
            result: result(yield* job.result),
            checkpoint: checkpoint(yield* job.checkpoint),
            message: (yield* job.details)?.message ?? null
          }
        })
    }),
    Operation.cancelJob(keyOf("cancel", family.name), family, { summary: "Cancel a job" }),
    Operation.downloadJob(keyOf("download", family.name), family, { summary: "Download a job's file", contentTypes: [] })
  ] as const
}

/** The endpoints for every family among these operations. They are all free. */
export const make = (operations: ReadonlyArray<Operation.Any>): ReadonlyArray<Operation.Any> => {
  const jobs = operations.filter((operation) => operation._tag === "Job")
  const families = new Map(jobs.map(({ family }) => [family.name, family]))
  return [...families.values()].flatMap(endpointsOf)
}
