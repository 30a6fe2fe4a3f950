/** Wakes callers that wait for an upstream to deliver the work of a job. */
import { Effect } from "effect"

export class JobSignals {
  readonly #waiting = new Map<string, Set<() => void>>()

  /** Wakes every caller that waits for this job. */
  signal(jobId: string): void {
    for (const resume of this.#waiting.get(jobId) ?? []) resume()
    this.#waiting.delete(jobId)
  }

  wait(jobId: string): Effect.Effect<void> {
    return Effect.callback((resume) => {
      const wake = () => resume(Effect.void)
      const waiting = this.#waiting.get(jobId) ?? new Set()
      this.#waiting.set(jobId, waiting.add(wake))
      return Effect.sync(() => void waiting.delete(wake))
    })
  }
}
