/**
 * A proxy session: credentials for the proxy nodes, with an expiry and bounds. The log holds only a hash of the password, and no destination.
 * Stream `proxySession-{id}`.
 */
import { hash as digest, timingSafeEqual } from "node:crypto"
import { type Decider, type Decision, EventCodec } from "@millrace/event-sourcing"
import { Result, Schema } from "effect"
import { Timestamp } from "../Timestamp.ts"

export { proxySessionIdOf as idOf } from "../Ids.ts"

const ID = /^proxy_[0-9A-HJKMNP-TV-Z]{26}$/u

/** Whether a text has the format of the id of a proxy session, which is also its user name. */
export const isId = (text: string): boolean => ID.test(text)

/** What the log keeps of a password: its SHA-256, base64url. A password of 256 unpredictable bits needs no slower hash. */
export const hashOf = (password: string): string => digest("sha256", password, "base64url")

// events

/** How a client speaks to a node. `https` is HTTP over TLS; with `socks5h` the node resolves names, with `socks5` the client does. */
export const Protocol = Schema.Literals(["https", "http", "socks5", "socks5h"])
export type Protocol = typeof Protocol.Type

/** Whether all connections leave from one address, or each from the next one. */
export const Mode = Schema.Literals(["rotating", "sticky"])
export type Mode = typeof Mode.Type

const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

export const ProxySessionEvent = Schema.TaggedUnion({
  ProxySessionOpened: {
    accountId: Schema.String,
    protocol: Protocol,
    mode: Mode,
    /** ISO 3166-1 alpha-2. */
    country: Schema.String,
    region: Schema.NullOr(Schema.String),
    /** Where the node listens that the client was told of. Every other node admits the session too. */
    host: Schema.String,
    port: Schema.Int,
    /** The address that connections leave from; of a rotating session, the first. */
    ip: Schema.String,
    /** SHA-256 of the password, base64url. */
    passwordHash: Schema.String,
    expiresAt: Timestamp,
    /** The most bytes in both directions together, over all nodes. */
    byteLimit: Count,
    /** The most connections at once, at each node. */
    connectionLimit: Count,
    /**
     * Milliseconds after its end in which a node may still count what it carried before. Sessions without it, of earlier builds, are counted
     * without a bound.
     */
    countGrace: Schema.optionalKey(Count)
  },
  /** All that a node carried for the session so far. */
  ProxyTrafficCounted: {
    node: Schema.String,
    /** Bytes to destinations. */
    sent: Count,
    /** Bytes from destinations. */
    received: Count,
    connections: Count
  },
  /** Its bytes are used up, or an administrator ended it. */
  ProxySessionEnded: { reason: Schema.Literals(["bytes", "administrator"]) },
  ProxySessionExpired: {}
})
export type ProxySessionEvent = typeof ProxySessionEvent.Type

type EventOf<Tag extends ProxySessionEvent["_tag"]> = Extract<ProxySessionEvent, { readonly _tag: Tag }>

export interface Terms extends Omit<EventOf<"ProxySessionOpened">, "_tag"> {}

/** What was carried: bytes in each direction, and connections. */
export interface Traffic extends Omit<EventOf<"ProxyTrafficCounted">, "_tag" | "node"> {}

/**
 * The grace of new sessions, in milliseconds. A node closes the connections of a session within half a second of its end and counts within
 * five seconds; the rest of the time is for a store that does not answer.
 */
export const COUNT_GRACE = 10 * 60_000

// state

export interface Opened extends Terms {
  readonly status: "open" | "ended" | "expired"
  /** When it ended before its expiry, of a session whose counting has a bound. */
  readonly endedAt?: Timestamp
  /** By node. */
  readonly traffic: Readonly<Record<string, Traffic>>
}

export type ProxySession = { readonly status: "absent" } | Opened

/** Nothing was carried. */
export const NO_TRAFFIC: Traffic = { sent: 0, received: 0, connections: 0 }

const opened = (session: ProxySession): Opened => {
  if (session.status === "absent") throw new Error("A proxy session is opened first")
  return session
}

const open = (session: ProxySession): Opened => {
  const before = opened(session)
  if (before.status !== "open") throw new Error("A proxy session ends once")
  return before
}

const isLess = (after: Traffic, before: Traffic): boolean =>
  after.sent < before.sent || after.received < before.received || after.connections < before.connections

