/**
 * Millrace's metrics, in Effect's registry, from which Prometheus or OpenTelemetry reads them. Attributes have few values, so no account,
 * id or path is one. Names and units follow OpenTelemetry.
 */
import type { Projection } from "@millrace/event-sourcing"
import { Clock, Context, Effect, Exit, Metric, type Scope } from "effect"
import * as Credits from "../Credits.ts"
import { memoised } from "../Memoised.ts"
import * as Outcome from "./Outcome.ts"

/** Histogram boundaries in seconds, from OpenTelemetry's semantic conventions for HTTP. */
export const SECONDS: ReadonlyArray<number> = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]

type Attributes = Readonly<Record<string, string>>

/** One metric for each value of an attribute, created on first use. An empty value omits the attribute. */
export const series = <M extends {}>(name: string, make: (attributes: Attributes) => M): ((value: string) => M) =>
  memoised((value) => make(value === "" ? {} : { [name]: value }))

/** One metric for each pair of values of two attributes. */
export const table = <M extends {}>(first: string, second: string, make: (attributes: Attributes) => M): ((a: string, b: string) => M) => {
  const rows = series(first, (outer) => series(second, (inner) => make({ ...outer, ...inner })))
  return (a, b) => rows(a)(b)
}

export const counter = (name: string, description: string) => (attributes: Attributes) =>
  Metric.counter(name, { description, incremental: true, attributes })

/** A histogram of seconds. */
export const histogram =
  (name: string, description: string, boundaries = SECONDS) =>
  (attributes: Attributes) =>
    Metric.histogram(name, { description, boundaries, attributes: { ...attributes, unit: "s" } })

export const gauge = (name: string, description: string) => (attributes: Attributes) => Metric.gauge(name, { description, attributes })

/** Registers gauges that are read when they are exported, until the scope closes. */
const observer = Effect.gen(function* () {
  const context = yield* Effect.context<never>()
  const registered: Array<Metric.Registration> = []
  yield* Effect.addFinalizer(() => Effect.sync(() => registered.forEach((registration) => registration.remove())))
  return <State>(metric: Metric.Metric<number, State>, read: () => State): void => {
    registered.push(Metric.registerUnsafe(metric, context, { get: read, update: () => {}, modify: () => {} }))
  }
})

/** Registers a gauge that is read when it is exported, until the scope closes. */
export const observe = <State>(metric: Metric.Metric<number, State>, read: () => State): Effect.Effect<void, never, Scope.Scope> =>
  Effect.map(observer, (observe) => observe(metric, read))

/** A gauge without attributes: makes the function that registers it. */
const observed = (name: string, description: string): ((read: () => number) => Effect.Effect<void, never, Scope.Scope>) => {
  const metric = gauge(name, description)({})
  return (read) => observe(metric, () => ({ value: read() }))
}

/** The registry and attributes of metrics. Resolved once, when a layer is built: a lookup costs more than an update. */
const registry: Effect.Effect<Context.Context<never>> = Effect.map(Effect.context<never>(), (context) =>
  Context.make(Metric.MetricRegistry, Context.get(context, Metric.MetricRegistry)).pipe(
    Context.add(Metric.CurrentMetricAttributes, Context.get(context, Metric.CurrentMetricAttributes))
  )
)

/** Measures how long something takes. */
export interface Stopwatch<What> {
  /** When a measurement begins, in nanoseconds of the monotonic clock. */
  readonly begin: () => bigint
  /** Records the seconds of a measurement, by what was measured. */
  readonly end: (began: bigint, what: What) => void
}

const stopwatch = <What>(histogram: (what: What) => Metric.Histogram<number>): Effect.Effect<Stopwatch<What>> =>
  Effect.gen(function* () {
    const context = yield* registry
    const clock = yield* Clock.Clock
    return {
      begin: () => clock.monotonicTimeNanosUnsafe(),
      end: (began, what) => histogram(what).updateUnsafe(Number(clock.monotonicTimeNanosUnsafe() - began) / 1e9, context)
    }
  })

// calls

const charges = table(
  "operation",
  "outcome",
  counter("millrace.charges", "Calls of operations by outcome: charged, free, replayed, cancelled, defect, or the error they ended with")
)

/** Counts a call of an operation by how it ended. */
export const countCharges = Effect.map(registry, (context) => (operation: string, exit: Exit.Exit<Reply, unknown>) => {
  const outcome = Exit.isSuccess(exit) ? successOf(exit.value) : Outcome.ofCause(exit.cause)
  charges(operation, outcome).updateUnsafe(1, context)
})

interface Reply {
  readonly billed?: { readonly charged: Credits.Credits }
  readonly replayed: boolean
}

const successOf = ({ billed, replayed }: Reply): string => {
  if (replayed) return "replayed"
  return billed === undefined || billed.charged === 0 ? "free" : "charged"
}

const upstreamDuration = table(
  "upstream",
  "outcome",
  histogram("millrace.upstream.duration", "How long an upstream took for a call: success, or the error it ended with")
)

interface UpstreamCall {
  readonly upstream: string
  readonly exit: Exit.Exit<unknown, unknown>
}

/** Measures how long an upstream takes for a call. */
export const timeUpstreams = stopwatch(({ exit, upstream }: UpstreamCall) => upstreamDuration(upstream, Outcome.of(exit)))

