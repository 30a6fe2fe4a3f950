/**
 * The quota of units that an upstream allows in a day, counted by all hosts on a state store together. A unit is taken before a request is
 * sent, and stays taken whatever becomes of it.
 */
import { StateStore } from "@millrace/event-sourcing"
import { Clock, Context, Effect, Layer } from "effect"
import * as Metrics from "../observability/Metrics.ts"
import { UpstreamUnavailable } from "./OperationError.ts"

export interface Terms {
  readonly upstream: string
  /** Units of a day. */
  readonly limit: number
  /** Where the day begins at midnight, such as `America/Los_Angeles`. */
  readonly timeZone: string
}

export interface Standing {
  readonly upstream: string
  readonly used: number
  readonly limit: number
  /** Milliseconds since 1970. */
  readonly resetsAt: number
}

export interface Quota {
  /** Takes units. Isolated `UpstreamUnavailable` with `retryAfter` if so many are not left, and without if the store does not answer. */
  readonly take: (units: number) => Effect.Effect<void, UpstreamUnavailable>
  /** Notes that the upstream itself allows no more today. Returns the milliseconds until it does. */
  readonly exhaust: (now: number) => number
}

const SPACE = "quota"
const DAY = 86_400_000
/** How long a day's count is kept after its end: milliseconds. More than the clocks of hosts may differ. */
const KEPT = DAY

/** The date of a time zone, such as `2026-11-23`. */
const dateIn = (timeZone: string): ((time: number) => string) => {
  const format = new Intl.DateTimeFormat("en-CA", { timeZone, year: "numeric", month: "2-digit", day: "2-digit" })
  return (time) => format.format(time)
}

/** The first millisecond after `now` that has another date. A day has 23 to 25 hours. */
export const nextMidnight = (dateOf: (time: number) => string, now: number): number => {
  const today = dateOf(now)
  let [same, other] = [now, now + DAY + 2 * 3_600_000]
  while (other - same > 1) {
    const middle = Math.floor((same + other) / 2)
    if (dateOf(middle) === today) same = middle
    else other = middle
  }
  return other
}

interface Day {
  readonly date: string
  readonly resetsAt: number
  /** What this host knows of. */
  used: number
}

const make = Effect.gen(function* () {
  const store = yield* StateStore.StateStore
  const clock = yield* Clock.Clock
  const quotas: Array<Effect.Effect<Standing>> = []

  /** The quota of an upstream, and its metrics, until the scope closes. */
  const of = Effect.fnUntraced(function* ({ limit, timeZone, upstream }: Terms) {
    const dateOf = dateIn(timeZone)
    let known: Day = { date: "", resetsAt: 0, used: 0 }
    const today = (now: number): Day => {
      if (now >= known.resetsAt) known = { date: dateOf(now), resetsAt: nextMidnight(dateOf, now), used: 0 }
      return known
    }
    const keyOf = ({ date }: Day) => `${upstream}/${date}`
    const spent = ({ resetsAt }: Day, now: number) =>
      new UpstreamUnavailable({
        upstream,
        reason: `its quota of ${limit} units a day is used up`,
        isolated: true,
        retryAfter: Math.max(1, Math.ceil((resetsAt - now) / 1_000))
      })

    const read = (day: Day) =>
      Effect.map(store.get(SPACE, keyOf(day)), (entry) => {
        const used = entry === undefined ? 0 : Number(Buffer.from(entry.value).toString())
        // What the upstream said about itself counts for more
        day.used = Math.max(day.used, used)
        return { used, version: entry?.version ?? ("absent" as const) }
      })

    const take = (units: number): Effect.Effect<void, UpstreamUnavailable | StateStore.StateUnavailable> =>
      Effect.gen(function* () {
        const now = clock.currentTimeMillisUnsafe()
        const day = today(now)
        const { used, version } = yield* read(day)
        if (day.used + units > limit) return yield* spent(day, now)
        const value = Buffer.from(String(used + units))
        yield* store.write([{ _tag: "put", space: SPACE, key: keyOf(day), value, expiresAt: day.resetsAt + KEPT, expected: version }])
        day.used = used + units
      }).pipe(Effect.catchTag("StateConflict", () => take(units)))

    const standing = Effect.suspend(() => {
      const day = today(clock.currentTimeMillisUnsafe())
      return Effect.as(Effect.ignore(read(day)), day)
    }).pipe(Effect.map(({ resetsAt, used }): Standing => ({ upstream, used, limit, resetsAt })))

    quotas.push(standing)
    yield* Effect.addFinalizer(() => Effect.sync(() => quotas.splice(quotas.indexOf(standing), 1)))
    yield* Metrics.observe(usedGauge({ upstream }), () => ({ value: today(clock.currentTimeMillisUnsafe()).used }))
    yield* Metrics.observe(limitGauge({ upstream }), () => ({ value: limit }))

    const quota: Quota = {
      take: (units) =>
        Effect.catchTag(take(units), "StateUnavailable", ({ reason }) =>
          Effect.fail(new UpstreamUnavailable({ upstream, reason, isolated: true }))
        ),
      exhaust: (now) => {
        const day = today(now)
        day.used = limit
        return day.resetsAt - now
      }
    }
    return quota
  })

  return {
    of,
    /** Each quota of this host. What other hosts took is counted, unless the store does not answer. */
    standings: Effect.suspend(() => Effect.all(quotas))
  }
})

const usedGauge = Metrics.gauge(
  "millrace.upstream.quota.used",
  "Units of an upstream's daily quota that all hosts used, as far as this one knows"
)
const limitGauge = Metrics.gauge("millrace.upstream.quota.limit", "Units that an upstream allows in a day")

export class DailyQuotas extends Context.Service<DailyQuotas, Effect.Success<typeof make>>()("@millrace/core/work/DailyQuotas") {
  static readonly layer: Layer.Layer<DailyQuotas, never, StateStore.StateStore> = Layer.effect(this, make)
}
