/**
 * One billable operation: its contract, how it is counted, what is checked before credits are held, and what runs while
 * they are. Everything else about it (endpoint, OpenAPI, catalog entry, client, generators) derives from this value.
 */
import { type Duration, Effect, Schema, Struct } from "effect"
import * as Download from "../jobs/Download.ts"
import * as JobDefinition from "../jobs/JobDefinition.ts"
import { Jobs } from "../jobs/Jobs.ts"
import { type Family, isOpen, type JobView, RETRY_AFTER, type ReadError, unreadable, viewer } from "../jobs/JobView.ts"
import { BlobStore } from "../vault/BlobStore.ts"
import { NotFound, type OperationError, TooManyJobs, type UpstreamNotConfigured } from "./OperationError.ts"

type Fields = Schema.Struct.Fields
type Path = `/${string}`
type Input<Params extends Fields, Query extends Fields, Body extends Fields> = Schema.Struct.Type<Params & Query & Body>

/** Where an operation is reached over HTTP: data, so that the core stays free of any HTTP library. */
export interface Route<Method extends string, P extends Path, Params extends Fields, Query extends Fields, Body extends Fields> {
  readonly method: Method
  readonly path: P
  readonly params: Params
  readonly query: Query
  readonly body: Body
  /** Status of a success: 200 unless the contract says 201 or 202. */
  readonly status: 200 | 201 | 202
}

/** Who calls, and what the call's resources are named after. */
export interface Caller {
  readonly accountId: string
  readonly requestId: string
  readonly reservationId: string
}

/** What an operation gives back; `quantity` when less was done than was held for. */
export interface Outcome<A> {
  readonly data: A
  readonly quantity?: number
  /** The answer is not the last word: seconds after which to ask again. */
  readonly retryAfter?: number
  /** Where the answer is one page of many. */
  readonly page?: Page
}

export interface Page {
  /** From 1. */
  readonly number: number
  /** How many things a page has at the most. */
  readonly size: number
  /** How many there are on all pages together. */
  readonly total: number
}

export interface Operation<
  Key extends string,
  Method extends string,
  P extends Path,
  Params extends Fields,
  Query extends Fields,
  Body extends Fields,
  Success extends Schema.Top,
  E extends OperationError,
  R
> {
  /** Names the operation in events, the price plan and the catalog. Never changes. */
  readonly key: Key
  readonly summary: string
  /** What a developer should know beside the summary: sentences, in Markdown. */
  readonly description?: string
  readonly route: Route<Method, P, Params, Query, Body>
  /** What the price plan prices: a call, unless it says otherwise, such as an address. One word. */
  readonly unit: string
  /** Units of the price plan that the call is held for. */
  readonly quantity: (input: Input<Params, Query, Body>) => number
  readonly success: Success
  /** Ownership, existence, breaker: what fails here is answered before any credit is held, and writes nothing. */
  readonly check: (input: Input<Params, Query, Body>, caller: Omit<Caller, "reservationId">) => Effect.Effect<void, E, R>
  readonly run: (input: Input<Params, Query, Body>, caller: Caller) => Effect.Effect<Outcome<Success["Type"]>, E, R>
  /** For operations that create or change something: what became of a call whose process died; nothing when it left no trace. */
  readonly recover?: (reservationId: string) => Effect.Effect<Outcome<Success["Type"]> | undefined, E, R>
  /** For an operation that becomes a job: the call only accepts it, and a runner does the work. */
  readonly job?: JobDefinition.JobDefinition<Input<Params, Query, Body>, Success["Type"], E, R>
  /** For one that gives a file: what the call answers describes it, this gives its bytes. */
  readonly download?: (input: Input<Params, Query, Body>, caller: Omit<Caller, "reservationId">) => Effect.Effect<Download.Download, E, R>
  /** Of the files that it gives. */
  readonly contentTypes?: ReadonlyArray<string>
  /** Asks no upstream, so no circuit is its concern. */
  readonly local?: true
  /** The hold outlives this by at least thirty seconds; a job's attempt is given up then. */
  readonly timeout: Duration.Input
  /** Fields of input or data that are never echoed, logged or written in clear. */
  readonly secret: ReadonlyArray<string>
  /** Fails where no provider was set up for it at this host: the catalog then says so. */
  readonly configured: Effect.Effect<void, UpstreamNotConfigured, R>
  /** A call and its answer, for whoever reads the documentation. */
  readonly example?: { readonly input: Input<Params, Query, Body>; readonly data: Success["Type"] }
  /** Operations that take what this one gives. */
  readonly links?: ReadonlyArray<Link>
}

