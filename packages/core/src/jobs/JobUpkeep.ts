/**
 * Sees to it that nothing of a job is left undone, whichever process died when: a hold whose job was not accepted in time goes back, a job
 * that outlives its deadline fails, every end reaches its account, and what was kept is destroyed when its time is over.
 */
import { Deadlines, EventCodec, EventStore, type Projection, Reaction, type StateStore, StreamName } from "@millrace/event-sourcing"
import { Context, Effect, Layer, type Scope } from "effect"
import { Account } from "../ledger/Account.ts"
import * as Job from "./Job.ts"
import { Jobs } from "./Jobs.ts"

export class JobUpkeep extends Context.Service<
  JobUpkeep,
  {
    /** Jobs that were to be accepted, to end, or to be purged by `now`. Milliseconds since 1970. */
    readonly overdue: Deadlines.Deadlines["overdue"]
    /**
     * The names of all blobs that jobs still need, for a sweep of the `BlobStore` with its grace of a day: an attempt that died may have
     * stored others.
     */
    readonly artifacts: Effect.Effect<
      ReadonlySet<string>,
      Projection.ProjectionBehind | Projection.ProjectionStopped | EventStore.StoreUnavailable
    >
    readonly status: Effect.Effect<{ readonly deadlines: Deadlines.Status; readonly settlements: Reaction.Status }>
  }
>()("@millrace/core/jobs/JobUpkeep") {
  static readonly layer = (
    options: Deadlines.Options = {}
  ): Layer.Layer<JobUpkeep, never, Jobs | EventStore.EventStore | StateStore.StateStore> => Layer.effect(JobUpkeep, make(options))
}

/** A hold that waits for its job, as the account's event tells it. */
interface Hold {
  readonly jobId?: string
  readonly acceptBy?: string
  readonly reservationId: string
}

/** What is to be known when a deadline is due: who pays for a job that was to be accepted, what is kept of one that has ended. */
interface Payload {
  readonly payer?: { readonly accountId: string; readonly reservationId: string }
  readonly artifacts?: ReadonlyArray<string>
}

const encode = (payload: Payload): string => JSON.stringify(payload)
const decode = (payload: string): Payload => (payload === "" ? {} : JSON.parse(payload))

/** Settlements that may come again after a crash: they are all idempotent. */
const CHECKPOINT_EVERY = 100

const codec = EventCodec.make(Job.Job)

/** Every call that is held passes here, so only those of jobs are taken apart. */
const holdOf = ({ data, stream }: EventStore.RecordedEvent): ReadonlyArray<Deadlines.Change> => {
  if (!data.includes('"jobId"')) return []
  const { acceptBy, jobId, reservationId }: Hold = JSON.parse(data)
  if (jobId === undefined || acceptBy === undefined) return []
  const payload = encode({ payer: { accountId: StreamName.id(stream), reservationId } })
  return [{ _tag: "set", key: jobId, dueAt: Date.parse(acceptBy), payload }]
}

const schedule = (recorded: EventStore.RecordedEvent): ReadonlyArray<Deadlines.Change> => {
  if (recorded.type === "CreditReserved") return holdOf(recorded)
  const key = StreamName.id(recorded.stream)
  const event = codec.decode(recorded.type, recorded.data)
  switch (event._tag) {
    case "JobAccepted":
      return [{ _tag: "set", key, dueAt: event.deadline }]
    case "JobSucceeded": {
      const payload = event.artifacts.length === 0 ? "" : encode({ artifacts: event.artifacts.map(({ id }) => id) })
      return [{ _tag: "set", key, dueAt: event.retainUntil, payload }]
    }
    case "JobFailed":
    case "JobCancelled":
      return [{ _tag: "set", key, dueAt: event.retainUntil }]
    default:
      return [{ _tag: "clear", key }]
  }
}

const make = (
  options: Deadlines.Options
): Effect.Effect<JobUpkeep["Service"], never, Jobs | EventStore.EventStore | StateStore.StateStore | Scope.Scope> =>
  Effect.gen(function* () {
    const jobs = yield* Jobs
    const events = yield* EventStore.EventStore

    const deadlines = yield* Deadlines.make(
      {
        name: "jobDeadlines",
        version: 1,
        categories: [Account.category, Job.Job.category],
        types: ["CreditReserved", "JobAccepted", "JobRefused", "JobSucceeded", "JobFailed", "JobCancelled", "JobPurged"],
        schedule,
        onDue: Effect.fnUntraced(function* ({ key: jobId, payload }) {
          const { payer } = decode(payload)
          if (payer === undefined) {
            yield* jobs.execute(jobId, Job.expire)
            yield* jobs.settle(jobId)
            const { state: job, at } = yield* jobs.read(jobId)
            if (Job.isEnded(job) && at >= job.retainUntil) yield* jobs.purge(jobId)
            return
          }
          yield* jobs.execute(jobId, Job.refuse(payer.accountId, payer.reservationId))
          yield* jobs.settle(jobId)
        })
      },
      options
    )

    const settlements = yield* Reaction.make(
      {
        name: "jobSettlements",
        categories: [Job.Job.category],
        types: ["JobRefused", "JobSucceeded", "JobFailed", "JobCancelled"],
        start: "beginning",
        react: ({ stream, type }) => {
          const jobId = StreamName.id(stream)
          const isPurgedAtOnce = type === "JobRefused" || type === "JobCancelled"
          return Effect.andThen(jobs.settle(jobId), isPurgedAtOnce ? jobs.purge(jobId) : Effect.void)
        }
      },
      { ...options, checkpointEvery: CHECKPOINT_EVERY }
    )

    return JobUpkeep.of({
      overdue: deadlines.overdue,
      artifacts: Effect.gen(function* () {
        const all = yield* deadlines.list({ atLeast: yield* events.head })
        return new Set(all.flatMap(({ payload }) => decode(payload).artifacts ?? []))
      }),
      status: Effect.all({ deadlines: deadlines.status, settlements: settlements.status })
    })
  })
