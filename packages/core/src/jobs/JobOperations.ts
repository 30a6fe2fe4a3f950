/** Operations that a family of jobs can have: read a job, cancel it, download its artifacts. */
import { Effect, Schema, Struct } from "effect"
import { BlobStore } from "../vault/BlobStore.ts"
import { ofJob } from "../vault/Vault.ts"
import { type Call, make } from "../work/CallOperation.ts"
import type { Fields, Input, Link, Page, Path, Route } from "../work/Contract.ts"
import { type Download, type File, file } from "../work/FileOperation.ts"
import type { JobFamily, JobView, ReadError } from "../work/JobOperation.ts"
import { NotFound } from "../work/OperationError.ts"
import { Jobs } from "./Jobs.ts"
import { isOpen, RETRY_AFTER, unreadable, viewer } from "./JobView.ts"

/** Accepts any text: one that is not a job id is answered as not found, like an unknown job. */
const JobParams = { job: Schema.String.check(Schema.isMinLength(1), Schema.isMaxCodePoints(100)) }
type JobParams = typeof JobParams
type JobRoute<Method extends string, P extends Path, Query extends Fields = {}> = Route<Method, P, JobParams, Query, {}>

interface Documented {
  readonly summary: string
  readonly description?: string
  /** Free by default. */
  readonly price?: number
}

/** An operation that reads a family's jobs. `view` builds the reply; it may depend on the query, such as a page of the results. */
export const readJob = <
  const Key extends string,
  A,
  Checkpoint,
  const P extends Path,
  Success extends Schema.Top,
  E extends ReadError,
  R,
  Query extends Fields = {}
>(
  key: Key,
  family: JobFamily<A, Checkpoint, P>,
  options: Documented & {
    readonly query?: Query
    readonly success: Success
    readonly view: (job: JobView<A, Checkpoint>, input: Input<JobRoute<"GET", P, Query>>) => Effect.Effect<Success["Type"], E, R>
    /** Describes the page, if the reply is one of many. */
    readonly page?: (data: NoInfer<Success["Type"]>, input: Input<JobRoute<"GET", P, Query>>) => Page
    readonly example?: { readonly input: NoInfer<Input<JobRoute<"GET", P, Query>>>; readonly data: NoInfer<Success["Type"]> }
    readonly links?: ReadonlyArray<Link>
  }
): Call<Key, JobRoute<"GET", P, Query>, Success, E | ReadError, R | Jobs> => {
  const viewOf = viewer(family)
  return make<Key, JobRoute<"GET", P, Query>, Success, E | ReadError, R | Jobs>(key, {
    price: 0,
    ...Struct.omit(options, ["page", "query", "view"]),
    route: { method: "GET", path: family.path, params: JobParams, query: options.query ?? ({} as Query), body: {}, status: 200 },
    local: true,
    run: Effect.fnUntraced(function* (input: Input<JobRoute<"GET", P, Query>>, { accountId }) {
      const jobs = yield* Jobs
      const jobId = String(input["job" as keyof typeof input])
      const view = viewOf(jobs, jobId, yield* Effect.mapError(jobs.find(accountId, family, jobId), unreadable(family.resource)))
      const data = yield* options.view(view, input)
      return {
        data,
        ...(isOpen(view) ? { retryAfter: RETRY_AFTER } : {}),
        ...(options.page === undefined ? {} : { page: options.page(data, input) })
      }
    })
  })
}

export const Cancelled = Schema.Struct({
  /** Whether this call ended the job, which is then free. If false, the job had ended before, and is purged now. */
  cancelled: Schema.Boolean,
  job_id: Schema.String
})

/** An operation that cancels a job of a family and purges it. A job that had not ended is free. */
export const cancelJob = <const Key extends string, const P extends Path>(
  key: Key,
  family: JobFamily<unknown, unknown, P>,
  options: Documented & { readonly example?: { readonly input: { readonly job: string }; readonly data: typeof Cancelled.Type } }
): Call<Key, JobRoute<"DELETE", P>, typeof Cancelled, ReadError, Jobs> =>
  make(key, {
    price: 0,
    ...options,
    route: { method: "DELETE", path: family.path, params: JobParams },
    success: Cancelled,
    local: true,
    run: Effect.fnUntraced(function* ({ job: jobId }, { accountId }) {
      const jobs = yield* Jobs
      const cancelled = yield* Effect.mapError(jobs.cancel(accountId, family, jobId), unreadable(family.resource))
      return { data: { cancelled, job_id: jobId } }
    })
  })

type Below<P extends Path, Last extends string> = P extends `/${infer Rest}` ? `/${Rest}/${Last}` : never

const EXTENSIONS: Readonly<Record<string, string>> = {
  "image/png": ".png",
  "image/jpeg": ".jpg",
  "image/webp": ".webp",
  "audio/mpeg": ".mp3",
  "audio/wav": ".wav"
}

/** `part`: the artifact's position among the job's, from 1. */
const FileQuery = { part: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100 }))) }

/** An operation that downloads an artifact of a family's job: the first, unless the caller names another `part`. */
export const downloadJob = <const Key extends string, const P extends Path>(
  key: Key,
  { path, ...family }: JobFamily<unknown, unknown, P>,
  options: Documented & {
    readonly contentTypes: ReadonlyArray<string>
    /** An example input, for the documentation. */
    readonly example?: { readonly job: string; readonly part?: number }
  }
): File<Key, JobRoute<"GET", Below<P, "artifact">, typeof FileQuery>, ReadError, Jobs | BlobStore> =>
  file(key, {
    price: 0,
    ...options,
    route: { path: `${path}/artifact` as Below<P, "artifact">, params: JobParams, query: FileQuery },
    local: true,
    open: Effect.fnUntraced(function* ({ job: jobId, part = 1 }, { accountId }) {
      const { resource } = family
      const jobs = yield* Jobs
      const { job } = yield* Effect.mapError(jobs.find(accountId, family, jobId), unreadable(resource))
      const artifact = job.status === "succeeded" ? job.artifacts[part - 1] : undefined
      if (artifact === undefined) return yield* new NotFound({ resource })
      const { contentType, id, size } = artifact
      const blobs = yield* BlobStore
      const read: Download["read"] = (range) =>
        Effect.mapBoth(blobs.get(ofJob(jobId, accountId), id, range), { onSuccess: ({ bytes }) => bytes, onFailure: unreadable(resource) })
      const filename = `${jobId}${part === 1 ? "" : `-${part}`}${EXTENSIONS[contentType] ?? ""}`
      return { contentType, size, tag: id, filename, read }
    })
  })
