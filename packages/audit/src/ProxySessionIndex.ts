/** The proxy sessions in the log that are open, as far as it was read. */
import { ProxySession } from "@millrace/core"
import type { StreamName } from "@millrace/event-sourcing"
import { noAmount } from "./Means.ts"
import { iso, type Problems, type Replay } from "./Report.ts"

/** The expiry of a session is written so long after it, at the latest: milliseconds. */
const MARGIN = 5 * 60_000

const STAKE = noAmount("the session can no longer be used, and its end is not in the log")

export class ProxySessionIndex {
  readonly #open = new Map<string, { readonly accountId: string; readonly expiresAt: number; readonly position: string }>()

  begin(stream: StreamName.StreamName): Replay {
    const { codec, evolve, initial } = ProxySession.ProxySession
    let session: ProxySession.ProxySession = initial
    return (type, data, at, position) => {
      session = evolve(session, codec.decode(type, data), at)
      if (session.status === "open") {
        const { accountId, expiresAt } = session
        this.#open.set(stream, { accountId, expiresAt, position })
      } else this.#open.delete(stream)
    }
  }

  /** Forgets a session whose stream cannot be replayed further. */
  lost(stream: StreamName.StreamName): void {
    this.#open.delete(stream)
  }

  /** Reports sessions that at `now` are long past their expiry, which was not written. */
  reportOverdue(now: number, problems: Problems): void {
    for (const [stream, { accountId, expiresAt, position }] of this.#open) {
      const detail = `its expiry was ${iso(expiresAt)}, and it is open`
      if (expiresAt + MARGIN <= now)
        problems.add({ position, stream }, "proxy-session-ends-by-its-expiry", detail, () => ({ account: accountId, ...STAKE }))
    }
  }
}
