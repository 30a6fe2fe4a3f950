/** Reports whether this process can serve, and why not. What a store says about itself is logged and not reported. */

import {
  Coupons,
  DailyQuotas,
  Inboxes,
  Invoices,
  Jobs,
  KeyRing,
  Ledger,
  Metrics,
  Passkeys,
  Payments,
  PriceAlerts,
  PriceObservations,
  ProxySessions,
  Recovery,
  Registration,
  Sessions,
  SignIn,
  SignUps,
  Subscriptions,
  toIso,
  Webhooks
} from "@millrace/core"
import { EventStore, StateStore } from "@millrace/event-sourcing"
import { Clock, Context, Duration, Effect, Layer, Option, Schema } from "effect"
import * as Parts from "./ReadinessParts.ts"
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
  ),
  /** Absent at a host that runs all its calls itself. */
  cluster: Schema.optionalKey(
    Schema.Struct({
      /** The shards of accounts that this host leads, of 256. */
      shards: Schema.Int,
      /** The number of other hosts to which calls are forwarded. */
      hosts: Schema.Int,
      /** The number of other hosts that are known, and do not lead: their link is broken, they stop, or do not get through to the store. */
      unreachable: Schema.Int
    })
  ),
  /** What upstreams allow in a day, as all hosts together use it up. Absent at a host whose upstreams have no such quota. */
  quotas: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({
        upstream: Schema.String,
        /** Units. */
        used: Schema.Int,
        limit: Schema.Int,
        resets_at: Schema.String
      })
    )
  )
})
export type Ready = typeof Ready.Type

/** A check: the reason why the process cannot serve, or what does not work; undefined if all is well. */
export type Check = Effect.Effect<string | undefined>

export class Readiness extends Context.Service<
  Readiness,
  {
    readonly report: Effect.Effect<Ready>
    /** The projections that the report is about, one by one. */
    readonly projections: Effect.Effect<ReadonlyArray<Parts.ProjectionStatus>>
  }
>()("@millrace/http/Readiness") {
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

  const others = yield* Effect.all([
    Effect.serviceOption(Registration),
    Effect.serviceOption(Jobs),
    Effect.serviceOption(Inboxes),
    Effect.serviceOption(Webhooks.Webhooks),
    Effect.serviceOption(ProxySessions),
    Effect.serviceOption(Payments),
    Effect.serviceOption(PriceObservations),
    Effect.serviceOption(PriceAlerts),
    Effect.serviceOption(Invoices),
    Effect.serviceOption(Subscriptions),
    Effect.serviceOption(Coupons),
    Effect.serviceOption(Sessions),
    Effect.serviceOption(Passkeys),
    Effect.serviceOption(SignUps),
    Effect.serviceOption(SignIn)
  ])
  const readers = [ledger, keys, ...others.flatMap((service) => Option.toArray<{ readonly refused: typeof ledger.refused }>(service))]
  const refused = (): ReadonlyArray<string> => readers.flatMap((reader) => reader.refused()).map(({ stream }) => stream)
  yield* Metrics.refusedStreams(() => refused().length)

  const jobs = yield* Parts.jobs
  const webhooks = yield* Parts.webhooks
  const further = yield* Parts.further
  const quotas = yield* quotasOf
  const cluster = yield* Parts.cluster

  const looked = Effect.gen(function* () {
    const ofJobs = yield* jobs
    const ofWebhooks = yield* webhooks
    const ofHolds = yield* recovery.status
    const parts = [Parts.holds(ofHolds, yield* keys.listStatus), ...(yield* further), ofJobs.part, ofWebhooks.part]
    return { ofJobs, ofWebhooks, ofHolds, parts }
  })

  const report = Effect.gen(function* () {
    const { ofHolds, ofJobs, ofWebhooks, parts } = yield* looked
    const asked = yield* Effect.forEach([...stores, ...checks], (check) => check, { concurrency: "unbounded" })
    const reasons = [...asked, ...parts.flatMap(Parts.troublesOf)].filter((reason) => reason !== undefined)
    const ofQuotas = yield* quotas
    const ready: Ready = {
      status: reasons.length === 0 ? "ready" : "not_ready",
      reasons,
      warnings: (yield* Effect.all(warnings)).filter((warning) => warning !== undefined),
      refused: refused(),
      unsaved: ledger.unsaved(),
      recovery: { leader: ofHolds.leader, caught_up: ofHolds.projection.caughtUp, failing: ofHolds.failing.length },
      ...(ofJobs.jobs === undefined ? {} : { jobs: ofJobs.jobs }),
      ...(ofWebhooks.webhooks === undefined ? {} : { webhooks: ofWebhooks.webhooks }),
      ...(cluster === undefined ? {} : { cluster: cluster() }),
      ...(ofQuotas.length === 0 ? {} : { quotas: ofQuotas })
    }
    return ready
  })
  return Readiness.of({ report, projections: Effect.map(looked, ({ parts }) => parts.flatMap(Parts.projectionsOf)) })
})

const quotasOf = Effect.map(Effect.serviceOption(DailyQuotas), (service) => {
  const standings = Option.match(service, { onNone: () => Effect.succeed([]), onSome: ({ standings }) => standings })
  return Effect.map(standings, (all) => all.map(({ resetsAt, ...quota }) => ({ ...quota, resets_at: toIso(resetsAt) })))
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
