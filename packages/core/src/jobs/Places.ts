/**
 * Places for jobs that are about to be accepted. Where a runner of this process is free and no job waits, a job is claimed in the append that
 * accepts it. So it neither waits for the projection of open jobs, nor needs an append for its claim.
 */
import type { Aggregate } from "@millrace/event-sourcing"
import { Effect, type Exit, type Scope } from "effect"
import type * as Job from "./Job.ts"
import type { Candidate, JobQueue } from "./JobQueue.ts"
import { current, type OpenJobs } from "./OpenJobs.ts"

/** A place that a runner keeps for one job. It counts as taken until {@link settle} is called. */
export interface Place {
  /** The claim to append with the acceptance. */
  readonly claim: Job.Claim
  /**
   * Run once, with the result of the append and the job's input as JSON text. The runner runs the job if it was claimed; otherwise the place
   * is free again. A runner that stops meanwhile hands the job back.
   */
  readonly settle: (exit: Exit.Exit<Aggregate.Current<Job.Job>, unknown>, input: string) => Effect.Effect<void>
}

/** Returns a place for the job, if the runner has one. `queue`: the open jobs. */
export type Offer = (queue: JobQueue, job: Candidate) => Place | undefined

export const make = (openJobs: OpenJobs) => {
  const offers = new Set<Offer>()
  return {
    /** Places of a runner, until the scope closes. */
    offer: (offer: Offer): Effect.Effect<void, never, Scope.Scope> =>
      Effect.acquireRelease(
        Effect.sync(() => void offers.add(offer)),
        () => Effect.sync(() => offers.delete(offer))
      ),
    /** A place for a job, if a runner of this process has one now. */
    find: (job: Candidate): Effect.Effect<Place | undefined> =>
      Effect.suspend(() =>
        offers.size === 0
          ? Effect.undefined
          : Effect.matchEager(current(openJobs), {
              // The job then waits until the projection answers
              onFailure: () => undefined,
              onSuccess: ({ state }) => {
                for (const offer of offers) {
                  const place = offer(state, job)
                  if (place !== undefined) return place
                }
                return undefined
              }
            })
      )
  }
}
