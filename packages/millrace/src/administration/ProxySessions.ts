/** The proxy sessions of all accounts, with what they carried. */
import { ProxySession } from "@millrace/core"
import { EventStore, HashChain, StreamName } from "@millrace/event-sourcing"
import { Clock, Effect, Stream } from "effect"
import type { Failure } from "../Failure.ts"

/** A session. Bytes and connections are those of all nodes, as far as they are in the log: of live ones, those of some seconds ago. */
export interface ListedSession {
  readonly session: string
  readonly account: string
  /** Whether it can be used; `ended`: its bytes are used up. */
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

const { category, codec, evolve, initial } = ProxySession.ProxySession

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
    const log = yield* EventStore.EventStore
    const now = yield* Clock.currentTimeMillis
    const sessions = new Map<string, ProxySession.ProxySession>()
    yield* Stream.runForEachArray(log.readAll(EventStore.start), (events) =>
      Effect.sync(() => {
        for (const event of events) {
          if (StreamName.category(event.stream) !== category) continue
          const id = StreamName.id(event.stream)
          const at = Date.parse(HashChain.atOf(event))
          sessions.set(id, evolve(sessions.get(id) ?? initial, codec.decode(event.type, event.data), at))
        }
      })
    )
    return [...sessions].flatMap(([id, session]) => {
      const listed = session.status === "absent" ? [] : [listedOf(id, session, now)]
      return open ? listed.filter(({ status }) => status === "open") : listed
    })
  })
