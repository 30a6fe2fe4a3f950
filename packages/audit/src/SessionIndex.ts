/** The sessions of people in the log, as far as it was read, and the links that signed them in. */
import { Session, SignInLink } from "@millrace/core"
import { StreamName } from "@millrace/event-sourcing"
import { noAmount } from "./Means.ts"
import { iso, type Problems, type Replay, type ReportProblem } from "./Report.ts"
import type { RuleName } from "./rules/Catalog.ts"

/** The end of a session is written so long after it, at the latest: milliseconds. */
const MARGIN = 60 * 60_000

const OVERDUE = noAmount("the session can no longer be used, and its end is not in the log")
const NOBODY = noAmount("someone may have used the account who did not prove to own it")

export class SessionIndex {
  readonly #open = new Map<string, { readonly accountId: string; readonly endsAt: number; readonly position: string }>()
  /** Links that were used, and are not the proof of a session yet. */
  readonly #used = new Set<string>()
  /** Links whose streams cannot be replayed further. */
  readonly #doubtful = new Set<string>()
  readonly #isOpened: (accountId: string) => boolean

  /** `isOpened`: whether an account was opened, or its stream cannot be replayed. */
  constructor(isOpened: (accountId: string) => boolean) {
    this.#isOpened = isOpened
  }

  beginLink(stream: StreamName.StreamName): Replay {
    const { codec, evolve, initial } = SignInLink.SignInLink
    let link: SignInLink.SignInLink = initial
    return (type, data, at) => {
      link = evolve(link, codec.decode(type, data), at)
      if (link.status === "used") this.#used.add(StreamName.id(stream))
    }
  }

  begin(stream: StreamName.StreamName, report: ReportProblem): Replay {
    const { codec, evolve, initial } = Session.Session
    let session: Session.Session = initial
    return (type, data, at, position) => {
      const event = codec.decode(type, data)
      session = evolve(session, event, at)
      if (event._tag === "SessionOpened") this.#opened(event, report)
      if (session.status === "open") this.#open.set(stream, { accountId: session.accountId, endsAt: Session.endOf(session), position })
      else this.#open.delete(stream)
    }
  }

  #opened(
    { accountId: account, proof, proofId }: Extract<Session.SessionEvent, { readonly _tag: "SessionOpened" }>,
    report: ReportProblem
  ): void {
    // It may have been closed in the same instant
    if (!this.#isOpened(account))
      report("session-is-of-an-account" satisfies RuleName, "the account was not opened", () => ({ account, ...NOBODY }))
    if (proof !== "mailLink" || (proofId !== null && (this.#used.delete(proofId) || this.#doubtful.has(proofId)))) return
    const detail = `the link ${proofId ?? "that it names"} was not used, or another session was opened by it`
    report("session-follows-its-link" satisfies RuleName, detail, () => ({ account, ...NOBODY }))
  }

  /** Forgets a session whose stream cannot be replayed further. */
  lost(stream: StreamName.StreamName): void {
    this.#open.delete(stream)
  }

  /** Claims nothing of a link whose stream cannot be replayed further. */
  lostLink(stream: StreamName.StreamName): void {
    this.#doubtful.add(StreamName.id(stream))
  }

  /** Reports sessions that at `now` are long past their end, which was not written. */
  reportOverdue(now: number, problems: Problems): void {
    for (const [stream, { accountId, endsAt, position }] of this.#open) {
      const detail = `it ended at ${iso(endsAt)}, and it is open`
      if (endsAt + MARGIN <= now)
        problems.add({ position, stream }, "session-ends-by-its-end", detail, () => ({ account: accountId, ...OVERDUE }))
    }
  }
}
