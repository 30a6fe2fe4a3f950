/** Checks the events of one account with bookkeeping of its own, kept from the events alone. */
import type { AccountEvent, EventOf, Lots } from "@millrace/core"
import { FoldChecker } from "./FoldChecker.ts"
import { comesBefore, EMPTY, expiry, isPaid, type Lot, of, type Parts, total, within } from "./Lots.ts"
import { NoticeChecker } from "./NoticeChecker.ts"
import { RecurringChecker } from "./RecurringChecker.ts"
import type { Report } from "./Rules.ts"
import { TrialChecker } from "./TrialChecker.ts"

type Hold = EventOf<"CreditReserved">

interface Charge {
  readonly charged: number
  readonly parts: Parts
  readonly refunded: Array<Lots.LotPart>
}

/** They may follow events that leave an expiry due: credits that return to an expired lot, or are granted to one. */
const CONSEQUENCES: ReadonlySet<AccountEvent["_tag"]> = new Set(["LotExpired", "CreditsGranted", "DebtRepaid", "BalanceFellBelow"])

const DAY = 24 * 3_600_000
/** How long credits live that return to an expired lot, unless their hold says otherwise: milliseconds. */
const ADJUSTMENT_LIFETIME = 7 * DAY

/** The id of a lot that the end of a hold granted for the credits of an expired lot. */
const RENEWAL = /^lot_(?<name>.+)_[0-9]+$/u

export class AccountChecker {
  #at = Number.NEGATIVE_INFINITY
  #status: "AccountSuspended" | "AccountReinstated" | "AccountClosed" = "AccountReinstated"
  readonly #lots = new Map<string, Lot>()
  readonly #holds = new Map<string, Hold>()
  readonly #charges = new Map<string, Charge>()
  readonly #debts = new Map<string, number>()
  /** When each key was last used by a success: when the call succeeded, or when credits were held for the job. */
  readonly #successes = new Map<string, number>()
  /** When each hold was made, milliseconds since 1970. */
  readonly #heldAt = new Map<string, number>()
  /** The expiry of credits that the end of a hold returned to expired lots, by the name of the hold. */
  readonly #renewals = new Map<string, number>()
  readonly #trial: TrialChecker
  readonly #notices: NoticeChecker
  readonly #recurring: RecurringChecker
  readonly #fold: FoldChecker
  readonly #report: Report

  constructor(accountId: string, report: Report) {
    this.#notices = new NoticeChecker(report)
    this.#recurring = new RecurringChecker(report)
    this.#trial = new TrialChecker(report)
    this.#fold = new FoldChecker(accountId, report)
    this.#report = report
  }

