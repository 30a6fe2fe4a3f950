/** The jobs that a runner has taken, and the signals that it waits for. */
import type { EventStore, Following } from "@millrace/event-sourcing"
import { type Fiber, Latch } from "effect"
import type { AttemptResult } from "./Attempt.ts"
import { type Candidate, Counts, type JobQueue } from "./JobQueue.ts"

/** When runners compete for jobs, each picks at random among at most this many of an account's oldest. */
const MAX_SPREAD = 64

/** A job that the queue does not show as running yet. `claimedAt`: the log position of its claim, once that is known. */
interface Starting extends Candidate {
  claimedAt: EventStore.Position | undefined
}

export class Shift {
  /** Taken jobs, until the queue shows the outcome of the attempt. */
  readonly taken = new Set<string>()
  /** The attempts that run. */
  readonly running = new Map<string, Fiber.Fiber<unknown, unknown>>()
  /** Places in use. A place is free once the end of its attempt is recorded. */
  busy = 0
  /** The number of an account's oldest jobs to pick from. */
  spread = 1
  trouble: Following.Retrying | undefined
  /** Whether the runner stops, and takes no more jobs. */
  isClosing = false
  /** Open while no place is in use. */
  readonly idle = Latch.makeUnsafe(true)
  /** Open when there may be a job to take. */
  readonly woken = Latch.makeUnsafe(false)
  /** The number of taken jobs that the queue does not show as running yet. */
  readonly starting = new Counts()
  readonly #starting = new Map<string, Starting>()
  /** Jobs whose attempt is over, with the log position of its last event. */
  readonly #over = new Map<string, EventStore.Position>()

  take({ accountId, jobId, operation }: Candidate): void {
    const starting = { accountId, jobId, operation, claimedAt: undefined }
    this.taken.add(jobId)
    this.#starting.set(jobId, starting)
    this.starting.add(starting, 1)
    this.busy++
    this.idle.closeUnsafe()
  }

  claimed(jobId: string, position: EventStore.Position): void {
    const starting = this.#starting.get(jobId)
    if (starting !== undefined) starting.claimedAt = position
  }

  /** Frees the place of an attempt that has ended. A claim lost to another runner widens the next picks. */
  end(jobId: string, { claimed, position }: AttemptResult): void {
    if (position !== undefined) this.#over.set(jobId, position)
    this.spread = claimed ? Math.max(1, this.spread * 0.9) : Math.min(MAX_SPREAD, this.spread * 2)
    this.leave(jobId)
  }

  /** Frees the place of a taken job. */
  leave(jobId: string): void {
    this.running.delete(jobId)
    this.#started(jobId)
    this.busy--
    if (this.busy === 0) this.idle.openUnsafe()
    this.woken.openUnsafe()
  }

  #started(jobId: string): void {
    const starting = this.#starting.get(jobId)
    if (starting === undefined) return
    this.#starting.delete(jobId)
    this.starting.add(starting, -1)
  }

  /** Drops a job that may be taken again. */
  forget(jobId: string): void {
    this.taken.delete(jobId)
    this.woken.openUnsafe()
  }

  /** Drops what the queue shows by now. `position`: the queue's place in the log. */
  see(queue: JobQueue, position: EventStore.Position): void {
    for (const [jobId, { claimedAt }] of this.#starting)
      if ((claimedAt !== undefined && claimedAt <= position) || (queue.get(jobId)?.runner ?? null) !== null) this.#started(jobId)
    for (const [jobId, last] of this.#over)
      if (last <= position) {
        this.#over.delete(jobId)
        this.taken.delete(jobId)
      }
  }

  /** Jobs that the runner `id` runs, though they have ended or another runner has them. */
  lost(queue: JobQueue, id: string): ReadonlyArray<Fiber.Fiber<unknown, unknown>> {
    const lost: Array<Fiber.Fiber<unknown, unknown>> = []
    for (const [jobId, fiber] of this.running) {
      const entry = queue.get(jobId)
      const isOurs = entry === undefined ? this.#starting.has(jobId) : entry.runner === null || entry.runner === id
      if (!isOurs) lost.push(fiber)
    }
    return lost
  }
}
