/** Where callers of any workload read, cancel and download their jobs: operations for each family among what is offered. */
import { Operation } from "@millrace/core"
import { Effect, Schema } from "effect"

type Family = Operation.JobFamily<unknown, unknown>

/** What a reader is shown of a job: all of it. */
export const Shown = Schema.Struct({
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
export type Shown = typeof Shown.Type

export type Act = "read" | "cancel" | "download"

const PREFIX = "simulator"

export const keyOf = (act: Act, family: string): string => `${PREFIX}.${act}.${family}`

/** What a key of the desk means; undefined for the workload's own operations. */
export const actOf = (key: string): Act | undefined => {
  const [prefix, act] = key.split(".")
  return prefix === PREFIX && (act === "read" || act === "cancel" || act === "download") ? act : undefined
}

const textOf = (schema: Schema.Codec<unknown, unknown>) => {
  const encode = Schema.encodeUnknownSync(Schema.toCodecJson(schema))
  return (value: unknown): string | null => (value === undefined ? null : JSON.stringify(encode(value)))
}

const ofFamily = (family: Family) => {
  const result = textOf(family.result)
  const checkpoint = textOf(family.checkpoint)
  return [
    Operation.readJob(keyOf("read", family.name), family, {
      summary: "All there is to read",
      success: Shown,
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
    Operation.cancelJob(keyOf("cancel", family.name), family, { summary: "Not wanted any more" }),
    Operation.downloadJob(keyOf("download", family.name), family, { summary: "A file", contentTypes: [] })
  ] as const
}

/** The operations of the desk, all free. */
export const make = (operations: ReadonlyArray<Operation.Any>): ReadonlyArray<Operation.Any> => {
  const families = new Map(
    operations.flatMap((operation) => (operation._tag === "Job" ? [[operation.family.name, operation.family] as const] : []))
  )
  return [...families.values()].flatMap(ofFamily)
}
