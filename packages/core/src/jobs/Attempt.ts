/**
 * One attempt at a job: claimed, run while its lease is kept, and recorded, if nobody has taken it over. Whatever happens on the way, the
 * job's stream refuses an attempt that is not the newest.
 */
import type { Aggregate, EventStore } from "@millrace/event-sourcing"
import { Cause, Clock, Deferred, Duration, Effect, Exit, Random, Schedule, Schema } from "effect"
import * as Work from "../billing/Work.ts"
import type * as Operation from "../operations/Operation.ts"
import { type OperationError, UpstreamUnavailable } from "../operations/OperationError.ts"
import type { VaultFailure } from "../vault/Vault.ts"
import type { Owner } from "./Documents.ts"
import * as Job from "./Job.ts"
import type { JobDefinition } from "./JobDefinition.ts"
import { Jobs } from "./Jobs.ts"
import { Details, jsonText } from "./JobView.ts"

/** The part of an operation that a runner needs. */
// biome-ignore lint/suspicious/noExplicitAny: inputs are contravariant, so only `any` admits every operation
export type Runnable<R = any> = Pick<Operation.Any, "key" | "timeout"> & { readonly job: JobDefinition<any, any, OperationError, R> }

export interface Options {
  /** Names the runner in the log. */
  readonly runner: string
  /** Milliseconds. */
  readonly lease: number
  /** Before the second attempt and the longest, milliseconds. */
  readonly backOff: { readonly first: number; readonly longest: number }
}

/** What an attempt left: whether it was this runner's, and up to where the log tells of it; undefined where that is not known. */
export interface Left {
  readonly claimed: boolean
  readonly position: EventStore.Position | undefined
}

/** It could not be extended in time, or another attempt has begun, or the job has ended. */
class LeaseLost extends Schema.TaggedError<LeaseLost>()("LeaseLost", {}) {}

/** What was kept for the job cannot be read. */
class Unreadable extends Error {
  override readonly name = "Unreadable"
}

/** What the store does not take at once is sent again for some ten seconds; then the lease runs out. */
const INSIST = { schedule: Schedule.min([Schedule.exponential("100 millis"), Schedule.spaced("2 seconds")]), times: 8 } as const
/** How long a runner that stops waits to hand a job back. */
const RELEASE_WITHIN = "5 seconds"

const encodeDetails = Schema.encodeSync(jsonText(Details))

const elapsed = Effect.map(Clock.monotonicTimeNanos, (nanos) => Number(nanos) / 1e6)

const isTransient = ({ _tag }: { readonly _tag: string }): boolean =>
  _tag === "StoreUnavailable" || _tag === "AppendInDoubt" || _tag === "Busy" || _tag === "StateUnavailable"

const unavailable = ({ _tag }: { readonly _tag: string }) => new UpstreamUnavailable({ upstream: "jobs", reason: _tag, isolated: true })

