/** Jobs as promises: work that takes longer than its call. One definition makes the call, and the operations that read, cancel and download. */
import { type BlobStore, Operation as Core, type InvalidInput, type OperationError, toIso } from "@millrace/core"
import { Effect, Schema, Stream } from "effect"
import { assertDefinition } from "./Mistakes.ts"
import {
  type AnyRoute,
  contractOf,
  type Described,
  type Input,
  type None,
  type Parsed,
  type Part,
  type Path,
  quoted,
  type Route,
  requestOf
} from "./Operation.ts"
import * as Schemas from "./Schemas.ts"
import { failureOf } from "./Throwable.ts"
import { outcomeOf, performed, type Result, type Returned, restored } from "./Work.ts"

/** A file that a job stored. `size` in bytes. */
export type Artifact = Core.Artifact

/** What the work of a job can use. */
export interface JobContext<Checkpoint> {
  /** The job's id, the same for all attempts: use it as the upstream's idempotency key. */
  readonly id: string
  /** The id of the account. */
  readonly account: string
  /** The attempt, from 1. */
  readonly attempt: number
  /** What the last attempt recorded by `progress`, to resume from. */
  readonly checkpoint: Checkpoint | undefined
  /** Aborts when the attempt is over: its time, its lease, a cancellation, or the server stops. */
  readonly signal: AbortSignal
  /** Records 0 to 100 percent, and what the next attempt resumes from. Durable once it resolves. */
  readonly progress: (percent: number, checkpoint?: Checkpoint) => Promise<void>
  /** Stores a sealed file. A stream is never whole in memory. The job's files are those its last attempt stored, in order. */
  readonly store: (content: Content, options: { readonly contentType: string }) => Promise<Artifact>
}

export type Content = string | Uint8Array | AsyncIterable<Uint8Array>

/** An operation that runs as a job. */
export interface Job<Input, Result, Services = never> {
  readonly _tag: "Job"
  readonly key: string
  /** Credits for each unit. */
  readonly price: number
  readonly core: Core.AnyJob<OperationError, BlobStore.BlobStore | Services>
  /** As of an operation. */
  readonly decode?: (input: unknown) => Effect.Effect<object, InvalidInput>
  /** Reads the result from its JSON. Undefined where the JSON is the result. */
  readonly decodeResult?: Schemas.Decode
  /** The operations that read, cancel and, where it has files, download a job. They are free. */
  readonly companions: Companions
  /** Only for inference. */
  readonly "~types"?: { readonly input: Input; readonly data: Accepted; readonly result: Result; readonly services: Services }
}

export interface Companions {
  readonly read: Core.Any
  readonly cancel?: Core.Any
  readonly download?: Core.Any
}

/** A job as its owner reads it. */
export interface JobView<Result> {
  readonly id: string
  readonly status: "queued" | "running" | "succeeded" | "failed"
  /** 0 to 100. */
  readonly percent: number
  /** ISO 8601. */
  readonly accepted_at: string
  readonly ended_at: string | null
  /** Null unless it has succeeded. */
  readonly result: Result | null
  /** Null unless it has failed. */
  readonly failure: { readonly code: string; readonly field: string | null; readonly message: string | null } | null
  /** `part`: its number, from 1; `size` in bytes. */
  readonly files: ReadonlyArray<{ readonly part: number; readonly size: number; readonly content_type: string }>
}

/** What the call of a job answers. */
export interface Accepted {
  readonly id: string
  readonly status: "queued" | "running" | "succeeded" | "failed"
}

/** Defines a job. Throws a sentence that names the job if its definition is wrong. */
export const job = <
  const P extends Path,
  Outcome extends Schemas.AnySchema,
  Query extends Part = None,
  Body extends Part = None,
  Checkpoint extends Part = None,
  Services = never
>(
  key: string,
  options: Described<Parsed<None, Query, Body>> & {
    readonly route: Route<P, None, Query, Body>
    readonly result: Outcome
    /** What an attempt records for the next one. */
    readonly checkpoint?: Checkpoint
    /** The media types of the files that it stores, such as `application/pdf`. */
    readonly files?: ReadonlyArray<string>
    /** 5 by default. */
    readonly attempts?: number
    /** Milliseconds from its acceptance after which a job that has not ended fails: 6 hours by default. */
    readonly deadline?: number
    /** Milliseconds for which result and files are kept: 24 hours by default. */
    readonly retention?: number
    readonly limits?: Partial<Core.JobLimits>
    readonly run: (
      input: Parsed<None, Query, Body>,
      job: JobContext<Schemas.DataOf<Checkpoint>>
    ) => Returned<Schemas.InputOf<Outcome> | Result<Schemas.InputOf<Outcome>>, Services>
  }
): Job<Input<None, Query, Body>, Schemas.DataOf<Outcome>, Services> => {
  assertDefinition(key, options, "result")
  const request = requestOf(key, options.route as AnyRoute)
  const result = Schemas.output(options.result, `the result of ${quoted(key)}`)
  const checkpoint = options.checkpoint && Schemas.output(options.checkpoint, `the checkpoint of ${quoted(key)}`)
  const family = Core.family<Schema.Json, Path, Schema.Json>(key, {
    resource: "job",
    path: `${options.route.path}/:job` as Path,
    result: Schemas.documented(result.jsonSchema),
    checkpoint: Schemas.documented(checkpoint?.jsonSchema ?? {})
  })
  const { attempts, deadline, limits, retention, timeout } = options
  const core = Core.job(key, {
    ...contractOf(key, options, request),
    family,
    success: Accepted,
    created: ({ id, status }) => ({ id, status }),
    ...defined({ attempts, deadline, limits, retention, timeout }),
    run: (sent: Readonly<Record<string, unknown>>, running) =>
      Effect.gen(function* () {
        const input = yield* request.parse(sent)
        const { artifacts, contextOf } = yield* contextsOf(key, running, checkpoint)
        const returned = yield* performed(key, (signal) => options.run(input as never, contextOf(signal) as never))
        const { data, quantity } = yield* outcomeOf(key, result, returned, options.quantity?.(input as never) ?? 1)
        return { data, artifacts, ...(quantity === undefined ? {} : { quantity }) }
      })
  })
  return {
    _tag: "Job",
    key,
    price: options.price,
    core: core as never,
    companions: companionsOf(key, options, family, result.jsonSchema),
    ...(result.decode && { decodeResult: result.decode })
  }
}

