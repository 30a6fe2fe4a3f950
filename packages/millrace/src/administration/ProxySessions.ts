/** The proxy sessions of all accounts, with what they carried. */
import { ProxySession, ProxySessions } from "@millrace/core"
import type { Aggregate, EventStore } from "@millrace/event-sourcing"
import { Clock, Effect } from "effect"
import { type Failure, fail } from "../Failure.ts"
import { statesOf } from "./Replay.ts"

/** A session. Bytes and connections are those of all nodes, as far as they are in the log: of live ones, those of some seconds ago. */
export interface ListedSession {
  readonly session: string
  readonly account: string
  /** Whether it can be used; `ended`: its bytes are used up, or an administrator ended it. */
  readonly status: "open" | "ended" | "expired"
  readonly protocol: string
  readonly country: string
  /** Bytes to destinations. */
  readonly sent: number
  /** Bytes from destinations. */
  readonly received: number
  readonly connections: number
  readonly expiresAt: Date
}

const listedOf = (session: string, opened: ProxySession.Opened, now: number): ListedSession => {
  const { accountId: account, country, expiresAt, protocol, status } = opened
  const isLate = status === "open" && expiresAt <= now
  return {
    ...{ session, account, status: isLate ? "expired" : status, protocol, country },
    ...ProxySession.trafficOf(opened),
    expiresAt: new Date(expiresAt)
  }
}

/** Every session, in the order in which they were opened; with `open`, those that can be used. Reads the whole log. */
export const list = (open: boolean): Effect.Effect<ReadonlyArray<ListedSession>, Failure, EventStore.EventStore> =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const sessions = yield* statesOf(ProxySession.ProxySession)
    return [...sessions].flatMap(([id, session]) => {
      const listed = session.status === "absent" ? [] : [listedOf(id, session, now)]
      return open ? listed.filter(({ status }) => status === "open") : listed
    })
  })

/** Ends a session now: no node admits it any more, and its connections are closed. One that has ended stays as it is. */
export const end = (session: string, metadata: Aggregate.Metadata): Effect.Effect<ListedSession, Failure, ProxySessions> =>
  Effect.gen(function* () {
    const ended = ProxySession.isId(session) ? yield* ProxySessions.use((sessions) => sessions.end(session, metadata)) : undefined
    if (ended === undefined) return yield* fail(`there is no proxy session ${session}`)
    return listedOf(session, ended, yield* Clock.currentTimeMillis)
  })
