/** Reports whether this process can serve, and why not. What a store says about itself is logged and not reported. */

import {
  AccountUpkeep,
  Inboxes,
  InboxUpkeep,
  JobRunner,
  Jobs,
  JobUpkeep,
  KeyRing,
  Ledger,
  Metrics,
  ProxySessions,
  Recovery,
  Registration,
  SmsReceiver,
  WebhookDelivery,
  Webhooks
} from "@millrace/core"
import { type Deadlines, EventStore, type Projection, StateStore } from "@millrace/event-sourcing"
import { Clock, Context, Duration, Effect, Layer, Option, Schema } from "effect"
import * as WriteProbe from "./WriteProbe.ts"

export const Health = Schema.Struct({ status: Schema.Literal("alive") })

export const Ready = Schema.Struct({
  status: Schema.Literals(["ready", "not_ready"]),
  /** Why the process is not ready; empty while it is. */
  reasons: Schema.Array(Schema.String),
  /** What does not work though this process serves calls. A warning only, for operators. */
  warnings: Schema.Array(Schema.String),
  /** Streams that this process cannot read: calls that need them get 503, all other calls are served. */
  refused: Schema.Array(Schema.String),
  /** Streams in memory without a current snapshot. A warning only: they are served, but reloading them takes longer. */
  unsaved: Schema.Array(Schema.String),
  /** The recovery of holds whose calls died. */
  recovery: Schema.Struct({
    /** Whether this process is the leader of the recovery. */
    leader: Schema.Boolean,
    caught_up: Schema.Boolean,
    /** The number of holds that could not be ended yet. */
    failing: Schema.Int
  }),
  /** Absent at a host without jobs. */
  jobs: Schema.optionalKey(
    Schema.Struct({
      /** The number of jobs that this process runs. */
      running: Schema.Int,
      /** Whether this process is the leader that settles, ends and purges jobs. */
      leader: Schema.Boolean,
      caught_up: Schema.Boolean,
      /** The number of settlements and deadlines that could not be handled yet. */
      failing: Schema.Int
    })
  ),
  /** Absent at a host that delivers no webhooks. A receiver that fails does not keep a host from being ready. */
  webhooks: Schema.optionalKey(
    Schema.Struct({
      /** Whether this process is the leader that delivers. */
      leader: Schema.Boolean,
      /** The number of deliveries that wait, at the leader. */
      waiting: Schema.Int
    })
  )
})
export type Ready = typeof Ready.Type

/** A check: the reason why the process cannot serve, or what does not work; undefined if all is well. */
export type Check = Effect.Effect<string | undefined>

export class Readiness extends Context.Service<Readiness, { readonly report: Effect.Effect<Ready> }>()("@millrace/http/Readiness") {
  /** `checks` are further conditions of the host. What `warnings` find does not keep it from being ready. */
  static readonly layer = (
    checks: ReadonlyArray<Check> = [],
    warnings: ReadonlyArray<Check> = []
  ): Layer.Layer<Readiness, never, EventStore.EventStore | StateStore.StateStore | Ledger | KeyRing | Recovery> =>
    Layer.effect(Readiness, make(checks, warnings))
}

/** A store that takes longer to answer counts as unavailable. */
const PATIENCE = "2 seconds"

/** For how long a failed append keeps a host from being ready, where no append has succeeded since. */
const FAILURE_COUNTS = Duration.toMillis("5 seconds")

const make = Effect.fnUntraced(function* (checks: ReadonlyArray<Check>, warnings: ReadonlyArray<Check>) {
  const ledger = yield* Ledger
  const keys = yield* KeyRing
  const recovery = yield* Recovery
  const stores = yield* storeChecks

  const registration = yield* Effect.serviceOption(Registration)
  const jobStreams = yield* Effect.serviceOption(Jobs)
  const inboxStreams = yield* Effect.serviceOption(Inboxes)
  const inboxUpkeep = yield* Effect.serviceOption(InboxUpkeep)
  const webhookStreams = yield* Effect.serviceOption(Webhooks.Webhooks)
  const proxyStreams = yield* Effect.serviceOption(ProxySessions)
  const refused = (): ReadonlyArray<string> =>
    [
      ...ledger.refused(),
      ...keys.refused(),
      ...(Option.isSome(registration) ? registration.value.refused() : []),
      ...(Option.isSome(jobStreams) ? jobStreams.value.refused() : []),
      ...(Option.isSome(inboxStreams) ? inboxStreams.value.refused() : []),
      ...(Option.isSome(webhookStreams) ? webhookStreams.value.refused() : []),
      ...(Option.isSome(proxyStreams) ? proxyStreams.value.refused() : [])
    ].map(({ stream }) => stream)
  yield* Metrics.refusedStreams(() => refused().length)

  const jobs = yield* jobsStatus
  const webhooks = yield* webhooksStatus
  const upkeep = yield* Effect.serviceOption(AccountUpkeep)
  const sms = yield* Effect.serviceOption(SmsReceiver)

  const report = Effect.gen(function* () {
    const ofJobs = yield* jobs
    const ofWebhooks = yield* webhooks
    const { leader, failing, trouble, projection } = yield* recovery.status
    const asked = yield* Effect.forEach([...stores, ...checks], (check) => check, { concurrency: "unbounded" })
    const arrivals = Option.isNone(sms) ? undefined : yield* sms.value.arrivals
    const reasons = [
      ...asked,
      projectionTrouble("the recovery of holds", projection),
      projectionTrouble("the list of keys", yield* keys.listStatus),
      trouble === undefined ? undefined : "the recovery of holds does not get through to its stores",
      ...(Option.isSome(upkeep) ? accountsTrouble(yield* upkeep.value.status) : []),
      ...(Option.isSome(inboxUpkeep) ? inboxesTrouble(yield* inboxUpkeep.value.status) : []),
      arrivals && projectionTrouble("the list of text messages", arrivals),
      ...ofJobs.reasons,
      ...ofWebhooks.reasons
    ].filter((reason) => reason !== undefined)
    const ready: Ready = {
      status: reasons.length === 0 ? "ready" : "not_ready",
      reasons,
      warnings: (yield* Effect.all(warnings)).filter((warning) => warning !== undefined),
      refused: refused(),
      unsaved: ledger.unsaved(),
      recovery: { leader, caught_up: projection.caughtUp, failing: failing.length },
      ...(ofJobs.jobs === undefined ? {} : { jobs: ofJobs.jobs }),
      ...(ofWebhooks.webhooks === undefined ? {} : { webhooks: ofWebhooks.webhooks })
    }
    return ready
  })
  return Readiness.of({ report })
})

