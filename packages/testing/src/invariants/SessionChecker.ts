/** Checks the events of proxy sessions, with bookkeeping of its own. */
import type { ProxySession } from "@millrace/core"
import type { Report } from "./Rules.ts"

type Counted = Extract<ProxySession.ProxySessionEvent, { readonly _tag: "ProxyTrafficCounted" }>

interface Entry {
  readonly expiresAt: number
  readonly byteLimit: number
  /** By node. */
  readonly counts: Map<string, Counted>
  /** Milliseconds in which bytes are counted after the end, where that has a bound. */
  readonly countGrace: number | undefined
  /** When it ended before its expiry. */
  endedAt: number | undefined
  hasEnded: boolean
}

export class SessionChecker {
  readonly #sessions = new Map<string, Entry>()
  readonly #report: Report

  constructor(report: Report) {
    this.#report = report
  }

  enter(sessionId: string, event: ProxySession.ProxySessionEvent, at: number): void {
    const session = this.#sessions.get(sessionId)
    if (event._tag === "ProxySessionOpened") {
      if (session !== undefined) return this.#report("session", "it was opened before")
      const { byteLimit, countGrace, expiresAt } = event
      this.#sessions.set(sessionId, { expiresAt, byteLimit, countGrace, counts: new Map(), endedAt: undefined, hasEnded: false })
      return
    }
    if (session === undefined) return this.#report("session", "it was never opened")
    if (event._tag === "ProxyTrafficCounted") return this.#count(session, event, at)
    if (session.hasEnded) this.#report("session", "it had ended")
    session.hasEnded = true
    if (event._tag === "ProxySessionEnded") session.endedAt = at
    const bytes = [...session.counts.values()].reduce((sum, { received, sent }) => sum + received + sent, 0)
    if (event._tag === "ProxySessionExpired" && at < session.expiresAt) this.#report("session", `it expires at ${session.expiresAt}`)
    if (event._tag === "ProxySessionEnded" && event.reason === "bytes" && bytes < session.byteLimit)
      this.#report("session", `it carried ${bytes} bytes of ${session.byteLimit}`)
  }

  #count({ countGrace, counts, endedAt, expiresAt }: Entry, event: Counted, at: number): void {
    const end = endedAt === undefined || endedAt > expiresAt ? expiresAt : endedAt
    if (countGrace !== undefined && at - end > countGrace) this.#report("traffic", `it ended at ${end}`)
    const before = counts.get(event.node)
    if (before !== undefined && (event.sent < before.sent || event.received < before.received || event.connections < before.connections))
      this.#report("traffic", `${event.node} counts less than before`)
    counts.set(event.node, event)
  }
}
