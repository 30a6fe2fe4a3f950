/**
 * An operation that becomes a job: its call is answered as soon as the job is accepted, and a runner does the work later. What the job
 * achieved is charged when it has succeeded; a job that does not succeed costs nothing.
 */
import { type Duration, type Effect, Schema, type Stream } from "effect"
import type { Timestamp } from "../Timestamp.ts"
import type { BlobStore } from "../vault/BlobStore.ts"
import * as Contract from "./Contract.ts"
import type { NotFound, OperationError, TooManyJobs, UpstreamUnavailable } from "./OperationError.ts"

/** A file that a job made. `id`: SHA-256 of the stored bytes, which names the blob; `size`: bytes of the file itself. */
export const Artifact = Schema.Struct({ id: Schema.String, size: Schema.Int, contentType: Schema.String })
export type Artifact = typeof Artifact.Type

/**
 * Why an attempt or a job failed: an error of the operation; `Defect`, a bug; `Abandoned`, its runners died; `TooLate`, its deadline
 * passed; `Unreadable`, its input can no longer be read, as after its account was erased.
 */
export const JobFailure = Schema.Literals([
  "InvalidInput",
  "NotFound",
  "UpstreamUnavailable",
  "UpstreamNotConfigured",
  "Defect",
  "Abandoned",
  "TooLate",
  "Unreadable"
])
export type JobFailure = typeof JobFailure.Type

/** What is wrong with the input of a job that failed with `InvalidInput`. */
export const Details = Schema.Struct({ field: Schema.String, message: Schema.String })
export type Details = typeof Details.Type

/**
 * Jobs that are read, cancelled and downloaded alike, whichever operation made them. `name` stands in their events; `resource` is a word
 * such as `image`, for a 404.
 */
export interface JobFamily<A, Checkpoint, P extends Contract.Path = Contract.Path> {
  readonly name: string
  readonly resource: string
  /** Where one job is read; the parameter `job` is its id. */
  readonly path: P
  readonly result: Schema.Codec<A, unknown>
  /** What an attempt may record for the next one. */
  readonly checkpoint: Schema.Codec<Checkpoint, unknown>
}

/** A family of jobs. Without a `checkpoint` schema its jobs record none. */
export const family = <A, const P extends Contract.Path, Checkpoint = null>(
  name: string,
  {
    checkpoint,
    ...described
  }: Omit<JobFamily<A, Checkpoint, P>, "name" | "checkpoint"> & { readonly checkpoint?: Schema.Codec<Checkpoint, unknown> }
): JobFamily<A, Checkpoint, P> => ({
  name,
  ...described,
  checkpoint: checkpoint ?? (Schema.Null as unknown as Schema.Codec<Checkpoint, unknown>)
})

/** What the work of a job has in hand while it runs. */
export interface RunningJob<Checkpoint> {
  /** Every attempt has the same: an idempotency key for an upstream that takes one. */
  readonly id: string
  readonly accountId: string
  /** Counted from 1. Each later attempt has a greater number, also after one that was handed back. */
  readonly attempt: number
  /** What an earlier attempt recorded last: where to resume. */
  readonly checkpoint: Checkpoint | undefined
  /** Records the progress, 0 to 100 percent, and where the next attempt can resume. Durable once it answers. */
  readonly progress: (percent: number, checkpoint?: Checkpoint) => Effect.Effect<void, UpstreamUnavailable>
  /** Stores a file, sealed, to be returned among the `artifacts`. It is streamed, never whole in memory. */
  readonly store: <E = never, R = never>(
    content: Uint8Array | Stream.Stream<Uint8Array, E, R>,
    options: { readonly contentType: string }
  ) => Effect.Effect<Artifact, E | UpstreamUnavailable, R | BlobStore>
}

/** The result of a job. */
export interface JobOutcome<A> {
  readonly data: A
  /** Units that were done, where they are fewer than were held for. */
  readonly quantity?: number
  readonly artifacts?: ReadonlyArray<Artifact>
}

export type ReadError = NotFound | UpstreamUnavailable

