/** The sessions of people in the log, as far as it was read, and the links and passkeys that signed them in. */
import { Passkey, Session, SignInLink } from "@millrace/core"
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
  /** The accounts of passkeys, and how often each signed without being the proof of a session yet. */
  readonly #passkeys = new Map<string, { readonly accountId: string; signed: number }>()
  /** Links and passkeys whose streams cannot be replayed further. */
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

  beginPasskey(stream: StreamName.StreamName, report: ReportProblem): Replay {
    const { codec, evolve, initial } = Passkey.Passkey
    const passkeyId = StreamName.id(stream)
    let passkey: Passkey.Passkey = initial
    return (type, data, at) => {
      const event = codec.decode(type, data)
      passkey = evolve(passkey, event, at)
      if (event._tag === "PasskeyAdded") this.#added(passkeyId, event.accountId, report)
      const known = this.#passkeys.get(passkeyId)
      if (event._tag === "PasskeyUsed" && known !== undefined) known.signed++
    }
  }

  #added(passkeyId: string, account: string, report: ReportProblem): void {
    this.#passkeys.set(passkeyId, { accountId: account, signed: 0 })
    if (!this.#isOpened(account))
      report("passkey-is-of-an-account" satisfies RuleName, "the account was not opened", () => ({ account, ...NOBODY }))
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
    if (proofId !== null && this.#doubtful.has(proofId)) return
    const stake = () => ({ account, ...NOBODY })
    if (proof === "mailLink" && !this.#used.delete(proofId ?? "")) {
      const detail = `the link ${proofId ?? "that it names"} was not used, or another session was opened by it`
      report("session-follows-its-link" satisfies RuleName, detail, stake)
    }
    if (proof === "passkey" && !this.#hasSigned(proofId, account)) {
      const detail = `the passkey ${proofId ?? "that it names"} is another account's, or did not sign for it`
      report("session-follows-its-passkey" satisfies RuleName, detail, stake)
    }
  }

  /** Whether a passkey of the account signed once more than there are sessions by it, of which this is one. */
  #hasSigned(passkeyId: string | null, accountId: string): boolean {
    const passkey = this.#passkeys.get(passkeyId ?? "")
    if (passkey?.accountId !== accountId || passkey.signed === 0) return false
    passkey.signed--
    return true
  }

  /** Forgets a session whose stream cannot be replayed further. */
  lost(stream: StreamName.StreamName): void {
    this.#open.delete(stream)
  }

  /** Claims nothing of a link or passkey whose stream cannot be replayed further. */
  lostProof(stream: StreamName.StreamName): void {
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
