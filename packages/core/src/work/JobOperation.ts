/**
 * An operation that runs as a job: its call is answered once the job is accepted, and a runner does the work later. The units done are
 * charged when the job has succeeded; a job that does not succeed is free.
 */
import { type Duration, type Effect, Schema, type Stream } from "effect"
import type { Timestamp } from "../Timestamp.ts"
import type { BlobStore } from "../vault/BlobStore.ts"
import type { Outcome } from "./CallOperation.ts"
import * as Contract from "./Contract.ts"
import type { NotFound, OperationError, TooManyJobs, UpstreamUnavailable } from "./OperationError.ts"

/** A file that a job made. `id`: the blob's id; `size`: bytes of the file. */
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

/** The fault in the input of a job that failed with `InvalidInput`. */
export const Details = Schema.Struct({ field: Schema.String, message: Schema.String })
export type Details = typeof Details.Type

/**
 * A family of jobs: several operations may create them, and the same operations read, cancel and download them. `name` is recorded in
 * their events; `resource` is a word such as `image`, for a 404.
 */
export interface JobFamily<A, Checkpoint, P extends Contract.Path = Contract.Path> {
  readonly name: string
  readonly resource: string
  /** The path of one job. Its parameter `job` is the job's id. */
  readonly path: P
  readonly result: Schema.Codec<A, unknown>
  /** The data that an attempt records for the next one to resume from. */
  readonly checkpoint: Schema.Codec<Checkpoint, unknown>
}

/** Defines a family of jobs. Without a `checkpoint` schema its jobs record no checkpoints. */
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

/** What the work of a running job can use. */
export interface RunningJob<Checkpoint> {
  /** The job's id. It is the same for all attempts, so it can be an upstream's idempotency key. */
  readonly id: string
  readonly accountId: string
  /** The attempt, from 1. Each later attempt has a greater number, also after one that was handed back. */
  readonly attempt: number
  /** The last checkpoint of an earlier attempt, to resume from. */
  readonly checkpoint: Checkpoint | undefined
  /** Records 0 to 100 percent, and a checkpoint for the next attempt. Durable once it returns. */
  readonly progress: (percent: number, checkpoint?: Checkpoint) => Effect.Effect<void, UpstreamUnavailable>
  /** Stores a sealed file, which the work returns among its `artifacts`. A stream is never whole in memory. */
  readonly store: <E = never, R = never>(
    content: Uint8Array | Stream.Stream<Uint8Array, E, R>,
    options: { readonly contentType: string }
  ) => Effect.Effect<Artifact, E | UpstreamUnavailable, R | BlobStore>
}

/** The result of a job. */
export interface JobOutcome<A> extends Pick<Outcome<A>, "data" | "quantity"> {
  readonly artifacts?: ReadonlyArray<Artifact>
}

export type ReadError = NotFound | UpstreamUnavailable

/** The view of a job for its owner. */
export interface JobView<A, Checkpoint> {
  readonly id: string
  /** Key of the operation that created it. */
  readonly operation: string
  readonly status: "queued" | "running" | "succeeded" | "failed"
  /** 0 to 100. */
  readonly percent: number
  /** Units held. */
  readonly quantity: number
  readonly acceptedAt: Timestamp
  readonly endedAt: Timestamp | undefined
  readonly failure: JobFailure | undefined
  /** Empty unless the job has succeeded. */
  readonly artifacts: ReadonlyArray<Artifact>
  /** Undefined unless the job has succeeded. */
  readonly result: Effect.Effect<A | undefined, ReadError>
  /** The last checkpoint, also after the job's end; undefined if there is none. */
  readonly checkpoint: Effect.Effect<Checkpoint | undefined, ReadError>
  readonly details: Effect.Effect<Details | undefined, ReadError>
}

/** Limits of an operation's jobs: running at once, running at once of one account, and open (waiting or running) of one account. */
export interface JobLimits {
  readonly atOnce: number
  readonly atOnceOfAccount: number
  readonly ofAccount: number
}

const LIMITS: JobLimits = { atOnce: 16, atOnceOfAccount: 8, ofAccount: 10_000 }

export interface Job<Key extends string, Rt extends Contract.Route, Success extends Schema.Top, E extends OperationError, R, A, Checkpoint>
  extends Contract.Contract<Key, Rt, Success, E, R> {
  readonly _tag: "Job"
  readonly family: JobFamily<A, Checkpoint>
  /** The reply to the call, from the view of the job: just accepted, or later for a caller that waited. */
  readonly created: (job: JobView<A, Checkpoint>) => Success["Type"]
  readonly run: (input: Contract.Input<Rt>, job: RunningJob<Checkpoint>) => Effect.Effect<JobOutcome<A>, E, R>
  /** The most attempts, 5 by default. Attempts that were handed back do not count. */
  readonly attempts: number
  /** A job that has not ended this long after its acceptance fails: 6 hours by default. */
  readonly deadline: Duration.Input
  /** How long the result is kept after the job's end: 24 hours by default. */
  readonly retention: Duration.Input
  readonly limits: JobLimits
}

/**
 * Defines an operation that runs as a job. An attempt that fails with a temporary error is repeated, up to `attempts` times. The time limit
 * of one attempt is 5 minutes by default.
 */
export const job = <
  const Key extends string,
  const O extends Contract.RouteOptions,
  Success extends Schema.Codec<unknown, unknown>,
  A,
  Checkpoint,
  ERun extends OperationError,
  RRun,
  ECheck extends OperationError = never,
  RCheck = never,
  RConfigured = never
>(
  key: Key,
  options: Contract.Options<O, Success, ECheck, RCheck, RConfigured> &
    Pick<Job<Key, Contract.RouteOf<O>, Success, ERun, RRun, A, Checkpoint>, "family" | "run"> &
    Partial<Pick<Job<Key, Contract.RouteOf<O>, Success, ERun, RRun, A, Checkpoint>, "attempts" | "deadline" | "retention">> & {
      readonly created: (job: JobView<A, Checkpoint>) => NoInfer<Success["Type"]>
      readonly limits?: Partial<JobLimits>
    }
): Job<Key, Contract.RouteOf<O>, Success, ERun | ECheck | TooManyJobs | ReadError, RRun | RCheck | RConfigured, A, Checkpoint> => ({
  ...Contract.make(key, options, "5 minutes"),
  _tag: "Job",
  family: options.family,
  created: options.created,
  run: options.run,
  attempts: options.attempts ?? 5,
  deadline: options.deadline ?? "6 hours",
  retention: options.retention ?? "24 hours",
  limits: { ...LIMITS, ...options.limits }
})
