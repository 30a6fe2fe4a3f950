/** Checks the slots of one account's free trial with bookkeeping of its own. */
import type { AccountEvent, EventOf } from "@millrace/core"
import type { Report } from "./Rules.ts"

/** Slots that an account has. */
const SLOTS = 10

export class TrialChecker {
  /** The open slots, with the time when each expires. */
  readonly #open = new Map<string, number>()
  /** The reservations that ever held a slot. */
  readonly #known = new Set<string>()
  #used = 0
  #isVerified = false
  readonly #report: Report

  constructor(report: Report) {
    this.#report = report
  }

  enter(event: AccountEvent, at: number): void {
    if (event._tag === "AccountVerified") this.#isVerified = true
    if (event._tag === "TrialReserved") this.#reserved(event)
    if (event._tag === "TrialUsed" || event._tag === "TrialReleased") this.#ended(event, at)
  }

  /** Reports the slots that should have expired before an event: before `until`, and at it unless it is an expiry itself. */
  nothingDue(until: number, isExpiry: boolean): void {
    for (const [id, expiresAt] of this.#open)
      if (isExpiry ? expiresAt < until : expiresAt <= until) this.#report("time", `${id} was due at ${expiresAt}`)
  }

  #reserved({ expiresAt, reservationId }: EventOf<"TrialReserved">): void {
    if (this.#known.has(reservationId)) this.#report("trialSlot", `${reservationId} held a slot before`)
    if (this.#isVerified) this.#report("trialSlot", `${reservationId} after the account was verified`)
    this.#known.add(reservationId)
    this.#open.set(reservationId, expiresAt)
    if (this.#used + this.#open.size > SLOTS) this.#report("trials", `${this.#used} used, ${this.#open.size} open`)
  }

  #ended(event: EventOf<"TrialUsed"> | EventOf<"TrialReleased">, at: number): void {
    const { reservationId } = event
    const expiresAt = this.#open.get(reservationId)
    if (expiresAt === undefined) return this.#report("holdOnce", `${reservationId} is not open`)
    this.#open.delete(reservationId)
    if (event._tag === "TrialUsed") {
      this.#used++
      if (at >= expiresAt) this.#report("trialSlot", `${reservationId} was used at ${at}, and expired at ${expiresAt}`)
      return
    }
    if (event.dueAt !== undefined && event.dueAt !== expiresAt)
      this.#report("trialSlot", `${reservationId} expired at ${event.dueAt}, not at ${expiresAt}`)
  }
}
