/** Checks the events of inboxes and of the claims of their addresses, with bookkeeping of its own. */
import type { Inbox, InboxAddress } from "@millrace/core"
import type { Report } from "./Rules.ts"

interface Entry {
  addressHash: string
  readonly expiresAt: number
  hasEnded: boolean
  readonly messages: Set<string>
}

export class InboxChecker {
  /** The inboxes that claimed addresses, by the HMACs of these. */
  readonly #claims = new Map<string, string>()
  readonly #given = new Set<string>()
  readonly #inboxes = new Map<string, Entry>()
  /** Whether there are claims. Without any, inboxes are checked alone. */
  readonly #hasClaims: boolean
  readonly #report: Report

  constructor(hasClaims: boolean, report: Report) {
    this.#hasClaims = hasClaims
    this.#report = report
  }

  claim(addressHash: string, { inboxId }: InboxAddress.AddressEvent): void {
    if (this.#claims.has(addressHash)) this.#report("address", `${this.#claims.get(addressHash)} had claimed it`)
    this.#claims.set(addressHash, inboxId)
  }

  enter(inboxId: string, event: Inbox.InboxEvent, at: number): void {
    const inbox = this.#inboxes.get(inboxId)
    if (event._tag === "InboxCreated") {
      if (inbox !== undefined) return this.#report("inbox", "it was created before")
      const { addressHash, expiresAt } = event
      this.#inboxes.set(inboxId, { addressHash, expiresAt, hasEnded: false, messages: new Set() })
      return this.#give(inboxId, addressHash)
    }
    if (inbox === undefined || inbox.hasEnded) return this.#report("inbox", inbox === undefined ? "it was never created" : "it had ended")
    if (event._tag === "InboxDeleted" || event._tag === "InboxExpired") {
      if (event._tag === "InboxExpired" && at < inbox.expiresAt) this.#report("inbox", `it expires at ${inbox.expiresAt}, not at ${at}`)
      inbox.hasEnded = true
      return
    }
    if (at >= inbox.expiresAt) this.#report("inbox", `it had expired at ${inbox.expiresAt}`)
    if (event._tag === "InboxRotated") {
      inbox.addressHash = event.addressHash
      return this.#give(inboxId, event.addressHash)
    }
    if (event.addressHash !== inbox.addressHash) this.#report("mail", "it came to another address")
    if (inbox.messages.has(event.messageId)) this.#report("mail", `${event.messageId} came before`)
    inbox.messages.add(event.messageId)
  }

  #give(inboxId: string, addressHash: string): void {
    if (this.#hasClaims && this.#claims.get(addressHash) !== inboxId) this.#report("address", `${inboxId} did not claim it`)
    if (this.#given.has(addressHash)) this.#report("address", "it was given before")
    this.#given.add(addressHash)
  }
}