/** Whether each store answers reads, then whether it takes writes; and whether this host's clock is right. */
const storeChecks = Effect.gen(function* () {
  const events = yield* EventStore.EventStore
  const state = yield* StateStore.StateStore
  const ledger = yield* Ledger
  const clock = yield* Clock.Clock

  const succeeds = <E>(attempt: Effect.Effect<unknown, E>, reason: string): Effect.Effect<boolean> =>
    attempt.pipe(
      Effect.timeout(PATIENCE),
      Effect.as(true),
      Effect.catchCause((cause) => Effect.as(Effect.logWarning(`Not ready: ${reason}`, cause), false))
    )
  const check = (name: string, read: Effect.Effect<unknown, unknown>, write: Effect.Effect<unknown, unknown>) => {
    const silent = `the ${name} does not answer`
    const unwritable = `the ${name} takes no writes: is its disk full, or read-only?`
    return Effect.map(
      WriteProbe.make(succeeds(write, unwritable)),
      (takesWrites): Check =>
        Effect.gen(function* () {
          if (!(yield* succeeds(read, silent))) return silent
          return (yield* takesWrites) ? undefined : unwritable
        })
    )
  }
  const appends = Effect.sync(() => {
    const failedAt = ledger.appendFailedAt()
    const counts = failedAt !== undefined && clock.currentTimeMillisUnsafe() - failedAt < FAILURE_COUNTS
    return counts ? "the event store failed to take the newest events" : undefined
  })
  return [
    yield* check("event store", events.head, WriteProbe.ofEvents(events)),
    yield* check("state store", state.get("readiness", "probe"), WriteProbe.ofState(state)),
    appends,
    events.clock === undefined ? Effect.undefined : Effect.map(events.clock.status, ({ trouble }) => trouble)
  ]
})

/** What keeps inboxes from their ends. */
const inboxesTrouble = ({ closures, deadlines }: Effect.Success<InboxUpkeep["Service"]["status"]>): ReadonlyArray<string | undefined> => [
  projectionTrouble("the deadlines of inboxes", deadlines.projection),
  deadlines.trouble === undefined && closures.trouble === undefined ? undefined : "the upkeep of inboxes does not get through to its stores"
]

/** The status of jobs, at a host that has them. */
const jobsStatus = Effect.gen(function* () {
  const jobs = yield* Effect.serviceOption(Jobs)
  const upkeep = yield* Effect.serviceOption(JobUpkeep)
  const runner = yield* Effect.serviceOption(JobRunner)
  return Effect.gen(function* () {
    if (Option.isNone(jobs) || Option.isNone(upkeep)) return { jobs: undefined, reasons: [] }
    const { deadlines, settlements } = yield* upkeep.value.status
    const working = Option.isSome(runner) ? yield* runner.value.status : undefined
    return {
      jobs: {
        running: working?.running.length ?? 0,
        leader: settlements.leader,
        caught_up: deadlines.projection.caughtUp,
        failing: deadlines.failing.length + (settlements.failing === undefined ? 0 : 1)
      },
      reasons: [
        projectionTrouble("the list of jobs", yield* jobs.value.openJobs.status),
        projectionTrouble("the deadlines of jobs", deadlines.projection),
        deadlines.trouble === undefined && settlements.trouble === undefined
          ? undefined
          : "the upkeep of jobs does not get through to its stores",
        working?.trouble === undefined ? undefined : "the runner of jobs does not get through to its stores"
      ]
    }
  })
})

/** The status of webhooks, at a host that delivers them. */
const webhooksStatus = Effect.gen(function* () {
  const webhooks = yield* Effect.serviceOption(Webhooks.Webhooks)
  const delivery = yield* Effect.serviceOption(WebhookDelivery)
  return Effect.gen(function* () {
    if (Option.isNone(webhooks) || Option.isNone(delivery)) return { webhooks: undefined, reasons: [] }
    const { leader, trouble, waiting } = yield* delivery.value.status
    return {
      webhooks: { leader, waiting },
      reasons: [
        projectionTrouble("the list of webhooks", yield* webhooks.value.endpoints.status),
        trouble === undefined ? undefined : "the delivery of webhooks does not get through to its stores"
      ]
    }
  })
})

const accountsTrouble = ({ projection, trouble }: Deadlines.Status): ReadonlyArray<string | undefined> => [
  projectionTrouble("the list of what is due to accounts", projection),
  trouble === undefined ? undefined : "the upkeep of accounts does not get through to its stores"
]

const projectionTrouble = (name: string, { stopped, behind, caughtUp }: Projection.Status): string | undefined => {
  if (stopped !== undefined) return `${name} stopped at an event that it cannot fold`
  if (behind !== undefined) return `${name} does not get through to its store`
  return caughtUp ? undefined : `${name} has not caught up yet`
}
