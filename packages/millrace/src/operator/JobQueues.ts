/** The open jobs of each operation: how many wait, how many run, and the one that has waited longest. */
import { Jobs } from "@millrace/core"
import type { OperatorRoutes } from "@millrace/http"
import { Effect } from "effect"

interface Queue {
  waiting: number
  running: number
  oldest: { readonly job_id: string; readonly account_id: string; readonly accepted_at: number } | null
}

export const make: Effect.Effect<ReturnType<OperatorRoutes.View["read"]>, never, Jobs> = Effect.map(Jobs, ({ openJobs }) =>
  Effect.map(openJobs.read(), ({ state }) => {
    const queues = new Map<string, Queue>()
    for (const { acceptedAt: accepted_at, accountId: account_id, jobId: job_id, operation, runner } of state.values()) {
      const queue = queues.get(operation) ?? { waiting: 0, running: 0, oldest: null }
      queues.set(operation, queue)
      if (runner !== null) queue.running++
      else {
        queue.waiting++
        if (queue.oldest === null || accepted_at < queue.oldest.accepted_at) queue.oldest = { job_id, account_id, accepted_at }
      }
    }
    const jobs = Array.from(queues, ([operation, { oldest, ...counts }]) => ({
      operation,
      ...counts,
      oldest: oldest && { ...oldest, accepted_at: new Date(oldest.accepted_at).toISOString() }
    }))
    return { jobs: jobs.sort((a, b) => b.waiting - a.waiting) }
  })
)
