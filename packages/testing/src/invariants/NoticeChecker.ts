/** Checks what is told of one account, from the events and the lots that `AccountChecker.ts` counts. */
import type { AccountEvent } from "@millrace/core"
import type { Report } from "./Rules.ts"

/** Thousandths of a credit. */
interface Lot {
  readonly expiresAt: number | null
  readonly left: number
  readonly held: number
  readonly claimed: number
}

const isEmpty = (lot: Lot | undefined): boolean => lot === undefined || lot.left + lot.held === 0

export class NoticeChecker {
  #at = Number.NEGATIVE_INFINITY
  #threshold: number | undefined
  #told = false
  /** Lots whose expiry was announced. */
  readonly #announced = new Set<string>()
  /** What the account has, without what clawbacks claim. */
  #owned = 0
  readonly #report: Report

  constructor(report: Report) {
    this.#report = report
  }

  /** `lots`: after the event. */
  enter(event: AccountEvent, at: number, lots: ReadonlyMap<string, Lot>): void {
    if (at > this.#at) this.end()
    this.#at = at
    this.#owned = 0
    for (const { claimed, held, left } of lots.values()) this.#owned += left + held - claimed
    switch (event._tag) {
      case "BalanceThresholdSet":
        this.#threshold = event.threshold ?? undefined
        this.#told = false
        break
      case "CreditsGranted":
        // An id may be granted again once its lot is used up
        this.#announced.delete(event.lotId)
        break
      case "LotExpiryAnnounced": {
        const lot = lots.get(event.lotId)
        if (lot?.expiresAt !== event.expiresAt || event.expiresAt <= at || lot.left !== event.amount || lot.left === 0)
          this.#report("announced", `${event.amount} of ${lot?.left} in ${event.lotId}, until ${lot?.expiresAt}`)
        if (this.#announced.has(event.lotId)) this.#report("announced", `${event.lotId} a second time`)
        this.#announced.add(event.lotId)
        break
      }
      case "AccountClosed":
        this.#threshold = undefined
        break
      case "BalanceFellBelow": {
        const isTrue = event.threshold === this.#threshold && event.balance === this.#owned && event.balance < event.threshold
        if (!isTrue) this.#report("low", `${event.balance} below ${event.threshold}, with ${this.#owned} and ${this.#threshold}`)
        if (this.#told) this.#report("low", "told twice")
        this.#told = true
        break
      }
    }
    if (this.#threshold !== undefined && this.#owned >= this.#threshold) this.#told = false
    // A used-up lot may be announced again, where a refund revives it
    for (const lotId of this.#announced) if (isEmpty(lots.get(lotId))) this.#announced.delete(lotId)
  }

  /** All events of a decision are there, since the next one is later or is missing. */
  end(): void {
    if (this.#threshold !== undefined && !this.#told && this.#owned < this.#threshold)
      this.#report("low", `${this.#owned} below ${this.#threshold} was not told`)
  }
}