const evolve = (session: ProxySession, event: ProxySessionEvent, at: Timestamp): ProxySession => {
  switch (event._tag) {
    case "ProxySessionOpened": {
      if (session.status !== "absent") throw new Error("A proxy session is opened once")
      const { _tag: _, ...terms } = event
      return { status: "open", ...terms, traffic: {} }
    }
    case "ProxyTrafficCounted": {
      const before = opened(session)
      const { _tag: _, node, ...traffic } = event
      if (isLess(traffic, before.traffic[node] ?? NO_TRAFFIC)) throw new Error("What a node counts never falls")
      return { ...before, traffic: { ...before.traffic, [node]: traffic } }
    }
    case "ProxySessionEnded": {
      const before = open(session)
      if (event.reason === "bytes" && bytesOf(before) < before.byteLimit) throw new Error("A proxy session ends when its bytes are used up")
      return { ...before, status: "ended", ...(before.countGrace === undefined ? {} : { endedAt: at }) }
    }
    case "ProxySessionExpired": {
      const before = open(session)
      if (at < before.expiresAt) throw new Error("A proxy session expires at its expiry, and not before")
      return { ...before, status: "expired" }
    }
  }
}

export const ProxySession: Decider<ProxySession, ProxySessionEvent> = {
  category: "proxySession",
  codec: EventCodec.make(ProxySessionEvent),
  initial: { status: "absent" },
  evolve
}

/** What all nodes carried together. */
export const trafficOf = ({ traffic }: Pick<Opened, "traffic">): Traffic =>
  Object.values(traffic).reduce(
    (sum, { connections, received, sent }) => ({
      sent: sum.sent + sent,
      received: sum.received + received,
      connections: sum.connections + connections
    }),
    NO_TRAFFIC
  )

/** Bytes in both directions, over all nodes. */
export const bytesOf = (session: Pick<Opened, "traffic">): number => {
  const { received, sent } = trafficOf(session)
  return sent + received
}

/** Until when bytes of a session are counted: the grace after its end. */
export const countedUntil = ({ countGrace = Number.POSITIVE_INFINITY, endedAt, expiresAt }: Opened): Timestamp =>
  Math.min(endedAt ?? expiresAt, expiresAt) + countGrace

/** Whether a session can be used. It has expired from its expiry on, whether or not that was written. */
export const isLive = (session: ProxySession, now: Timestamp): session is Opened => session.status === "open" && now < session.expiresAt

/** Whether a password is the session's, and the session can be used. */
export const admits = (session: ProxySession, password: string, now: Timestamp): session is Opened => {
  if (session.status === "absent") return false
  const expected = Buffer.from(session.passwordHash)
  const actual = Buffer.from(hashOf(password))
  return actual.length === expected.length && timingSafeEqual(actual, expected) && isLive(session, now)
}

// decisions

type Decided = Decision<ProxySessionEvent>

/** Opens a session for a lifetime in milliseconds. Opening again changes nothing. */
export const begin =
  ({ lifetime, ...terms }: Omit<Terms, "expiresAt" | "countGrace"> & { readonly lifetime: number }) =>
  (session: ProxySession, now: Timestamp): Decided =>
    Result.succeed(
      session.status === "absent" ? [{ _tag: "ProxySessionOpened", ...terms, expiresAt: now + lifetime, countGrace: COUNT_GRACE }] : []
    )

/**
 * Counts all that a node carried so far, and ends the session when its bytes are used up. A count that was written, or that comes after the
 * grace, changes nothing.
 */
export const count =
  (node: string, traffic: Traffic) =>
  (session: ProxySession, now: Timestamp): Decided => {
    if (session.status === "absent" || now > countedUntil(session)) return Result.succeed([])
    const before = session.traffic[node] ?? NO_TRAFFIC
    const isNew = !isLess(traffic, before) && isLess(before, traffic)
    if (!isNew) return Result.succeed([])
    const counted = { _tag: "ProxyTrafficCounted", node, ...traffic } as const
    const bytes = bytesOf({ traffic: { ...session.traffic, [node]: traffic } })
    const isOver = session.status === "open" && bytes >= session.byteLimit
    return Result.succeed(isOver ? [counted, { _tag: "ProxySessionEnded", reason: "bytes" }] : [counted])
  }

/** Ends a session that can be used. */
export const end = (session: ProxySession, now: Timestamp): Decided =>
  Result.succeed(isLive(session, now) ? [{ _tag: "ProxySessionEnded", reason: "administrator" }] : [])

/** Writes the expiry of a session that is past it. */
export const expire = (session: ProxySession, now: Timestamp): Decided =>
  Result.succeed(session.status === "open" && session.expiresAt <= now ? [{ _tag: "ProxySessionExpired" }] : [])
