/** Callers that wait for jobs to end, woken by the projection of open jobs. */
import type { Aggregate, Projection } from "@millrace/event-sourcing"
import { Deferred, type Duration, Effect } from "effect"
import type { Board } from "./Board.ts"
import * as Job from "./Job.ts"

export class EndWaiters {
  readonly #board: Board
  readonly #waiting = new Map<string, Set<Deferred.Deferred<void>>>()

  constructor(board: Board) {
    this.#board = board
  }

  /** Wakes waiters for as long as it runs. */
  readonly watch = Effect.gen({ self: this }, function* () {
    for (;;) {
      const { position, state } = yield* this.#board.read()
      for (const [jobId, waiters] of this.#waiting)
        if (state.get(jobId) === undefined) for (const waiter of waiters) Deferred.doneUnsafe(waiter, Effect.void)
      yield* this.#board.past(position)
    }
  })

  /** Waits until the job that is read has ended, at most `within`. */
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
      const { state } = yield* this.#board.read({ atLeast: position, within })
      if (state.get(jobId) === undefined) return
      // Only now: a board that does not know the job yet looks like one on which the job has ended. A later end wakes the waiter
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
