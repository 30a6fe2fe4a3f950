/** The worker threads that the process starts while a scope is open, and which of them ended. */
import type { Worker } from "node:worker_threads"
import { Effect, Queue } from "effect"

export const watchThreads = Effect.gen(function* () {
  const started: Array<Worker> = []
  const ended: Array<Worker> = []
  const ends = yield* Queue.unbounded<Worker>()
  const listener = (worker: Worker) => {
    started.push(worker)
    worker.once("exit", () => {
      ended.push(worker)
      Queue.offerUnsafe(ends, worker)
    })
  }
  yield* Effect.acquireRelease(
    Effect.sync(() => process.on("worker", listener)),
    () => Effect.sync(() => process.off("worker", listener))
  )
  return { started, ended, nextEnd: Queue.take(ends) }
})
