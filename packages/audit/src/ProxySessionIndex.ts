/** The proxy sessions in the log that are open, as far as it was read. */
import { ProxySession } from "@millrace/core"
import { StreamName } from "@millrace/event-sourcing"
import { type CallIndex, OPEN_SESSION } from "./CallIndex.ts"
import { noAmount } from "./Means.ts"
import { iso, type Problems, type Replay, type ReportProblem } from "./Report.ts"
import type { RuleName } from "./rules/Catalog.ts"

/** The expiry of a session is written so long after it, at the latest: milliseconds. */
const MARGIN = 5 * 60_000

const OVERDUE = noAmount("the session can no longer be used, and its end is not in the log")
const LATE = noAmount("the session was charged when it was opened, whatever it carried")
const NOBODY = noAmount("no hold pays for this session, so it may have been opened for nothing")

export class ProxySessionIndex {
  readonly #open = new Map<string, { readonly accountId: string; readonly expiresAt: number; readonly position: string }>()

  readonly #calls: CallIndex

  constructor(calls: CallIndex) {
    this.#calls = calls
  }

  begin(stream: StreamName.StreamName, report: ReportProblem): Replay {
    const { codec, evolve, initial } = ProxySession.ProxySession
    let session: ProxySession.ProxySession = initial
    return (type, data, at, position) => {
      const event = codec.decode(type, data)
      if (event._tag === "ProxyTrafficCounted" && session.status !== "absent") this.#counted(session, at, report)
      session = evolve(session, event, at)
      if (event._tag === "ProxySessionOpened") this.#opened(StreamName.id(stream), event.accountId, report)
      if (session.status === "open") {
        const { accountId, expiresAt } = session
        this.#open.set(stream, { accountId, expiresAt, position })
      } else this.#open.delete(stream)
    }
  }

  #counted(session: ProxySession.Opened, at: number, report: ReportProblem): void {
    const until = ProxySession.countedUntil(session)
    const means = () => ({ account: session.accountId, ...LATE })
    if (at > until) report("proxy-session-is-counted-in-time" satisfies RuleName, `its bytes are counted until ${iso(until)}`, means)
  }

  #opened(sessionId: string, account: string, report: ReportProblem): void {
    const unpaid = this.#calls.unpaid(OPEN_SESSION, sessionId, account)
    if (unpaid !== undefined)
      report("proxy-session-is-opened-under-its-reservation" satisfies RuleName, unpaid, () => ({ account, ...NOBODY }))
    this.#calls.leave(sessionId, "ProxySessionOpened")
  }

  /** Forgets a session whose stream cannot be replayed further. */
  lost(stream: StreamName.StreamName): void {
    this.#open.delete(stream)
    this.#calls.doubt(StreamName.id(stream))
  }

  /** Reports sessions that at `now` are long past their expiry, which was not written. */
  reportOverdue(now: number, problems: Problems): void {
    for (const [stream, { accountId, expiresAt, position }] of this.#open) {
      const detail = `its expiry was ${iso(expiresAt)}, and it is open`
      if (expiresAt + MARGIN <= now)
        problems.add({ position, stream }, "proxy-session-ends-by-its-expiry", detail, () => ({ account: accountId, ...OVERDUE }))
    }
  }
}
