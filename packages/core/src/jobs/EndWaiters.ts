/** Callers that wait for jobs to end. The projection of open jobs wakes them. */
import type { Aggregate, Projection } from "@millrace/event-sourcing"
import { Deferred, type Duration, Effect } from "effect"
import * as Job from "./Job.ts"
import type { OpenJobs } from "./OpenJobs.ts"

export class EndWaiters {
  readonly #openJobs: OpenJobs
  readonly #waiting = new Map<string, Set<Deferred.Deferred<void>>>()

  constructor(openJobs: OpenJobs) {
    this.#openJobs = openJobs
  }

  /** Wakes waiters. Never ends. */
  readonly watch = Effect.gen({ self: this }, function* () {
    for (;;) {
      const { position, state } = yield* this.#openJobs.read()
      for (const [jobId, waiters] of this.#waiting)
        if (state.get(jobId) === undefined) for (const waiter of waiters) Deferred.doneUnsafe(waiter, Effect.void)
      yield* this.#openJobs.past(position)
    }
  })

  /** Waits at most `within` until the job has ended. */
  wait(
    jobId: string,
    read: Effect.Effect<Aggregate.Current<Job.Job>, Aggregate.Failure>,
    within: Duration.Input
  ): Effect.Effect<void, Aggregate.Failure | Projection.ProjectionBehind | Projection.ProjectionStopped> {
    const ended = Effect.acquireUseRelease(
      Effect.sync(() => Deferred.makeUnsafe<void>()),
      (waiter) => this.#ended(jobId, read, within, waiter),
      (waiter) => Effect.sync(() => this.#remove(jobId, waiter))
    )
    return Effect.asVoid(Effect.timeoutOption(ended, within))
  }

  readonly #ended = Effect.fnUntraced(
    { self: this },
    function* (
      jobId: string,
      read: Effect.Effect<Aggregate.Current<Job.Job>, Aggregate.Failure>,
      within: Duration.Input,
      waiter: Deferred.Deferred<void>
    ) {
      const { position, state: job } = yield* read
      if (!Job.isOpen(job)) return
      const { state } = yield* this.#openJobs.read({ atLeast: position, within })
      if (state.get(jobId) === undefined) return
      // Registered only after the projection has the job: until then, the job's absence from it does not mean that the job has ended
      this.#waiting.set(jobId, (this.#waiting.get(jobId) ?? new Set()).add(waiter))
      yield* Deferred.await(waiter)
    }
  )

  #remove(jobId: string, waiter: Deferred.Deferred<void>): void {
    const waiters = this.#waiting.get(jobId)
    waiters?.delete(waiter)
    if (waiters?.size === 0) this.#waiting.delete(jobId)
  }
}
