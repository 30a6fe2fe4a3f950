/** Callers that wait for jobs to end. The projection of open jobs wakes them. */
import type { Aggregate, Projection } from "@millrace/event-sourcing"
import { Deferred, type Duration, Effect } from "effect"
import * as Job from "./Job.ts"
import type { OpenJobs } from "./OpenJobs.ts"

export const make = (openJobs: OpenJobs) => {
  const waiters = new Set<{ readonly jobId: string; readonly ended: Deferred.Deferred<void> }>()
  return {
    /** Wakes waiters. Never ends. */
    watch: Effect.gen(function* () {
      for (;;) {
        yield* openJobs.until(({ state }) => {
          for (const { jobId } of waiters) if (state.get(jobId) === undefined) return true
          return false
        })
        const { state } = yield* openJobs.read()
        for (const waiter of waiters)
          if (state.get(waiter.jobId) === undefined) {
            waiters.delete(waiter)
            Deferred.doneUnsafe(waiter.ended, Effect.void)
          }
      }
    }),
    /** Waits at most `within` until the job has ended. `read`: reads the job. */
    wait: (
      jobId: string,
      read: Effect.Effect<Aggregate.Current<Job.Job>, Aggregate.Failure>,
      within: Duration.Input
    ): Effect.Effect<void, Aggregate.Failure | Projection.ProjectionBehind | Projection.ProjectionStopped> =>
      Effect.suspend(() => {
        const waiter = { jobId, ended: Deferred.makeUnsafe<void>() }
        return Effect.gen(function* () {
          const { position, state: job } = yield* read
          if (!Job.isOpen(job)) return
          const { state } = yield* openJobs.read({ atLeast: position, within })
          if (state.get(jobId) === undefined) return
          // Registered only after the projection has the job: until then, the job's absence from it does not mean that the job has ended
          waiters.add(waiter)
          yield* Deferred.await(waiter.ended)
        }).pipe(Effect.ensuring(Effect.sync(() => waiters.delete(waiter))), Effect.timeoutOption(within), Effect.asVoid)
      })
  }
}
