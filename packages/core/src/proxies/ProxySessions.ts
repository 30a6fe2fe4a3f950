/** The service of proxy sessions: opens them for callers, and admits them, counts them and ends them for nodes. */
import { Aggregate, EventHandlers, EventStore, Following } from "@millrace/event-sourcing"
import { Clock, Context, Duration, Effect, Layer } from "effect"
import { Vault } from "../vault/Vault.ts"
import * as ProxySession from "./ProxySession.ts"

/** What a caller gets: the node to connect to, and credentials. */
export interface OpenSession {
  readonly sessionId: string
  readonly session: ProxySession.Opened
  /** The user name is the id of the session. */
  readonly password: string
}

export interface SessionsOptions {
  /** One hour by default. */
  readonly lifetime?: Duration.Input
  /** The most bytes of a session in both directions together: 1 GiB by default. */
  readonly byteLimit?: number
  /** The most connections of a session at once, at each node: 64 by default. */
  readonly connectionLimit?: number
}

const PURPOSE = "proxySession.password"

const teller = (tell: (sessionId: string, event: ProxySession.ProxySessionEvent) => void) => {
  const one = (event: ProxySession.ProxySessionEvent, { id }: EventHandlers.Origin) => tell(id, event)
  const handlers = { ProxySessionOpened: one, ProxyTrafficCounted: one, ProxySessionEnded: one, ProxySessionExpired: one }
  return EventHandlers.of(ProxySession.ProxySession, handlers).dispatch
}

const make = Effect.fnUntraced(function* ({ lifetime = "1 hour", byteLimit = 1024 ** 3, connectionLimit = 64 }: SessionsOptions) {
  const vault = yield* Vault
  const events = yield* EventStore.EventStore
  const { execute, read, refused } = yield* Aggregate.make(ProxySession.ProxySession)

  /** It derives from the id, so that a call that is recovered is answered with the same credentials. It is stored nowhere. */
  const passwordOf = (sessionId: string): string => vault.hmac(PURPOSE, sessionId)

  const shown = (sessionId: string, session: ProxySession.Opened): OpenSession => ({ sessionId, session, password: passwordOf(sessionId) })

  return {
    /** Opens a session under an id. Opening it again returns the first. */
    open: Effect.fn("ProxySessions.open")(function* (
      sessionId: string,
      terms: Omit<ProxySession.Terms, "expiresAt" | "countGrace" | "passwordHash" | "byteLimit" | "connectionLimit">,
      metadata?: Aggregate.Metadata
    ) {
      const passwordHash = ProxySession.hashOf(passwordOf(sessionId))
      const bounds = { byteLimit, connectionLimit, lifetime: Duration.toMillis(lifetime) }
      const { state } = yield* execute(sessionId, ProxySession.begin({ ...terms, ...bounds, passwordHash }), metadata)
      if (state.status === "absent") return yield* Effect.die(new Error("A session that was opened exists"))
      return shown(sessionId, state)
    }),
    /** A session that was opened; undefined if there is none. */
    find: Effect.fnUntraced(function* (sessionId: string) {
      const { state } = yield* read(sessionId)
      return state.status === "absent" ? undefined : shown(sessionId, state)
    }),
    /** The session of these credentials, if it can be used now. Also one that another host opened a moment ago. */
    admit: Effect.fnUntraced(function* (sessionId: string, password: string) {
      if (!ProxySession.isId(sessionId)) return undefined
      const { state } = yield* read(sessionId)
      // The time of a stream never goes back, but the time of an answer is now
      return ProxySession.admits(state, password, yield* Clock.currentTimeMillis) ? state : undefined
    }),
    /** Counts all that a node carried for a session so far. Returns the session, which may have ended by that. */
    count: (sessionId: string, node: string, traffic: ProxySession.Traffic) =>
      Effect.map(execute(sessionId, ProxySession.count(node, traffic)), ({ state }) => state),
    /**
     * Tells what happens to sessions from now on, at every host, for ever. While the store does not answer, it tries again: what happened
     * meanwhile is told late.
     */
    watch: (tell: (sessionId: string, event: ProxySession.ProxySessionEvent) => void): Effect.Effect<never> =>
      Effect.gen(function* () {
        let at = yield* Following.retryForever(events.head, () => {})
        const told = teller(tell)
        return yield* Following.follow(
          () => at,
          ({ events }) =>
            Effect.sync(() => {
              for (const event of events) {
                told(event)
                at = event.position
              }
            }),
          () => {}
        ).pipe(Effect.provideService(EventStore.EventStore, events))
      }),
    /** Ends a session that can be used: its nodes close its connections. Returns the session, unless there is none. */
    end: (sessionId: string, metadata?: Aggregate.Metadata) =>
      Effect.map(execute(sessionId, ProxySession.end, metadata), ({ state }) => (state.status === "absent" ? undefined : state)),
    /** Writes the expiry of a session that is past it. */
    expire: (sessionId: string) => Effect.asVoid(execute(sessionId, ProxySession.expire)),
    /** Sessions whose streams this host cannot read. */
    refused
  }
})

export class ProxySessions extends Context.Service<ProxySessions, Effect.Success<ReturnType<typeof make>>>()(
  "@millrace/core/proxies/ProxySessions"
) {
  static readonly layer = (options: SessionsOptions = {}): Layer.Layer<ProxySessions, never, Vault | EventStore.EventStore> =>
    Layer.effect(this, make(options))
}
