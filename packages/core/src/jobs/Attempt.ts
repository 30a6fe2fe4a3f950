/**
 * One attempt at a job: claim it, run it while its lease is extended, record how it ended. The job's stream refuses events of any attempt
 * but the newest.
 */
import type { Aggregate, EventStore } from "@millrace/event-sourcing"
import { Deferred, Effect } from "effect"
import { Vault } from "../vault/Vault.ts"
import type { AnyJob } from "../work/Operation.ts"
import type { OperationError } from "../work/OperationError.ts"
import * as Perform from "../work/Perform.ts"
import * as AttemptEnd from "./AttemptEnd.ts"
import * as AttemptWork from "./AttemptWork.ts"
import { elapsed, keepLease, type LeaseLost } from "./Heartbeat.ts"
import * as Job from "./Job.ts"
import { Jobs } from "./Jobs.ts"

export interface Options {
  /** The runner's id in the log. */
  readonly runner: string
  /** Milliseconds. */
  readonly lease: number
  readonly backOff: AttemptEnd.BackOff
}

/** Whether this runner claimed the job, and the log position of the attempt's last event; undefined if unknown. */
export interface AttemptResult {
  readonly claimed: boolean
  readonly position: EventStore.Position | undefined
}

/** Returns the function that makes attempts. An interrupted attempt hands its job back. */
export const make = Effect.fnUntraced(function* ({ backOff, lease, runner }: Options) {
  const jobs = yield* Jobs
  const vault = yield* Vault
  const perform = yield* Perform.make

  const worked = Effect.fnUntraced(function* <R>(operation: AnyJob<OperationError, R>, jobId: string, job: Job.Running, startedAt: number) {
    const lost = yield* Deferred.make<never, LeaseLost>()
    const work = AttemptWork.work({ jobs, perform }, operation, jobId, job, lost)
    const heartbeat = keepLease(jobs, jobId, job.attempt, { lease, startedAt })
    return yield* Effect.raceFirst(work, Effect.raceFirst(heartbeat, Deferred.await(lost)))
  })

  return <R>(operation: AnyJob<OperationError, R>, jobId: string): Effect.Effect<AttemptResult, Aggregate.Failure, R> =>
    Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        const startedAt = yield* elapsed
        const claim = yield* jobs.execute(jobId, Job.start({ runner, lease }))
        const { state: job } = claim
        if (claim.events.length === 0 || job.status !== "running") {
          // The claim itself fails a job that is past its deadline or has no attempts left
          if (claim.events.length > 0) yield* Effect.ignore(jobs.settleBy(jobId, claim))
          return { claimed: false, position: claim.position }
        }
        const exit = yield* Effect.exit(restore(worked(operation, jobId, job, startedAt)))
        return { claimed: true, position: yield* AttemptEnd.record({ jobs, vault, backOff }, jobId, job, exit) }
      })
    )
})