/** Leaves out what is undefined. */
const defined = <A extends object>(options: A): { [K in keyof A]: Exclude<A[K], undefined> } =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as never

/** What the work of an attempt gets, and the files that it stores. */
const contextsOf = Effect.fnUntraced(function* (key: string, running: Core.RunningJob<Schema.Json>, schema: Schemas.Output | undefined) {
  const last = running.checkpoint
  const resumed = last === undefined ? undefined : yield* restored(key, "checkpoint", schema?.decode, last)
  const encoded = (checkpoint: unknown) => (schema === undefined ? (checkpoint as Schema.Json) : schema.encode(checkpoint))
  const services = yield* Effect.context<BlobStore.BlobStore>()
  const artifacts: Array<Artifact> = []
  const contextOf = (signal: AbortSignal): JobContext<unknown> => {
    const run = <A, E>(effect: Effect.Effect<A, E, BlobStore.BlobStore>) => Effect.runPromiseWith(services)(effect, { signal })
    return {
      id: running.id,
      account: running.accountId,
      attempt: running.attempt,
      checkpoint: resumed,
      signal,
      progress: async (percent, checkpoint) => run(running.progress(percent, checkpoint === undefined ? undefined : encoded(checkpoint))),
      store: async (content, file) => {
        const artifact = await run(running.store(bytesOf(content), file))
        artifacts.push(artifact)
        return artifact
      }
    }
  }
  return { artifacts, contextOf }
})

const bytesOf = (content: Content): Uint8Array | Stream.Stream<Uint8Array, OperationError> =>
  typeof content === "string"
    ? new TextEncoder().encode(content)
    : content instanceof Uint8Array
      ? content
      : Stream.fromAsyncIterable(content, (error) => failureOf("job.store", error))

// the operations beside it

const STATUSES = ["queued", "running", "succeeded", "failed"] as const
const Accepted = Schema.Struct({ id: Schema.String, status: Schema.Literals(STATUSES) })

/** `report.write` and `read` make `report.readWrite`. */
const keyOf = (verb: string, key: string): string => {
  const [area = key, name = ""] = key.split(/\.(.*)/su)
  return `${area}.${verb}${name.charAt(0).toUpperCase()}${name.slice(1)}`
}

const companionsOf = (
  key: string,
  { files, summary }: { readonly files?: ReadonlyArray<string>; readonly summary: string },
  family: Core.JobFamily<Schema.Json, Schema.Json>,
  result: Schemas.JsonSchema
): Companions => {
  const read = readOf(keyOf("read", key), family, summary, result)
  const cancel = Core.cancelJob(keyOf("cancel", key), family, { summary: `Cancel: ${summary}` })
  if (files === undefined) return { read, cancel }
  const download = Core.downloadJob(keyOf("download", key), family, { summary: `Download a file: ${summary}`, contentTypes: files })
  return { read, cancel, download }
}

/** The operation that reads a job as {@link JobView}. `result`: the JSON Schema of the result. */
export const readOf = <A>(key: string, family: Core.JobFamily<A, unknown>, summary: string, result: Schemas.JsonSchema): Core.Any => {
  const View = Schema.Struct({
    id: Schema.String,
    status: Schema.Literals(STATUSES),
    /** 0 to 100. */
    percent: Schema.Finite,
    accepted_at: Schema.String,
    ended_at: Schema.NullOr(Schema.String),
    result: Schema.NullOr(Schemas.documented(result)),
    failure: Schema.NullOr(
      Schema.Struct({ code: Schema.String, field: Schema.NullOr(Schema.String), message: Schema.NullOr(Schema.String) })
    ),
    files: Schema.Array(Schema.Struct({ part: Schema.Int, size: Schema.Int, content_type: Schema.String }))
  })
  return Core.readJob(key, family, {
    summary: `Read: ${summary}`,
    success: View,
    view: Effect.fnUntraced(function* (job: Core.JobView<A, unknown>) {
      const details = yield* job.details
      return {
        id: job.id,
        status: job.status,
        percent: job.percent,
        accepted_at: toIso(job.acceptedAt),
        ended_at: job.endedAt === undefined ? null : toIso(job.endedAt),
        result: ((yield* job.result) ?? null) as Schema.Json,
        failure: job.failure === undefined ? null : { code: job.failure, field: details?.field ?? null, message: details?.message ?? null },
        files: job.artifacts.map(({ contentType, size }, index) => ({ part: index + 1, size, content_type: contentType }))
      }
    })
  })
}