/** Makes attempts. They are interrupted to stop them: what was not recorded by then is handed back. */
export const make = Effect.fnUntraced(function* ({ backOff, lease, runner }: Options) {
  const jobs = yield* Jobs
  const attempt = yield* Work.make

  const run = <R>(operation: Runnable<R>, jobId: string): Effect.Effect<Left, Aggregate.Failure, R> =>
    Effect.uninterruptibleMask((restore) => claimed(operation, jobId, restore))

  const claimed = Effect.fnUntraced(function* <R>(
    operation: Runnable<R>,
    jobId: string,
    restore: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  ): Effect.fn.Return<Left, Aggregate.Failure, R> {
    const startedAt = yield* elapsed
    const claim = yield* jobs.execute(jobId, Job.start({ runner, lease }))
    const { state: job } = claim
    if (claim.events.length === 0 || job.status !== "running") {
      // It may have been this claim that found it too late, or tried too often
      if (claim.events.length > 0) yield* Effect.ignore(jobs.settle(jobId))
      return { claimed: false, position: claim.position }
    }
    const exit = yield* Effect.exit(restore(worked(operation, jobId, job, startedAt)))
    return { claimed: true, position: yield* recorded(jobId, job, exit) }
  })

  // the work, for as long as the lease is kept

  interface Worked {
    readonly done: Work.Done
    readonly artifacts: ReadonlyArray<Job.Artifact>
  }

  const worked = Effect.fnUntraced(function* <R>(
    operation: Runnable<R>,
    jobId: string,
    job: Job.Running,
    startedAt: number
  ): Effect.fn.Return<Worked, OperationError | VaultFailure | LeaseLost, R> {
    const lost = yield* Deferred.make<never, LeaseLost>()
    return yield* Effect.raceFirst(
      workOf(operation, jobId, job, lost),
      Effect.raceFirst(heartbeat(jobId, job.attempt, startedAt), Deferred.await(lost))
    )
  })

  const workOf = Effect.fnUntraced(function* <R>(
    { job: definition, key, timeout }: Runnable<R>,
    jobId: string,
    { accepted, attempt: number, checkpoint }: Job.Running,
    lost: Deferred.Deferred<never, LeaseLost>
  ): Effect.fn.Return<Worked, OperationError | VaultFailure, R> {
    const { accountId, requestId, reservationId } = accepted
    const owner = { jobId, accountId }
    const perform = definition.perform({
      ...owner,
      attempt: number,
      input: yield* jobs.documents.open(owner, "input", accepted.input),
      checkpoint: checkpoint === undefined ? undefined : yield* jobs.documents.open(owner, "checkpoint", checkpoint),
      progress: progressOf(owner, number, checkpoint, lost)
    })
    let artifacts: ReadonlyArray<Job.Artifact> = []
    const done = yield* attempt(
      {
        key,
        timeout,
        quantity: () => accepted.quantity,
        success: definition.family.result,
        check: () => Effect.void,
        run: () =>
          perform.pipe(
            Effect.tap((outcome) =>
              Effect.sync(() => {
                artifacts = outcome.artifacts ?? []
              })
            ),
            Effect.catchTag("SchemaError", (error) => Effect.die(new Unreadable(error.message)))
          )
      },
      undefined,
      { accountId, requestId, reservationId: reservationId ?? jobId }
    )
    return { done, artifacts }
  })

  /** What was recorded is durable; the document before the last is cleared away, for somebody may be about to read the last. */
  const progressOf = (owner: Owner, attempt: number, reached: Job.Document | undefined, lost: Deferred.Deferred<never, LeaseLost>) => {
    let older: Job.Document | undefined
    let last = reached
    return Effect.fnUntraced(
      function* (percent: number, text: string | undefined) {
        const document = text === undefined ? undefined : yield* jobs.documents.keep(owner, "checkpoint", text)
        yield* jobs.execute(owner.jobId, Job.progress(attempt, percent, document))
        if (document === undefined) return
        if (older !== undefined) yield* Effect.ignore(jobs.documents.drop(owner, older))
        older = last
        last = document
      },
      Effect.retry({ while: isTransient, ...INSIST }),
      Effect.catchTag("AttemptOver", () => Effect.andThen(Deferred.fail(lost, new LeaseLost()), Effect.never)),
      Effect.mapError(unavailable)
    )
  }

  const heartbeat = Effect.fnUntraced(function* (jobId: string, attempt: number, startedAt: number): Effect.fn.Return<never, LeaseLost> {
    let extendedAt = startedAt
    for (;;) {
      const now = yield* elapsed
      const due = extendedAt + lease / 3 - now
      if (due > 0) {
        yield* Effect.sleep(Math.ceil(due))
        continue
      }
      const left = extendedAt + (lease * 2) / 3 - now
      if (left <= 0) return yield* new LeaseLost()
      const extended = yield* jobs.execute(jobId, Job.extendLease(attempt, lease)).pipe(
        Effect.as(true),
        Effect.catchTag("AttemptOver", () => Effect.fail(new LeaseLost())),
        Effect.catchIf(isTransient, () => Effect.succeed(false)),
        Effect.mapError(() => new LeaseLost()),
        Effect.timeoutOrElse({ duration: left, orElse: () => Effect.fail(new LeaseLost()) })
      )
      if (extended) extendedAt = now
      else yield* Effect.sleep(Math.ceil(Math.min(left, lease / 12)))
    }
  })

  // what came of it

  const recorded = Effect.fnUntraced(function* (
    jobId: string,
    job: Job.Running,
    exit: Exit.Exit<Worked, OperationError | VaultFailure | LeaseLost>
  ): Effect.fn.Return<EventStore.Position | undefined> {
    const { attempt } = job
    if (Exit.isFailure(exit)) {
      if (Cause.hasInterruptsOnly(exit.cause)) {
        const released = Effect.timeoutOption(Effect.exit(jobs.execute(jobId, Job.release(attempt))), RELEASE_WITHIN)
        return yield* Effect.andThen(released, Effect.undefined)
      }
      if (exit.cause.reasons.some((reason) => reason._tag === "Fail" && reason.error._tag === "LeaseLost")) {
        yield* Effect.logWarning("A job's lease was lost", { jobId, attempt })
        return undefined
      }
    }
    const end = Exit.isSuccess(exit) ? succeeded(jobId, job, exit.value) : failed(jobId, job, exit.cause)
    return yield* end.pipe(
      Effect.retry({ while: isTransient, ...INSIST }),
      Effect.tap((committed) => (Job.isEnded(committed.state) ? Effect.ignore(jobs.settle(jobId)) : Effect.void)),
      Effect.map(({ position }) => position),
      Effect.catch((error) =>
        error._tag === "AttemptOver"
          ? Effect.undefined
          : Effect.as(Effect.logWarning("What became of a job was not recorded", error), undefined)
      )
    )
  })

  const succeeded = Effect.fnUntraced(
    function* (jobId: string, { accepted, attempt }: Job.Running, { artifacts, done }: Worked) {
      const result = yield* jobs.documents.keep({ jobId, accountId: accepted.accountId }, "result", done.data)
      return yield* jobs.execute(jobId, Job.succeed(attempt, { quantity: done.quantity, result, artifacts }))
    },
    (recording, jobId, job) => Effect.catchDefect(recording, (defect) => failed(jobId, job, Cause.die(defect)))
  )

  const failed = Effect.fnUntraced(function* (
    jobId: string,
    { accepted, attempt, tries }: Job.Running,
    cause: Cause.Cause<OperationError | VaultFailure | LeaseLost>
  ) {
    const { details, failure, mayPass } = failureOf(cause)
    if (failure === "Defect" || failure === "Unreadable") yield* Effect.logError(`Job ${jobId} failed`, cause)
    const owner = { jobId, accountId: accepted.accountId }
    // Without them it has still failed
    const kept = details && (yield* Effect.option(jobs.documents.keep(owner, "details", encodeDetails(details))))
    const random = yield* Random.next
    const after = Math.ceil(Math.min(backOff.longest, backOff.first * 2 ** (tries - 1)) * (1 - random / 2))
    return yield* jobs.execute(
      jobId,
      Job.fail(attempt, { failure, mayPass, after, details: kept?._tag === "Some" ? kept.value : undefined })
    )
  })

  return run
})

