/** A projection of the open jobs, those that have not ended, in the order in which they are to run. */
import { type EventHandlers, type EventStore, Projection, type StateStore } from "@millrace/event-sourcing"
import { Effect, Schema, SchemaTransformation, type Scope } from "effect"
import { Job, type JobEvent } from "./Job.ts"
import { Entry, JobQueue } from "./JobQueue.ts"

export type OpenJobs = Projection.Projection<JobQueue>

const Stored = Schema.Array(Entry).pipe(
  Schema.decodeTo(
    Schema.instanceOf(JobQueue),
    SchemaTransformation.transform({
      decode: (entries) => {
        const queue = new JobQueue()
        for (const entry of entries) queue.set(entry)
        return queue
      },
      encode: (queue) => [...queue.values()]
    })
  )
)

/** `startFrom` of a job that can start at once: earlier than any host's clock. */
const AT_ONCE = 0

const change = (queue: JobQueue, jobId: string, next: (entry: Entry) => Entry): JobQueue => {
  const entry = queue.get(jobId)
  if (entry !== undefined) queue.set(next(entry))
  return queue
}

const end = (_: unknown, { id }: EventHandlers.Origin, queue: JobQueue): JobQueue => {
  queue.remove(id)
  return queue
}

export const make = (
  options?: Projection.Options
): Effect.Effect<OpenJobs, never, EventStore.EventStore | StateStore.StateStore | Scope.Scope> =>
  Projection.make(
    {
      name: "jobs",
      version: 2,
      state: Stored,
      initial: () => new JobQueue(),
      ...Projection.of<JobQueue, JobEvent>(Job, {
        JobAccepted: ({ accountId, operation }, { at, id: jobId }, queue) => {
          queue.set({ jobId, accountId, operation, acceptedAt: at, attempt: 0, runner: null, startFrom: AT_ONCE })
          return queue
        },
        JobStarted: ({ attempt, leaseUntil, runner }, { id }, queue) =>
          change(queue, id, (entry) => ({ ...entry, attempt, runner, startFrom: leaseUntil })),
        JobLeaseExtended: ({ leaseUntil }, { id }, queue) => change(queue, id, (entry) => ({ ...entry, startFrom: leaseUntil })),
        JobReleased: ({ failure, startFrom }, { id }, queue) =>
          change(queue, id, (entry) => ({ ...entry, runner: null, startFrom: failure === undefined ? AT_ONCE : startFrom })),
        JobSucceeded: end,
        JobFailed: end,
        JobCancelled: end
      })
    },
    options
  )

/** The open jobs as this process knows them now. An exit, unless the projection must be waited for. */
export const current = (openJobs: OpenJobs): ReturnType<OpenJobs["read"]> => {
  const now = openJobs.readNow()
  return now === undefined ? openJobs.read() : Effect.succeed(now)
}