const openCircuits = series(
  "upstream",
  gauge("millrace.upstream.circuit.open", "1 while calls of an upstream fail at once, after consecutive failures")
)

/** Reports for each upstream, from when it is first named, whether its circuit is open. */
export const circuits = (isOpen: (upstream: string) => boolean): Effect.Effect<(upstream: string) => void, never, Scope.Scope> =>
  Effect.map(observer, (observe) => {
    const known = new Set<string>()
    return (upstream) => {
      if (known.has(upstream)) return
      known.add(upstream)
      observe(openCircuits(upstream), () => ({ value: isOpen(upstream) ? 1 : 0 }))
    }
  })

// the ledger

const refunded = series("stage", counter("millrace.credits.refunded", "Credits released (stage reserved) or refunded (stage settled)"))

const credits = {
  charged: counter("millrace.credits.charged", "Credits that calls were charged")({}),
  granted: counter("millrace.credits.granted", "Credits granted to accounts")({}),
  reserved: refunded("reserved"),
  settled: refunded("settled")
}

/** Counts credits that an event moves: charged, granted, released (`reserved`) or refunded (`settled`). */
export const countCredits: Effect.Effect<(moved: keyof typeof credits, amount: Credits.Credits) => void> = Effect.map(
  registry,
  (context) => (moved, amount) => credits[moved].updateUnsafe(Credits.toDecimal(amount), context)
)

const appendDuration = series(
  "outcome",
  histogram(
    "millrace.ledger.append.duration",
    "How long the event store took to make events of an account durable: success, or the error it ended with",
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
  )
)

/** Measures an append, by how it ended. */
export const timeAppends = stopwatch((exit: Exit.Exit<unknown, unknown>) => appendDuration(Outcome.of(exit)))

// projections, recovery, streams, rate limits

const projectionLag = series("projection", (attributes) =>
  gauge(
    "millrace.projection.lag",
    "Time since a projection was last seen caught up with the log: the longest delay that it can have"
  )({ ...attributes, unit: "s" })
)

/** Reports how far a projection is behind: at most the time since it was last seen caught up. */
export const lag = (projection: string, status: Effect.Effect<Projection.Status>): Effect.Effect<void, never, Scope.Scope> =>
  Effect.flatMap(Clock.Clock, (clock) => {
    let caughtUpAt = clock.monotonicTimeNanosUnsafe()
    return observe(projectionLag(projection), () => {
      const now = clock.monotonicTimeNanosUnsafe()
      if (Effect.runSync(status).caughtUp) caughtUpAt = now
      return { value: Number(now - caughtUpAt) / 1e9 }
    })
  })

/** Reports how many holds recovery could not end. */
export const recovery = observed(
  "millrace.recovery.failing",
  "Holds of abandoned calls that recovery could not end yet; at most a hundred are counted"
)

/** Reports how many streams a host refuses. */
export const refusedStreams = observed(
  "millrace.streams.refused",
  "Streams that this host cannot read now, such as those with an event of a newer release: it answers 503 for them"
)

/** Reports how many streams have no current snapshot. */
export const unsavedStreams = observed(
  "millrace.streams.unsaved",
  "Streams in memory whose newest snapshot could not be stored: the next host that loads one of them has to read more events"
)

const rateSyncs = series(
  "outcome",
  counter(
    "millrace.rate_limit.syncs",
    "Exchanges of counts with other hosts through the state store: success, or the error they ended with"
  )
)

/** Counts the exchanges of counts with other hosts. */
export const countRateSyncs = Effect.map(registry, (context) => (exit: Exit.Exit<unknown, unknown>) => {
  rateSyncs(Outcome.of(exit)).updateUnsafe(1, context)
})

// leading

const forwarded = series(
  "outcome",
  counter(
    "millrace.calls.forwarded",
    "Calls sent to the host that leads their account: answered, not_begun and then run here, or lost with an unknown outcome"
  )
)

/** Counts calls that were sent to another host by what became of them. */
export const countForwarded = Effect.map(registry, (context) => (outcome: "answered" | "not_begun" | "lost") => {
  forwarded(outcome).updateUnsafe(1, context)
})

/** Reports how many shards of the accounts this host leads, as it sees the hosts. */
export const shardsLed = observed("millrace.cluster.shards", "Shards of accounts, of 256, that this host leads as far as it sees")

/** Reports how many other hosts calls can be forwarded to. */
export const hostsInSight = observed("millrace.cluster.hosts", "Other hosts to which this host can forward calls")

// webhooks

const webhooks = series(
  "outcome",
  counter("millrace.webhooks.attempts", "Attempts to deliver a webhook: delivered, failed and to be tried again, or dead and given up")
)

/** Counts attempts to deliver a webhook by how they ended. */
export const countWebhooks = Effect.map(registry, (context) => (outcome: "delivered" | "failed" | "dead") => {
  webhooks(outcome).updateUnsafe(1, context)
})

/** Reports how many deliveries of webhooks wait, at the host that delivers them. */
export const waitingWebhooks = observed(
  "millrace.webhooks.waiting",
  "Deliveries of webhooks that wait, at the host that delivers them; 0 at the others"
)
