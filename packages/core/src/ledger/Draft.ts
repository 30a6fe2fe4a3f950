/**
 * What every decision shares: it first applies what is due by now, and ends by what follows of itself: credits that came back into
 * expired lots, debt that paid lots can repay.
 */
import { Result } from "effect"
import * as Credits from "../Credits.ts"
import type { Timestamp } from "../Timestamp.ts"
import { Account, debt, expiresByItself, type Hold } from "./Account.ts"
import type { AccountEvent, RefundReason } from "./AccountEvent.ts"
import * as Lots from "./Lots.ts"

/**
 * Credits that come back into an expired lot through our failure become a lot that lives this long, milliseconds, unless their hold
 * says another. Never to be changed: it is what every hold means that says nothing.
 */
export const ADJUSTMENT_LIFETIME = 7 * 24 * 3_600_000

/** Events as they are decided, and the account as if they had happened. */
export class Draft {
  readonly events: Array<AccountEvent> = []
  readonly now: Timestamp
  #account: Account
  /** How many of the events are in `#account`: most decisions make one, and never ask what it led to. */
  #folded = 0
  #mayOwe: boolean

  constructor(account: Account, now: Timestamp) {
    this.#account = account
    this.#mayOwe = account.debts.length > 0
    this.now = now
    if (now >= account.nothingDueBefore) this.#applyDue()
  }

  get account(): Account {
    for (let event = this.events[this.#folded]; event !== undefined; event = this.events[++this.#folded])
      this.#account = Account.evolve(this.#account, event, this.now)
    return this.#account
  }

  add(event: AccountEvent): void {
    this.events.push(event)
    if (event._tag === "CreditsClawedBack" || (event._tag === "OperationSucceeded" && event.owed !== undefined)) this.#mayOwe = true
  }

  done(): Result.Result<ReadonlyArray<AccountEvent>> {
    this.#repayDebt(this.now)
    return Result.succeed(this.events)
  }

  /** In order of due time; at one instant lots before holds, so that what is held is not lost to an expiry that comes with it. */
  #applyDue(): void {
    for (const { at, reservationId, hold } of lapsed(this.account, this.now)) {
      this.#expireLots(at)
      if (hold === undefined) this.add({ _tag: "TrialReleased", reservationId, dueAt: at })
      else this.release(reservationId, hold, "abandoned", at)
    }
    this.#expireLots(this.now)
  }

  /** Also of lots that came back, or into being, with a hold before. */
  #expireLots(until: Timestamp): void {
    for (;;) {
      // Sorted by expiry
      const lot = this.account.lots.find(({ left }) => left > 0)
      if (lot === undefined || lot.expiresAt === null || lot.expiresAt > until) return
      this.add({ _tag: "LotExpired", lotId: lot.lotId, amount: lot.left, dueAt: lot.expiresAt })
    }
  }

  /** Gives a whole hold back. */
  release(reservationId: string, hold: Hold, reason: RefundReason, dueAt?: Timestamp): void {
    const claimed = this.#claimedOf(hold.lots)
    this.add({
      _tag: "Refunded",
      reservationId,
      stage: "reserved",
      amount: hold.amount,
      reason,
      lots: hold.lots,
      ...(claimed.length === 0 ? {} : { claimed }),
      ...(dueAt === undefined ? {} : { dueAt })
    })
    const at = dueAt ?? this.now
    this.expireReturned(Lots.without(hold.lots, claimed), bare(reservationId), renewal(reason, hold.adjustmentLifetime), at)
    // At its own instant: by now the lot may have expired, and the debt would stay
    this.#repayDebt(at)
  }

  /** Charges the first `charged` of a hold and gives the rest back. */
  capture(reservationId: string, hold: Hold, charged: Credits.Credits, quantity: number, replyHash: string): void {
    const [lots, rest] = Lots.split(hold.lots, charged)
    const claimed = this.#claimedOf(rest)
    const owed = this.#owedOf(hold.lots, rest)
    this.add({
      _tag: "OperationSucceeded",
      reservationId,
      charged,
      quantity,
      lots,
      replyHash,
      ...(claimed.length === 0 ? {} : { claimed }),
      ...(owed.length === 0 ? {} : { owed })
    })
    // Less was done than was asked: our failure
    this.expireReturned(Lots.without(rest, claimed), bare(reservationId), hold.adjustmentLifetime ?? ADJUSTMENT_LIFETIME, this.now)
  }