/** From an answer to the next call. */
export interface Link {
  /** Key of the operation that follows. */
  readonly operation: string
  /** Its parameters, each by a JSON pointer (RFC 6901) into the data of the answer, such as `/id`. */
  readonly parameters: Readonly<Record<string, string>>
}

// biome-ignore-start lint/suspicious/noExplicitAny: inputs are contravariant, so only `any` admits every operation

type Whole = Operation<string, string, Path, any, any, any, Schema.Codec<any, any>, OperationError, any>

/** Any operation, for lists of them. */
export interface Any extends Omit<Whole, "quantity" | "check" | "run" | "recover" | "job" | "download" | "example"> {
  readonly quantity: (input: any) => number
  readonly check: (input: any, caller: Omit<Caller, "reservationId">) => Effect.Effect<void, OperationError, any>
  readonly run: (input: any, caller: Caller) => Effect.Effect<Outcome<any>, OperationError, any>
  readonly recover?: (reservationId: string) => Effect.Effect<Outcome<any> | undefined, OperationError, any>
  readonly job?: JobDefinition.JobDefinition<any, any, OperationError, any>
  readonly download?: (input: any, caller: Omit<Caller, "reservationId">) => Effect.Effect<Download.Download, OperationError, any>
  readonly example?: { readonly input: any; readonly data: any }
}

/** What an operation needs to run. */
export type Services<Op extends Any> = Op extends { readonly run: (input: any, caller: Caller) => Effect.Effect<any, any, infer R> }
  ? R
  : never

// biome-ignore-end lint/suspicious/noExplicitAny: as above

/** What a call says of itself, whether it is answered by its work or by a job. */
interface Described<
  Method extends string,
  P extends Path,
  Params extends Fields,
  Query extends Fields,
  Body extends Fields,
  Success extends Schema.Top,
  ECheck,
  RCheck,
  RConfigured
> {
  readonly summary: string
  readonly description?: string
  readonly route: {
    readonly method: Method
    readonly path: P
    readonly params?: Params
    readonly query?: Query
    readonly body?: Body
    readonly status?: 200 | 201 | 202
  }
  readonly success: Success
  readonly check?: (input: Input<Params, Query, Body>, caller: Omit<Caller, "reservationId">) => Effect.Effect<void, ECheck, RCheck>
  /** `call` by default. */
  readonly unit?: string
  readonly quantity?: (input: Input<Params, Query, Body>) => number
  readonly secret?: ReadonlyArray<string>
  readonly configured?: Effect.Effect<void, UpstreamNotConfigured, RConfigured>
  readonly example?: { readonly input: NoInfer<Input<Params, Query, Body>>; readonly data: NoInfer<Success["Type"]> }
  readonly links?: ReadonlyArray<Link>
}

export const make = <
  const Key extends string,
  const Method extends string,
  const P extends Path,
  Success extends Schema.Top,
  ERun extends OperationError,
  RRun,
  Params extends Fields = {},
  Query extends Fields = {},
  Body extends Fields = {},
  ECheck extends OperationError = never,
  RCheck = never,
  ERecover extends OperationError = never,
  RRecover = never,
  RConfigured = never