/** A job as its owner sees it. */
export interface JobView<A, Checkpoint> {
  readonly id: string
  /** Key of the operation that made it. */
  readonly operation: string
  readonly status: "queued" | "running" | "succeeded" | "failed"
  /** 0 to 100. */
  readonly percent: number
  /** Units that it is held for. */
  readonly quantity: number
  readonly acceptedAt: Timestamp
  readonly endedAt: Timestamp | undefined
  readonly failure: JobFailure | undefined
  /** None unless it succeeded. */
  readonly artifacts: ReadonlyArray<Artifact>
  /** Undefined unless it succeeded. */
  readonly result: Effect.Effect<A | undefined, ReadError>
  /** What it recorded last, also after its end; undefined where it never did. */
  readonly checkpoint: Effect.Effect<Checkpoint | undefined, ReadError>
  readonly details: Effect.Effect<Details | undefined, ReadError>
}

/** How many jobs of one operation may run at once, in all and of one account, and how many of one account may wait or run. */
export interface JobLimits {
  readonly atOnce: number
  readonly atOnceOfAccount: number
  readonly ofAccount: number
}

const LIMITS: JobLimits = { atOnce: 16, atOnceOfAccount: 8, ofAccount: 10_000 }

export interface Job<
  Key extends string,
  Method extends string,
  P extends Contract.Path,
  Params extends Contract.Fields,
  Query extends Contract.Fields,
  Body extends Contract.Fields,
  Success extends Schema.Top,
  E extends OperationError,
  R,
  A,
  Checkpoint
> extends Contract.Contract<Key, Method, P, Params, Query, Body, Success, E, R> {
  readonly _tag: "Job"
  readonly family: JobFamily<A, Checkpoint>
  /** The call's answer, from the job as it is then: just accepted, or later for a caller that waited. */
  readonly created: (job: JobView<A, Checkpoint>) => Success["Type"]
  readonly run: (input: Contract.Input<Params, Query, Body>, job: RunningJob<Checkpoint>) => Effect.Effect<JobOutcome<A>, E, R>
  /** Attempts that may fail; those that were handed back do not count. */
  readonly attempts: number
  /** From its acceptance on. Then the job has failed. */
  readonly deadline: Duration.Input
  /** How long its result is kept after its end. */
  readonly retention: Duration.Input
  readonly limits: JobLimits
}

/** An operation that becomes a job. It is tried up to `attempts` times where it fails in a way that may pass. */
export const job = <
  const Key extends string,
  const Method extends string,
  const P extends Contract.Path,
  Success extends Schema.Codec<unknown, unknown>,
  A,
  Checkpoint,
  ERun extends OperationError,
  RRun,
  Params extends Contract.Fields = {},
  Query extends Contract.Fields = {},
  Body extends Contract.Fields = {},
  ECheck extends OperationError = never,
  RCheck = never,
  RConfigured = never
>(
  key: Key,
  options: Contract.Options<Method, P, Params, Query, Body, Success, ECheck, RCheck, RConfigured> & {
    readonly family: JobFamily<A, Checkpoint>
    readonly created: (job: JobView<A, Checkpoint>) => NoInfer<Success["Type"]>
    readonly run: (input: Contract.Input<Params, Query, Body>, job: RunningJob<Checkpoint>) => Effect.Effect<JobOutcome<A>, ERun, RRun>
    /** Of one attempt: 5 minutes by default. */
    readonly timeout?: Duration.Input
    /** 5 by default. */
    readonly attempts?: number
    /** 6 hours by default. */
    readonly deadline?: Duration.Input
    /** 24 hours by default. */
    readonly retention?: Duration.Input
    readonly limits?: Partial<JobLimits>
  }
): Job<
  Key,
  Method,
  P,
  Params,
  Query,
  Body,
  Success,
  ERun | ECheck | TooManyJobs | ReadError,
  RRun | RCheck | RConfigured,
  A,
  Checkpoint
> => ({
  ...Contract.make(key, options, options.timeout ?? "5 minutes"),
  _tag: "Job",
  family: options.family,
  created: options.created,
  run: options.run,
  attempts: options.attempts ?? 5,
  deadline: options.deadline ?? "6 hours",
  retention: options.retention ?? "24 hours",
  limits: { ...LIMITS, ...options.limits }
})
