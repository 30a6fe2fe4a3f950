/** The jobs that have not ended, as a projection of their streams. */
import { EventCodec, type EventStore, Projection, type StateStore, StreamName } from "@millrace/event-sourcing"
import { type Effect, Schema, SchemaTransformation, type Scope } from "effect"
import { Job } from "./Job.ts"
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

const codec = EventCodec.make(Job)

/** Ready at once, whatever the clocks of those who accept jobs and those who run them say. */
const AT_ONCE = 0

const evolve = (schedule: Schedule, { data, stream, type }: EventStore.RecordedEvent): Schedule => {
  const jobId = StreamName.id(stream)
  const event = codec.decode(type, data)
  const change = (next: (entry: Entry) => Entry) => {
    const entry = schedule.get(jobId)
    if (entry !== undefined) schedule.set(next(entry))
  }
  switch (event._tag) {
    case "JobAccepted": {
      const { accountId, operation } = event
      schedule.set({ jobId, accountId, operation, attempt: 0, runner: null, startFrom: AT_ONCE })
      break
    }
    case "JobStarted":
      change((entry) => ({ ...entry, attempt: event.attempt, runner: event.runner, startFrom: event.leaseUntil }))
      break
    case "JobLeaseExtended":
      change((entry) => ({ ...entry, startFrom: event.leaseUntil }))
      break
    case "JobReleased":
      change((entry) => ({ ...entry, runner: null, startFrom: event.failure === undefined ? AT_ONCE : event.startFrom }))
      break
    case "JobSucceeded":
    case "JobFailed":
    case "JobCancelled":
      schedule.remove(jobId)
      break
    case "JobProgressed":
    case "JobRefused":
    case "JobPurged":
      break
  }
  return schedule
}

export const make = (
  options?: Projection.Options
): Effect.Effect<Board, never, EventStore.EventStore | StateStore.StateStore | Scope.Scope> =>
  Projection.make(
    {
      name: "jobs",
      version: 1,
      categories: [Job.category],
      types: ["JobAccepted", "JobStarted", "JobLeaseExtended", "JobReleased", "JobSucceeded", "JobFailed", "JobCancelled"],
      state: Stored,
      initial: () => new Schedule(),
      evolve
    },
    options
  )
