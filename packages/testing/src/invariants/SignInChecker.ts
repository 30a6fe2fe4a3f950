/** Checks the events of people's sessions and of the links that sign them in, with bookkeeping of its own. */
import type { Session, SignInLink } from "@millrace/core"
import type { Report } from "./Rules.ts"

interface Entry {
  /** When it ends unless it is used, and when it ends in any case. */
  endsAt: number
  readonly lastsUntil: number
  hasEnded: boolean
}

export class SignInChecker {
  readonly #sessions = new Map<string, Entry>()
  /** By link: when it ends, and how many uses no session followed yet. */
  readonly #links = new Map<string, { readonly expiresAt: number; uses: number; waiting: number }>()
  readonly #hasLinks: boolean
  readonly #report: Report

  /** `hasLinks`: whether the events of links are there. */
  constructor(hasLinks: boolean, report: Report) {
    this.#hasLinks = hasLinks
    this.#report = report
  }

  link(linkId: string, event: SignInLink.SignInEvent, at: number): void {
    const link = this.#links.get(linkId)
    if (event._tag === "SignInRequested") {
      if (link !== undefined) return this.#report("signIn", "the link was asked for before")
      this.#links.set(linkId, { expiresAt: event.expiresAt, uses: 0, waiting: 0 })
      return
    }
    if (link === undefined) return this.#report("signIn", "the link was never asked for")
    link.uses += 1
    link.waiting += 1
    if (link.uses > 1) this.#report("signIn", "the link was used before")
    if (at >= link.expiresAt) this.#report("signIn", `the link ended at ${link.expiresAt}`)
  }

  session(sessionId: string, event: Session.SessionEvent, at: number): void {
    const session = this.#sessions.get(sessionId)
    if (event._tag === "SessionOpened") {
      if (session !== undefined) return this.#report("signIn", "it was opened before")
      this.#sessions.set(sessionId, { endsAt: event.idleAt, lastsUntil: event.expiresAt, hasEnded: false })
      if (event.proof === "mailLink" && this.#hasLinks) this.#follow(event.proofId)
      return
    }
    if (session === undefined) return this.#report("signIn", "it was never opened")
    if (session.hasEnded) this.#report("signIn", "it had ended")
    if (event._tag === "SessionUsed") {
      if (at >= session.endsAt || event.idleAt > session.lastsUntil) this.#report("signIn", `its end was ${session.endsAt}`)
      session.endsAt = event.idleAt
      return
    }
    session.hasEnded = true
    if (event.reason === "expired" && at < session.endsAt) this.#report("signIn", `its end is ${session.endsAt}`)
  }

  #follow(linkId: string | null): void {
    const link = linkId === null ? undefined : this.#links.get(linkId)
    if (link === undefined || link.waiting === 0) return this.#report("signInLink", `no use of ${linkId} is left`)
    link.waiting -= 1
  }
}
