/**
 * One attempt at a job: claim it, run it while its lease is extended, record how it ended. The job's stream refuses events of any attempt
 * but the newest.
 */
import type { Aggregate, EventStore } from "@millrace/event-sourcing"
import { Effect, Exit, Fiber } from "effect"
import { Vault, type VaultFailure } from "../vault/Vault.ts"
import type { AnyJob } from "../work/Operation.ts"
import type { OperationError } from "../work/OperationError.ts"
import * as Perform from "../work/Perform.ts"
import * as AttemptEnd from "./AttemptEnd.ts"
import * as AttemptWork from "./AttemptWork.ts"
import * as Heartbeat from "./Heartbeat.ts"
import * as Job from "./Job.ts"
import { Jobs } from "./Jobs.ts"

export interface Options extends Job.Claim {
  readonly backOff: AttemptEnd.BackOff
}

/** Whether this runner claimed the job, and the log position of the attempt's last event; undefined if unknown. */
export interface AttemptResult {
  readonly claimed: boolean
  readonly position: EventStore.Position | undefined
}

/** A job that this runner has claimed. */
export interface Claimed extends AttemptEnd.Ending {
  /** A time before the claim, from `Heartbeat.elapsed`. */
  readonly startedAt: number
  /** The job's input as JSON text, where this process has it or is opening it. */
  readonly input?: Effect.Effect<string, VaultFailure> | undefined
}

/** Returns the functions that make attempts. An interrupted attempt hands its job back. */
export const make = Effect.fnUntraced(function* ({ backOff, lease, runner }: Options) {
  const jobs = yield* Jobs
  const vault = yield* Vault
  const perform = yield* Perform.make
  const keepLease = yield* Heartbeat.make(jobs, lease)

  /** Works on the job in this fiber, which is interrupted if the attempt loses the job. */
  const worked = <R>(operation: AnyJob<OperationError, R>, { input, job, jobId, startedAt }: Claimed) =>
    Effect.withFiber((fiber) => {
      let isLost = false
      const lose = () => {
        isLost = true
        fiber.interruptUnsafe()
      }
      const letGo = keepLease({ jobId, attempt: job.attempt, startedAt, lose })
      const work = AttemptWork.work({ jobs, perform }, operation, { jobId, job, input, lose })
      return Effect.map(Effect.exit(Effect.interruptible(work)), (exit) => {
        letGo()
        return isLost ? Exit.fail(new Heartbeat.LeaseLost()) : exit
      })
    })

  /** Runs a claimed job. */
  const run = <R>(operation: AnyJob<OperationError, R>, claimed: Claimed): Effect.Effect<AttemptResult, never, R> =>
    Effect.uninterruptible(
      Effect.flatMap(worked(operation, claimed), (exit) =>
        Effect.map(AttemptEnd.record({ jobs, vault, backOff }, claimed, exit), (position) => ({
          claimed: true,
          position
        }))
      )
    )

  /** Claims a job and runs it. `onClaim` is called with the log position of the claim, `onEnd` with that of the attempt's end. */
  const claim = <R>(
    operation: AnyJob<OperationError, R>,
    jobId: string,
    { onClaim, onEnd }: Pick<Claimed, "onEnd"> & { readonly onClaim: (position: EventStore.Position) => void }
  ): Effect.Effect<AttemptResult, Aggregate.Failure, R> =>
    Effect.uninterruptible(
      Effect.gen(function* () {
        const startedAt = yield* Heartbeat.elapsed
        const input = yield* AttemptWork.openEarly(jobs, jobId)
        const claim = yield* jobs.execute(jobId, Job.start({ runner, lease }))
        const { events, position, state: job } = claim
        if (events.length > 0 && job.status === "running") {
          onClaim(position)
          return yield* run(operation, { jobId, job, startedAt, input: input && Fiber.join(input), onEnd })
        }
        // The claim itself fails a job that is past its deadline or has no attempts left
        if (events.length > 0) yield* Effect.ignore(jobs.settleBy(jobId, claim))
        return { claimed: false, position }
      })
    )

  return { claim, run }
})