  /** What came back into a lot that has expired is written off, and granted anew for `lifetime` if there is one: once for each `name`. */
  expireReturned(parts: Lots.LotParts, name: string, lifetime: number | undefined, at: Timestamp): void {
    parts.forEach(({ lotId, amount }, i) => {
      const lot = Lots.find(this.account.lots, lotId)
      if (lot === undefined || lot.expiresAt === null || lot.expiresAt > at) return
      this.add({ _tag: "LotExpired", lotId, amount, dueAt: lot.expiresAt })
      if (lifetime === undefined) return
      this.add({
        _tag: "CreditsGranted",
        lotId: `lot_${name}_${i}`,
        amount,
        source: "adjustment",
        priority: lot.priority,
        expiresAt: at + lifetime,
        paymentRef: null
      })
    })
  }

  /** Of credits released now, what a clawback has claimed of their lots. */
  #claimedOf(released: Lots.LotParts): Lots.LotParts {
    return this.#mapLots(released, (lot, amount) => Math.min(amount, lot.claimed))
  }

  /** Of what is captured, what a clawback had claimed and can no longer hope to see released. */
  #owedOf(hold: Lots.LotParts, rest: Lots.LotParts): Lots.LotParts {
    return this.#mapLots(hold, (lot, amount) => {
      const claimed = lot.claimed - Math.min(Lots.amountOf(rest, lot.lotId), lot.claimed)
      return Math.max(0, claimed - (lot.held - amount))
    })
  }

  #mapLots(parts: Lots.LotParts, amountOf: (lot: Lots.Lot, amount: Credits.Credits) => number): Lots.LotParts {
    const found: Array<Lots.LotPart> = []
    for (const { lotId, amount } of parts) {
      const lot = Lots.find(this.account.lots, lotId)
      if (lot === undefined || lot.claimed === 0) continue
      const part = amountOf(lot, amount)
      if (part > 0) found.push({ lotId, amount: Credits.of(part) })
    }
    return found
  }

  /** Debt is repaid by paid lots, in the order in which they would be used. */
  #repayDebt(at: Timestamp): void {
    for (const lot of this.#mayOwe ? this.account.lots : []) {
      const owed = debt(this.account)
      if (owed === 0) return
      if (!Lots.isPaid(lot.source) || lot.left === 0 || Lots.isExpired(lot, at)) continue
      this.add({ _tag: "DebtRepaid", lotId: lot.lotId, amount: Credits.min(lot.left, owed) })
    }
  }
}

/** An id without its prefix. */
export const bare = (id: string): string => id.slice(id.indexOf("_") + 1)

/** How long credits live anew that come back into an expired lot: not at all where the caller gave them up. */
export const renewal = (reason: RefundReason, lifetime: number = ADJUSTMENT_LIFETIME): number | undefined =>
  reason === "cancelled" ? undefined : lifetime

/** A hold that is over, or without one a trial. */
interface Lapsed {
  readonly at: Timestamp
  readonly reservationId: string
  readonly hold?: Hold
}

/** In order of due time; at one instant holds before trials. */
const lapsed = (account: Account, now: Timestamp): ReadonlyArray<Lapsed> => {
  const all: Array<Lapsed> = []
  for (const [reservationId, hold] of account.holds)
    if (expiresByItself(hold) && hold.expiresAt <= now) all.push({ at: hold.expiresAt, reservationId, hold })
  for (const [reservationId, at] of account.trial.open) if (at <= now) all.push({ at, reservationId })
  return all.sort(byTime)
}

const byTime = (a: Lapsed, b: Lapsed): number =>
  a.at - b.at || Number(a.hold === undefined) - Number(b.hold === undefined) || (a.reservationId < b.reservationId ? -1 : 1)

/** What is due at `now` and not yet written: the same pure step that opens every decision, for balances as of an instant. */
export const expireDue = (account: Account, now: Timestamp): ReadonlyArray<AccountEvent> => {
  const draft = new Draft(account, now)
  draft.done()
  return draft.events
}

/** The account as it truly is at `now`, whether or not what is due was written. */
export const asOf = (account: Account, now: Timestamp): Account =>
  now < account.nothingDueBefore ? account : expireDue(account, now).reduce((state, event) => Account.evolve(state, event, now), account)
