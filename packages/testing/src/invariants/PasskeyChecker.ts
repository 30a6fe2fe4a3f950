/** Checks the events of passkeys, and the sessions that they opened, with bookkeeping of its own. */
import type { Passkey, Session } from "@millrace/core"
import type { Report } from "./Rules.ts"

interface Entry {
  readonly accountId: string
  readonly challenges: Set<string>
  counter: number
  /** Signatures that no session followed yet. */
  waiting: number
  isRemoved: boolean
}

export class PasskeyChecker {
  readonly #entries = new Map<string, Entry>()
  readonly #hasPasskeys: boolean
  readonly #report: Report

  /** `hasPasskeys`: whether the events of passkeys are there. */
  constructor(hasPasskeys: boolean, report: Report) {
    this.#hasPasskeys = hasPasskeys
    this.#report = report
  }

  enter(passkeyId: string, event: Passkey.PasskeyEvent, at: number): void {
    const entry = this.#entries.get(passkeyId)
    if (event._tag === "PasskeyAdded") {
      if (entry !== undefined) return this.#report("passkey", "it was added before")
      const { accountId, counter } = event
      this.#entries.set(passkeyId, { accountId, challenges: new Set(), counter, waiting: 0, isRemoved: false })
      return
    }
    if (entry === undefined) return this.#report("passkey", "it was never added")
    if (entry.isRemoved) this.#report("passkey", "it was removed")
    if (event._tag === "PasskeyRemoved") entry.isRemoved = true
    else this.#used(entry, event, at)
  }

  #used(entry: Entry, event: Extract<Passkey.PasskeyEvent, { readonly _tag: "PasskeyUsed" }>, at: number): void {
    const { challengeEndsAt, challengeHash, counter } = event
    if (entry.challenges.has(challengeHash)) this.#report("passkey", "it signed this challenge before")
    if (at >= challengeEndsAt) this.#report("passkey", `the challenge ended at ${challengeEndsAt}`)
    if (Math.max(counter, entry.counter) > 0 && counter <= entry.counter) this.#report("passkey", `it counted to ${entry.counter} before`)
    entry.challenges.add(challengeHash)
    entry.counter = counter
    entry.waiting += 1
  }

  /** A session that was opened by a passkey. */
  follow(event: Session.SessionEvent): void {
    if (event._tag !== "SessionOpened" || event.proof !== "passkey" || !this.#hasPasskeys) return
    const entry = this.#entries.get(event.proofId ?? "")
    if (entry?.accountId !== event.accountId || entry.waiting === 0)
      return this.#report("passkeySession", `no signature of ${event.proofId} for the account is left`)
    entry.waiting -= 1
  }
}