interface Found {
  readonly failure: Job.Failure
  readonly mayPass: boolean
  readonly details?: Details
}

/** What an attempt's failure means for its job. */
const failureOf = (cause: Cause.Cause<OperationError | VaultFailure | LeaseLost>): Found => {
  for (const reason of cause.reasons) {
    if (reason._tag === "Die" && reason.defect instanceof Unreadable) return { failure: "Unreadable", mayPass: false }
    if (reason._tag !== "Fail") continue
    const { error } = reason
    switch (error._tag) {
      case "InvalidInput":
        return { failure: "InvalidInput", mayPass: false, details: { field: error.field, message: error.message } }
      case "NotFound":
      case "UpstreamNotConfigured":
        return { failure: error._tag, mayPass: false }
      case "UpstreamUnavailable":
      case "StateUnavailable":
      case "TooManyJobs":
        return { failure: "UpstreamUnavailable", mayPass: true }
      case "SubjectDestroyed":
      case "Tampered":
        return { failure: "Unreadable", mayPass: false }
      case "LeaseLost":
        break
    }
  }
  return { failure: "Defect", mayPass: false }
}

/** As milliseconds. */
export const backOffOf = ({ first, longest }: { readonly first: Duration.Input; readonly longest: Duration.Input }) => ({
  first: Duration.toMillis(first),
  longest: Duration.toMillis(longest)
})