  enter(event: AccountEvent, at: number): void {
    this.#keepTime(event, at)
    this.#recurring.enter(event, at, this.#balance())
    this.#keepBooks(event, at)
    this.#trial.enter(event, at)
    for (const [lotId, { left, held, claimed }] of this.#lots) {
      if (left < 0 || held < 0 || claimed < 0 || claimed > held)
        this.#report("overdrawn", `${lotId} has ${left} left, ${held} held, ${claimed} of that claimed`)
    }
    const lots = [...this.#lots.values()]
    this.#notices.enter(event, at, this.#lots)
    const sumOf = (amountOf: (lot: Lot) => number) => lots.reduce((sum, lot) => sum + amountOf(lot), 0)
    const claimed = sumOf((lot) => lot.claimed)
    const counted = { available: sumOf(({ left }) => left), held: sumOf(({ held }) => held), receivable: this.#owed() + claimed }
    this.#fold.enter(event, at, counted)
  }

  /** After the last event. */
  end(): void {
    this.#notices.end()
    this.#recurring.nothingDue(this.#at, this.#balance())
  }

  #keepTime(event: AccountEvent, at: number): void {
    if (at < this.#at) this.#report("time", `decided at ${at}, after ${this.#at}`)
    if (at > this.#at && this.#owed() > 0) {
      for (const [lotId, lot] of this.#lots) {
        if (isPaid(lot) && lot.left > 0 && expiry(lot) > this.#at) this.#report("debt", `${lotId} did not repay`)
      }
    }
    this.#at = Math.max(at, this.#at)
    // Expiries are written in order of their due time, and before anything else
    const dueAt = "dueAt" in event ? event.dueAt : undefined
    const until = dueAt ?? at
    if (until > at) this.#report("time", `due at ${until}, but decided at ${at}`)
    if (CONSEQUENCES.has(event._tag)) return
    if (dueAt === undefined && event._tag !== "RecurringGrantStopped") this.#recurring.nothingDue(at, this.#balance())
    for (const [lotId, lot] of this.#lots)
      if (lot.left > 0 && expiry(lot) <= until) this.#report("time", `${lotId} was due at ${lot.expiresAt}`)
    this.#trial.nothingDue(until, dueAt !== undefined)
    for (const [id, { expiresAt, recoverable }] of this.#holds) {
      if (recoverable === undefined && expiresAt !== undefined && (dueAt === undefined ? expiresAt <= at : expiresAt < until))
        this.#report("time", `${id} was due at ${expiresAt}`)
    }
  }

  #keepBooks(event: AccountEvent, at: number): void {
    switch (event._tag) {
      case "AccountSuspended":
      case "AccountReinstated":
      case "AccountClosed":
        this.#status = event._tag
        return
      case "CreditsGranted":
        return this.#granted(event, at)
      case "CreditReserved":
        return this.#reserved(event)
      case "OperationSucceeded":
        return this.#succeeded(event, at)
      case "Refunded":
        return event.stage === "reserved" ? this.#released(event, at) : this.#refunded(event)
      case "LotExpired":
        return this.#expired(event, at)
      case "CreditsClawedBack":
        return this.#clawedBack(event)
      case "ClawbackReversed":
        return this.#reversed(event)
      case "DebtRepaid":
        return this.#repaid(event)
      case "TrialReserved":
        if (this.#status !== "AccountReinstated") this.#report("barred", `${event.reservationId} after ${this.#status}`)
        return
    }
  }

  #granted({ amount, expiresAt, lotId, priority, source }: EventOf<"CreditsGranted">, at: number): void {
    const before = this.#lots.get(lotId)
    if (before !== undefined && (isPaid(before) || before.left + before.held > 0)) this.#report("paymentOnce", `${lotId} was there already`)
    if (source === "signup" && [...this.#lots.values()].some((lot) => lot.source === source))
      this.#report("paymentOnce", "a second sign-up")
    const until = this.#renewals.get(RENEWAL.exec(lotId)?.groups?.["name"] ?? "")
    if (source === "adjustment" && until !== undefined && until !== expiresAt)
      this.#report("lifetime", `${lotId} until ${expiresAt}, not ${until}`)
    this.#lots.set(lotId, { ...EMPTY, source, priority, expiresAt, grantedAt: at, granted: amount, left: amount })
  }

  #expired({ amount, dueAt, lotId }: EventOf<"LotExpired">, at: number): void {
    const lot = this.#lot(lotId)
    if (lot.expiresAt !== dueAt || dueAt > at || amount !== lot.left || amount === 0)
      this.#report("expiry", `${amount} of ${lot.left} in ${lotId}, due at ${lot.expiresAt}`)
    lot.left -= amount
  }

  #clawedBack({ amount, debt, fromAvailable, fromHeld, lotId }: EventOf<"CreditsClawedBack">): void {
    const lot = this.#lot(lotId)
    lot.left -= fromAvailable
    lot.claimed += fromHeld
    this.#owe(lotId, debt)
    this.#clawBack(lot, amount, fromAvailable + fromHeld + debt)
  }

  #reversed({ amount, lotId, toAvailable, toDebt, toHeld }: EventOf<"ClawbackReversed">): void {
    const lot = this.#lot(lotId)
    lot.left += toAvailable
    lot.claimed -= toHeld
    this.#payOff(lotId, toDebt)
    this.#clawBack(lot, -amount, -(toHeld + toDebt + toAvailable))
  }

  #repaid({ amount, lotId }: EventOf<"DebtRepaid">): void {
    const lot = this.#lot(lotId)
    lot.left -= amount
    if (!isPaid(lot)) this.#report("debt", `${lotId} was not paid for`)
    let missing: number = amount
    for (const [owedFor, owed] of this.#debts) {
      const repaid = Math.min(owed, missing)
      missing -= repaid
      this.#payOff(owedFor, repaid)
    }
    if (missing > 0) this.#report("debt", `${missing} more than was owed`)
  }

  #reserved(event: Hold): void {
    const { reservationId, quantity, amount, lots: parts, expiresAt, acceptBy, lateOf } = event
    if (this.#heldAt.has(reservationId)) this.#report("holdOnce", `${reservationId} was made before`)
    if (expiresAt === undefined && acceptBy === undefined && lateOf === undefined) this.#report("deadline", reservationId)
    if (total(parts) !== amount) this.#report("amount", `${total(parts)} of lots for ${amount}`)
    if (quantity <= 0 || amount % quantity !== 0) this.#report("amount", `${amount} for ${quantity}`)
    if (this.#status !== "AccountReinstated") this.#report("barred", `after ${this.#status}`)
    if (this.#owed() > 0) this.#report("debt", `${this.#owed()} is owed`)
    this.#heldAt.set(reservationId, this.#at)
    this.#holds.set(reservationId, event)
    for (const { lotId, amount } of parts) {
      const lot = this.#lot(lotId)
      lot.left -= amount
      lot.held += amount
    }
    const taken = parts.map(({ lotId }) => this.#lot(lotId))
    for (const [lotId, lot] of this.#lots) {
      if (lot.left > 0 && expiry(lot) > this.#at && taken.some((after) => comesBefore(lot, after)))
        this.#report("order", `${lot.left} were left in ${lotId}`)
    }
  }

  #succeeded(event: EventOf<"OperationSucceeded">, at: number): void {
    const { reservationId, charged, quantity, lots: parts, claimed = [], owed = [] } = event
    const hold = this.#end(reservationId, at)
    if (hold === undefined) return
    if (quantity < 0 || quantity > hold.quantity || charged * hold.quantity !== hold.amount * quantity)
      this.#report("amount", `${charged} for ${quantity} of ${hold.quantity}`)
    if (total(parts) !== charged) this.#report("amount", `${total(parts)} of lots for ${charged}`)
    if (!within([...parts, ...claimed], hold.lots)) this.#report("returned", reservationId)
    this.#endHold(hold, parts, claimed, owed)
    this.#charges.set(reservationId, { charged, parts, refunded: [] })
    if (hold.keyHash === undefined) return
    const before = this.#successes.get(hold.keyHash)
    const since = hold.jobId === undefined ? at : (this.#heldAt.get(reservationId) ?? at)
    if (before !== undefined && since - before < DAY) this.#report("keyOnce", reservationId)
    this.#successes.set(hold.keyHash, since)
  }

  #released(event: EventOf<"Refunded">, at: number): void {
    const { reservationId, amount, lots: parts, claimed = [], dueAt } = event
    const hold = this.#end(reservationId, dueAt ?? at)
    if (hold === undefined) return
    if (amount !== hold.amount || !within(parts, hold.lots) || !within(hold.lots, parts) || !within(claimed, parts))
      this.#report("returned", reservationId)
    if (dueAt !== undefined && dueAt !== hold.expiresAt) this.#report("time", `${reservationId} was due at ${hold.expiresAt}`)
    this.#endHold(hold, [], claimed, [])
  }

  /** Charged and claimed parts leave their lots, the rest is available again. A claim on charged credits becomes debt. */
  #endHold({ lots }: Hold, charged: Parts, claimed: Parts, owed: Parts): void {
    for (const { lotId, amount } of lots) {
      const lot = this.#lot(lotId)
      lot.held -= amount
      lot.left += amount - of(charged, lotId) - of(claimed, lotId)
      lot.claimed -= of(claimed, lotId) + of(owed, lotId)
      this.#owe(lotId, of(owed, lotId))
    }
  }

  #refunded(event: EventOf<"Refunded">): void {
    const { reservationId, amount, lots: parts, claimed = [] } = event
    const charge = this.#charges.get(reservationId)
    if (charge === undefined) return this.#report("holdOnce", `${reservationId} was not charged`)
    charge.refunded.push(...parts)
    const isWithin = within(charge.refunded, charge.parts) && total(charge.refunded) <= charge.charged && within(claimed, parts)
    if (total(parts) !== amount || !isWithin) this.#report("returned", reservationId)
    for (const { lotId, amount } of parts) this.#lot(lotId).left += amount - of(claimed, lotId)
    for (const { lotId, amount } of claimed) this.#payOff(lotId, amount)
  }

  #end(reservationId: string, at: number): Hold | undefined {
    const hold = this.#holds.get(reservationId)
    if (hold !== undefined)
      this.#renewals.set(reservationId.slice(reservationId.indexOf("_") + 1), at + (hold.adjustmentLifetime ?? ADJUSTMENT_LIFETIME))
    if (!this.#holds.delete(reservationId)) this.#report("holdOnce", `${reservationId} is not open`)
    return hold
  }

  #lot(lotId: string): Lot {
    const known = this.#lots.get(lotId)
    if (known !== undefined) return known
    this.#report("overdrawn", `${lotId} was never granted`)
    const lot: Lot = { ...EMPTY }
    this.#lots.set(lotId, lot)
    return lot
  }

  #clawBack(lot: Lot, by: number, parts: number): void {
    lot.clawedBack += by
    if (by !== parts || lot.clawedBack < 0 || lot.clawedBack > lot.granted || !isPaid(lot))
      this.#report("clawback", `${by}, to ${lot.clawedBack} of ${lot.granted}`)
  }

  #balance(): number {
    return [...this.#lots.values()].reduce((sum, { held, left }) => sum + left + held, 0)
  }

  #owed(): number {
    return [...this.#debts.values()].reduce((sum, owed) => sum + owed, 0)
  }

  #owe(lotId: string, amount: number): void {
    if (amount > 0) this.#debts.set(lotId, (this.#debts.get(lotId) ?? 0) + amount)
  }

  #payOff(lotId: string, amount: number): void {
    const rest = (this.#debts.get(lotId) ?? 0) - amount
    if (rest < 0) this.#report("debt", `${-rest} more than was owed for ${lotId}`)
    if (rest > 0) this.#debts.set(lotId, rest)
    else this.#debts.delete(lotId)
  }
}
