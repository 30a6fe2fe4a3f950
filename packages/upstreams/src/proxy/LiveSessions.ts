/**
 * The proxy sessions that are used at this node. Every quarter of a second it closes the connections of those that expired; every few seconds,
 * or after a portion of the bound, it writes what was carried to the log.
 */
import { AuthThrottle, Metrics, newProxyNodeId, ProxySession, ProxySessions } from "@millrace/core"
import { Clock, Effect, FiberSet, type Metric, type Scope } from "effect"
import { bytesOf, type Exits, LiveSession, NotAdmitted } from "./LiveSession.ts"

const LOOK_EVERY = "250 millis"
const COUNT_EVERY = 5_000
/** How long closing waits for the store to take the last counts. */
const LAST_COUNTS = "5 seconds"

export interface LiveSessions {
  readonly node: string
  /**
   * The session of these credentials; undefined if there is none that can be used, or the client's address failed too often. Fails if the store
   * does not answer.
   */
  readonly admit: (client: string, username: string, password: string) => Effect.Effect<LiveSession | undefined, NotAdmitted>
}

const bytes = Metrics.series(
  "direction",
  Metrics.counter("millrace.proxy.bytes", "Bytes of proxy sessions, to destinations (sent) and from them (received)")
)
const connections = {
  made: Metrics.counter("millrace.proxy.connections", "Connections that proxy sessions have made")({}),
  open: Metrics.gauge("millrace.proxy.connections.open", "Connections of proxy sessions that are open or being opened")({})
}

/** What all sessions carried at this node since it started, for the metrics: read when they are exported. */
const observe = Effect.fnUntraced(function* (live: ReadonlyMap<string, LiveSession>) {
  const gone = { sent: 0, received: 0, connections: 0 }
  const sum = (name: keyof ProxySession.Traffic): number => [...live.values()].reduce((sum, { traffic }) => sum + traffic[name], gone[name])
  const counter = (metric: Metric.Counter<number>, name: keyof ProxySession.Traffic) =>
    Metrics.observe(metric, () => ({ count: sum(name), incremental: true }))
  yield* counter(bytes("sent"), "sent")
  yield* counter(bytes("received"), "received")
  yield* counter(connections.made, "connections")
  yield* Metrics.observe(connections.open, () => ({ value: [...live.values()].reduce((sum, { open }) => sum + open, 0) }))
  return {
    /** A session that is forgotten keeps its part. */
    forget: ({ traffic }: LiveSession): void => {
      for (const name of ["sent", "received", "connections"] as const) gone[name] += traffic[name]
    }
  }
})

const differ = (one: ProxySession.Traffic, other: ProxySession.Traffic): boolean =>
  bytesOf(one) !== bytesOf(other) || one.connections !== other.connections

/** Serves until the scope closes. Then it closes all connections, and writes the last counts. */
export const make = (exits: Exits): Effect.Effect<LiveSessions, never, ProxySessions | Scope.Scope> =>
  Effect.gen(function* () {
    const sessions = yield* ProxySessions
    const node = yield* newProxyNodeId
    const throttle = yield* AuthThrottle.pipe(Effect.provide(AuthThrottle.layer()))
    const live = new Map<string, LiveSession>()
    const metrics = yield* observe(live)
    let countedAt = 0

    const hear = (session: LiveSession, { traffic }: ProxySession.Opened): void => {
      for (const [other, carried] of Object.entries(traffic)) if (other !== node) session.others.set(other, bytesOf(carried))
    }

    const countOnce = Effect.fnUntraced(function* (session: LiveSession) {
      const { traffic } = session
      if (!differ(traffic, session.counted)) return
      const state = yield* sessions.count(session.id, node, traffic)
      session.counted = traffic
      if (state.status !== "absent") hear(session, state)
      // The log takes none after the grace, however long the store did not answer
      if (state.status !== "absent" && differ(state.traffic[node] ?? ProxySession.NO_TRAFFIC, traffic))
        yield* Effect.logWarning(`Bytes of the proxy session ${session.id} came too late to be counted`)
      if (state.status !== "open") session.end()
    })
    const count = (session: LiveSession) => session.counting.withPermit(countOnce(session))
    const run = yield* FiberSet.makeRuntimePromise<never>()
    /** It is interrupted when the node closes, which writes the last counts itself. */
    const share = (session: LiveSession) => run(Effect.ignore(count(session))).catch(() => {})

    /** What cannot be written now is written later: counts are totals. */
    const countAll = Effect.suspend(() =>
      Effect.forEach([...live.values()], (session) => Effect.ignore(count(session)), { concurrency: 8 })
    )

    const look = Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const ended = [...live.values()].filter(({ isUsedUp, terms }) => terms.expiresAt <= now || isUsedUp)
      for (const session of ended) session.end()
      if (now - countedAt < COUNT_EVERY) return
      countedAt = now
      yield* countAll
      // Not before: a count of this node must never begin anew
      for (const session of live.values())
        if (session.hasEnded && session.open === 0 && !differ(session.traffic, session.counted)) {
          live.delete(session.id)
          metrics.forget(session)
        }
    })

    yield* Effect.addFinalizer(() =>
      Effect.suspend(() => {
        for (const session of live.values()) session.end()
        // The sockets tell their last bytes when they have closed
        return Effect.timeoutOption(Effect.andThen(Effect.yieldNow, countAll), LAST_COUNTS)
      })
    )
    yield* Effect.forkScoped(Effect.forever(Effect.delay(look, LOOK_EVERY)))
    yield* Effect.forkScoped(
      sessions.watch((id, event) => {
        const session = live.get(id)
        if (session === undefined) return
        if (event._tag === "ProxyTrafficCounted" && event.node !== node) session.others.set(event.node, bytesOf(event))
        if (event._tag === "ProxySessionEnded" || event._tag === "ProxySessionExpired") session.end()
      })
    )

    const known = (id: string, state: ProxySession.Opened): LiveSession => {
      const session = live.get(id) ?? new LiveSession(id, state, exits, share)
      live.set(id, session)
      hear(session, state)
      return session
    }

    const admit = Effect.fnUntraced(function* (client: string, username: string, password: string) {
      yield* throttle.check(client)
      const state = yield* sessions.admit(username, password)
      if (state === undefined) yield* throttle.failed(client)
      return state === undefined ? undefined : known(username, state)
    })

    return {
      node,
      admit: (...of) =>
        Effect.catch(admit(...of), (error) =>
          error._tag === "TooManyFailures" ? Effect.undefined : Effect.fail(new NotAdmitted("unavailable"))
        )
    }
  })