>(
  key: Key,
  options: Described<Method, P, Params, Query, Body, Success, ECheck, RCheck, RConfigured> & {
    readonly run: (input: Input<Params, Query, Body>, caller: Caller) => Effect.Effect<Outcome<Success["Type"]>, ERun, RRun>
    readonly recover?: (reservationId: string) => Effect.Effect<Outcome<Success["Type"]> | undefined, ERecover, RRecover>
    readonly local?: true
    readonly timeout?: Duration.Input
  }
): Operation<Key, Method, P, Params, Query, Body, Success, ERun | ECheck | ERecover, RRun | RCheck | RRecover | RConfigured> => ({
  key,
  summary: options.summary,
  ...(options.description === undefined ? {} : { description: options.description }),
  route: {
    method: options.route.method,
    path: options.route.path,
    params: options.route.params ?? ({} as Params),
    query: options.route.query ?? ({} as Query),
    body: options.route.body ?? ({} as Body),
    status: options.route.status ?? 200
  },
  unit: options.unit ?? "call",
  quantity: options.quantity ?? (() => 1),
  success: options.success,
  check: options.check ?? (() => Effect.void),
  run: options.run,
  ...(options.recover === undefined ? {} : { recover: options.recover }),
  ...(options.local === undefined ? {} : { local: options.local }),
  timeout: options.timeout ?? "30 seconds",
  secret: options.secret ?? [],
  configured: options.configured ?? Effect.void,
  ...(options.example === undefined ? {} : { example: options.example }),
  ...(options.links === undefined ? {} : { links: options.links })
})

// jobs

/**
 * Jobs that are read alike, whichever operation made them: `result` is what they come to, `checkpoint` what they may record on the way,
 * and `path` where one is read, with its id as the parameter `job`.
 */
export const family = <A, const P extends Path, Checkpoint = null>(
  name: string,
  {
    checkpoint,
    path,
    resource,
    result
  }: {
    /** A word such as `image`, for where there is none. */
    readonly resource: string
    readonly path: P
    readonly result: Schema.Codec<A, unknown>
    readonly checkpoint?: Schema.Codec<Checkpoint, unknown>
  }
): Family<A, Checkpoint, P> => ({
  name,
  resource,
  path,
  result,
  // Without one nothing is ever recorded
  checkpoint: checkpoint ?? (Schema.Null as unknown as Schema.Codec<Checkpoint, unknown>)
})

/** Room for the jobs of one operation: how many run at once, in all and of one account, and how many of one account may wait or run. */
const LIMITS: JobDefinition.JobLimits = { atOnce: 16, atOnceOfAccount: 8, ofAccount: 10_000 }

/**
 * An operation that becomes a job: its call is answered by `created` as soon as the job is accepted, and a runner does the work, as often
 * as `attempts` where it fails in a way that may pass. What is done is charged when it has succeeded; all else costs nothing.
 */
export const job = <
  const Key extends string,
  const Method extends string,
  const P extends Path,
  Success extends Schema.Codec<unknown, unknown>,
  A,
  Checkpoint,
  ERun extends OperationError,
  RRun,
  Params extends Fields = {},
  Query extends Fields = {},
  Body extends Fields = {},
  ECheck extends OperationError = never,
  RCheck = never,
  RConfigured = never
