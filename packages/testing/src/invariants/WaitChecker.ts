/** Checks the outcomes of waits for verification codes, and the charges that follow from them, with bookkeeping of its own. */
import { type AccountEvent, type Sms, Verification } from "@millrace/core"
import type { Report } from "./Rules.ts"

/** What there are events of: relations are checked between kinds that are both there. */
export interface Given {
  readonly texts: boolean
  readonly waits: boolean
}

export class WaitChecker {
  readonly #texts = new Map<string, string>()
  readonly #outcomes = new Map<string, Verification.VerificationEvent["_tag"]>()
  /** The holds of waits, with the reservation that named the wait. */
  readonly #holds = new Map<string, string>()
  readonly #given: Given
  readonly #report: Report

  constructor(given: Given, report: Report) {
    this.#given = given
    this.#report = report
  }

  receive(id: string, { number }: Sms.SmsEvent): void {
    if (this.#texts.has(id)) this.#report("text", "it was received before")
    this.#texts.set(id, number)
  }

  enter(id: string, event: Verification.VerificationEvent): void {
    if (this.#outcomes.has(id)) this.#report("waitOnce", `it had ended as ${this.#outcomes.get(id)}`)
    if (id !== Verification.idOf(event.reservationId)) this.#report("waitOnce", `it is of ${event.reservationId}`)
    this.#outcomes.set(id, event._tag)
    if (event._tag === "CodeFound" && this.#given.texts && this.#texts.get(event.sms) !== event.number)
      this.#report("text", `${event.sms} did not come to ${event.number}`)
  }

  /** Checks an account event against the wait that it pays for. */
  follow(event: AccountEvent): void {
    if (event._tag === "CreditReserved" && event.operation === "verification.wait")
      this.#holds.set(event.reservationId, event.lateOf ?? event.reservationId)
    const named = event._tag === "OperationSucceeded" ? this.#holds.get(event.reservationId) : undefined
    if (named === undefined || !this.#given.waits) return
    const outcome = this.#outcomes.get(Verification.idOf(named))
    if (outcome === undefined || outcome === "WaitAbandoned") this.#report("waitCharge", outcome ?? "it has no outcome")
  }
}
