/** A projection of the open jobs, those that have not ended, in the order in which they are to run. */
import { type EventHandlers, type EventStore, Projection, type StateStore } from "@millrace/event-sourcing"
import { type Effect, Schema, SchemaTransformation, type Scope } from "effect"
import { Job, type JobEvent } from "./Job.ts"
import { Entry, Schedule } from "./Schedule.ts"

export type Board = Projection.Projection<Schedule>

const Stored = Schema.Array(Entry).pipe(
  Schema.decodeTo(
    Schema.instanceOf(Schedule),
    SchemaTransformation.transform({
      decode: (entries) => {
        const schedule = new Schedule()
        for (const entry of entries) schedule.set(entry)
        return schedule
      },
      encode: (schedule) => [...schedule.values()]
    })
  )
)

/** `startFrom` of a job that can start at once: earlier than any host's clock. */
const AT_ONCE = 0

const change = (schedule: Schedule, jobId: string, next: (entry: Entry) => Entry): Schedule => {
  const entry = schedule.get(jobId)
  if (entry !== undefined) schedule.set(next(entry))
  return schedule
}

const end = (_: unknown, { id }: EventHandlers.Origin, schedule: Schedule): Schedule => {
  schedule.remove(id)
  return schedule
}

export const make = (
  options?: Projection.Options
): Effect.Effect<Board, never, EventStore.EventStore | StateStore.StateStore | Scope.Scope> =>
  Projection.make(
    {
      name: "jobs",
      version: 1,
      state: Stored,
      initial: () => new Schedule(),
      ...Projection.of<Schedule, JobEvent>(Job, {
        JobAccepted: ({ accountId, operation }, { id: jobId }, schedule) => {
          schedule.set({ jobId, accountId, operation, attempt: 0, runner: null, startFrom: AT_ONCE })
          return schedule
        },
        JobStarted: ({ attempt, leaseUntil, runner }, { id }, schedule) =>
          change(schedule, id, (entry) => ({ ...entry, attempt, runner, startFrom: leaseUntil })),
        JobLeaseExtended: ({ leaseUntil }, { id }, schedule) => change(schedule, id, (entry) => ({ ...entry, startFrom: leaseUntil })),
        JobReleased: ({ failure, startFrom }, { id }, schedule) =>
          change(schedule, id, (entry) => ({ ...entry, runner: null, startFrom: failure === undefined ? AT_ONCE : startFrom })),
        JobSucceeded: end,
        JobFailed: end,
        JobCancelled: end
      })
    },
    options
  )