>(
  key: Key,
  options: Described<Method, P, Params, Query, Body, Success, ECheck, RCheck, RConfigured> & {
    readonly family: Family<A, Checkpoint>
    /** The call's answer, from the job as it is then: mostly just accepted, or later for a caller that waited. */
    readonly created: (job: JobView<A, Checkpoint>) => NoInfer<Success["Type"]>
    readonly run: (
      input: Input<Params, Query, Body>,
      job: JobDefinition.RunningJob<Checkpoint>
    ) => Effect.Effect<JobDefinition.JobOutcome<A>, ERun, RRun>
    /** Of one attempt: 5 minutes by default. */
    readonly timeout?: Duration.Input
    /** 5 by default; those that were handed back do not count. */
    readonly attempts?: number
    /** From its acceptance to its end: 6 hours by default. Then it has failed. */
    readonly deadline?: Duration.Input
    /** How long what it came to is kept: 24 hours by default. */
    readonly retention?: Duration.Input
    readonly limits?: Partial<JobDefinition.JobLimits>
  }
): Operation<Key, Method, P, Params, Query, Body, Success, ERun | ECheck | TooManyJobs | ReadError, RRun | RCheck | RConfigured | Jobs> => {
  const { attempts = 5, check, deadline = "6 hours", retention = "24 hours", timeout = "5 minutes" } = options
  const limits = { ...LIMITS, ...options.limits }
  const { run: _, ...described } = options
  const operation = make<
    Key,
    Method,
    P,
    Success,
    ERun | ReadError,
    RRun | Jobs,
    Params,
    Query,
    Body,
    ECheck | TooManyJobs | ReadError,
    RCheck | Jobs,
    never,
    never,
    RConfigured
  >(key, {
    ...described,
    timeout,
    check: Effect.fnUntraced(function* (input, caller) {
      if (check !== undefined) yield* check(input, caller)
      const jobs = yield* Jobs
      const room = jobs.admit({ accountId: caller.accountId, limit: limits.ofAccount })
      yield* Effect.mapError(room, (error) => (error instanceof TooManyJobs ? error : unreadable(options.family.resource)(error)))
    }),
    run: () => Effect.die(new Error(`${key} is a job: it is accepted, not run`))
  })
  const { params, query, body } = operation.route
  return {
    ...operation,
    job: JobDefinition.define({
      ...options,
      key,
      // A struct of the three is what the call is given, which no type can tell of fields not known yet
      input: Schema.Struct({ ...params, ...query, ...body }) as unknown as Schema.Codec<Input<Params, Query, Body>, unknown>,
      attempts,
      deadline,
      retention,
      limits
    })
  }
}

/** Where one job is meant: its id. What is no id at all is as good as one that is not there. */
const JobParams = { job: Schema.String.check(Schema.isMinLength(1), Schema.isMaxCodePoints(100)) }
type JobParams = typeof JobParams

interface Documented {
  readonly summary: string
  readonly description?: string
}

/** Reads a family's jobs. What `view` makes of one may depend on the query, such as a page of its results. */
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
  of: Family<A, Checkpoint, P>,
  options: Documented & {
    readonly query?: Query
    readonly success: Success
    readonly view: (job: JobView<A, Checkpoint>, input: Input<JobParams, Query, {}>) => Effect.Effect<Success["Type"], E, R>
    /** Where what is viewed is one page of many. */
    readonly page?: (data: NoInfer<Success["Type"]>, input: Input<JobParams, Query, {}>) => Page
    readonly example?: { readonly input: NoInfer<Input<JobParams, Query, {}>>; readonly data: NoInfer<Success["Type"]> }
    readonly links?: ReadonlyArray<Link>
  }
): Operation<Key, "GET", P, JobParams, Query, {}, Success, E | ReadError, R | Jobs> => {
  const viewOf = viewer(of)
  return make(key, {
    ...Struct.omit(options, ["page", "query", "view"]),
    route: { method: "GET", path: of.path, params: JobParams, ...(options.query === undefined ? {} : { query: options.query }) },
    local: true,
    run: Effect.fnUntraced(function* (input: Input<JobParams, Query, {}>, { accountId }) {
      const jobs = yield* Jobs
      const jobId = String(input["job" as keyof typeof input])
      const view = viewOf(jobs, jobId, yield* Effect.mapError(jobs.find(accountId, of, jobId), unreadable(of.resource)))
      const data = yield* options.view(view, input)
      return {
        data,
        ...(isOpen(view) ? { retryAfter: RETRY_AFTER } : {}),
        ...(options.page === undefined ? {} : { page: options.page(data, input) })
      }
    })
  })
}

