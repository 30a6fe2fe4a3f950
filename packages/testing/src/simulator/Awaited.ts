/** Callers who wait for something that happens to a job, and are told when it does. */
import { Effect } from "effect"

export const make = () => {
  const waiting = new Map<string, Set<() => void>>()
  return {
    tell: (jobId: string): void => {
      for (const resume of waiting.get(jobId) ?? []) resume()
      waiting.delete(jobId)
    },
    wait: (jobId: string): Effect.Effect<void> =>
      Effect.callback((resume) => {
        const tell = () => resume(Effect.void)
        const all = waiting.get(jobId) ?? new Set()
        waiting.set(jobId, all.add(tell))
        return Effect.sync(() => void all.delete(tell))
      })
  }
}