/** Ends one of a family's jobs, and destroys whatever is kept of it. One that has not ended yet costs nothing then. */
export const cancelJob = <const Key extends string, const P extends Path>(
  key: Key,
  { path, ...of }: Family<unknown, unknown, P>,
  options: Documented & { readonly example?: { readonly input: { readonly job: string }; readonly data: typeof Cancelled.Type } }
): Operation<Key, "DELETE", P, JobParams, {}, {}, typeof Cancelled, ReadError, Jobs> =>
  make(key, {
    ...options,
    route: { method: "DELETE", path, params: JobParams },
    success: Cancelled,
    local: true,
    run: Effect.fnUntraced(function* ({ job: jobId }, { accountId }) {
      const jobs = yield* Jobs
      const cancelled = yield* Effect.mapError(jobs.cancel(accountId, of, jobId), unreadable(of.resource))
      return { data: { cancelled, job_id: jobId } }
    })
  })

export const Cancelled = Schema.Struct({
  /** Whether this ended it: then it costs nothing. Else it had ended before, and is purged now. */
  cancelled: Schema.Boolean,
  job_id: Schema.String
})

export const JobFile = Schema.Struct({
  job_id: Schema.String,
  content_type: Schema.String,
  /** Bytes. */
  size: Schema.Int,
  /** Names these very bytes. */
  tag: Schema.String
})

type Below<P extends Path, Last extends string> = P extends `/${infer Rest}` ? `/${Rest}/${Last}` : never

/** Of several files, which: counted from 1. */
const FileQuery = { part: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100 }))) }

const EXAMPLE_TAG = "3f5a7c9b1d2e"

/** Its answer is a file. */
export type FileOperation<Key extends string, P extends Path> = Operation<
  Key,
  "GET",
  P,
  JobParams,
  typeof FileQuery,
  {},
  typeof JobFile,
  ReadError,
  Jobs | BlobStore
> & {
  readonly contentTypes: ReadonlyArray<string>
  readonly download: (
    input: { readonly job: string; readonly part?: number },
    caller: Omit<Caller, "reservationId">
  ) => Effect.Effect<Download.Download, ReadError, Jobs | BlobStore>
}

/** Gives a file that one of a family's jobs made: its first, unless another `part` is asked for. What the call answers describes it. */
export const downloadJob = <const Key extends string, const P extends Path>(
  key: Key,
  of: Family<unknown, unknown, P>,
  options: Documented & {
    readonly contentTypes: ReadonlyArray<string>
    /** What it is asked with. */
    readonly example?: { readonly job: string; readonly part?: number }
  }
): FileOperation<Key, Below<P, "artifact">> => {
  const { contentTypes, example, ...described } = options
  const fileOf = Effect.fnUntraced(function* (
    { job: jobId, part = 1 }: { readonly job: string; readonly part?: number },
    accountId: string
  ) {
    const jobs = yield* Jobs
    const { job } = yield* Effect.mapError(jobs.find(accountId, of, jobId), unreadable(of.resource))
    const artifact = job.status === "succeeded" ? job.artifacts[part - 1] : undefined
    if (artifact === undefined) return yield* new NotFound({ resource: of.resource })
    return { artifact, place: { accountId, jobId, part, resource: of.resource } }
  })
  const operation = make(key, {
    ...described,
    ...(example === undefined
      ? {}
      : {
          example: { input: example, data: { job_id: example.job, content_type: contentTypes[0] ?? "", size: 146_515, tag: EXAMPLE_TAG } }
        }),
    route: {
      method: "GET",
      path: `${of.path}/artifact` as Below<P, "artifact">,
      params: JobParams,
      query: FileQuery
    },
    success: JobFile,
    local: true,
    run: Effect.fnUntraced(function* (input, { accountId }) {
      const { artifact } = yield* fileOf(input, accountId)
      // So that a host without a place for files says so before anything else
      yield* BlobStore
      return { data: { job_id: input.job, content_type: artifact.contentType, size: artifact.size, tag: artifact.id } }
    })
  })
  return {
    ...operation,
    contentTypes,
    download: Effect.fnUntraced(function* (input, { accountId }) {
      const { artifact, place } = yield* fileOf(input, accountId)
      return Download.of(yield* BlobStore, artifact, place)
    })
  }
}
