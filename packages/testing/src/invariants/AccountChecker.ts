/** Checks the events of one account with bookkeeping of its own, kept from the events alone. */
import type { AccountEvent, EventOf, Lots } from "@millrace/core"
import { FoldChecker } from "./FoldChecker.ts"
import type { Report } from "./Rules.ts"

type Part = Lots.LotPart

interface Lot extends Lots.LotTerms {
  readonly grantedAt: number
  readonly granted: number
  clawedBack: number
  left: number
  held: number
  claimed: number
}
interface Charge {
  readonly charged: number
  readonly parts: ReadonlyArray<Part>
  readonly refunded: Array<Part>
}

/** A lot that was never granted. */
const EMPTY: Lot = {
  ...{ source: "adjustment", priority: 0, expiresAt: null, grantedAt: 0 },
  ...{ granted: 0, clawedBack: 0, left: 0, held: 0, claimed: 0 }
}

const DAY = 24 * 3_600_000
/** The default of a hold, milliseconds. */
const ADJUSTMENT_LIFETIME = 7 * DAY

/** The id of a lot that the end of a hold granted for credits of an expired lot. */
const RENEWAL = /^lot_(?<name>.+)_[0-9]+$/u

const total = (parts: ReadonlyArray<Part>): number => parts.reduce((sum, { amount }) => sum + amount, 0)
const of = (parts: ReadonlyArray<Part>, lotId: string): number => total(parts.filter((part) => part.lotId === lotId))
const within = (parts: ReadonlyArray<Part>, all: ReadonlyArray<Part>): boolean =>
  parts.every(({ lotId }) => of(parts, lotId) <= of(all, lotId))
const isPaid = (lot: Lot): boolean => lot.source === "topup" || lot.source === "subscription"
const expiry = (lot: Lot): number => lot.expiresAt ?? Number.POSITIVE_INFINITY

export class AccountChecker {
  #at = Number.NEGATIVE_INFINITY
  #status: "open" | "suspended" | "closed" = "open"
  readonly #lots = new Map<string, Lot>()
  readonly #holds = new Map<string, EventOf<"CreditReserved">>()
  readonly #made = new Set<string>()
  readonly #charges = new Map<string, Charge>()
  readonly #debts = new Map<string, number>()
  /** When each key of a success was used last: when a call succeeded, or when a job was held for. */
  readonly #successes = new Map<string, number>()
  readonly #heldAt = new Map<string, number>()
  /** When credits expire that the end of a hold returned to expired lots, by the name of the hold. */
  readonly #renewals = new Map<string, number>()
  readonly #trials = new Map<string, number>()
  #trialsUsed = 0
  readonly #fold: FoldChecker

  constructor(accountId: string) {
    this.#fold = new FoldChecker(accountId)
  }

  enter(event: AccountEvent, at: number, report: Report): void {
    this.#keepTime(event, at, report)
    this.#keepBooks(event, at, report)
    for (const [lotId, { left, held, claimed }] of this.#lots) {
      if (left < 0 || held < 0 || claimed < 0 || claimed > held) {
        report("no lot gives more than it has", `${lotId} has ${left} left, ${held} held, ${claimed} of that claimed`)
      }
    }
    const lots = [...this.#lots.values()]
    const sumOf = (amountOf: (lot: Lot) => number) => lots.reduce((sum, lot) => sum + amountOf(lot), 0)
    const claimed = sumOf((lot) => lot.claimed)
    const counted = { available: sumOf(({ left }) => left), held: sumOf(({ held }) => held), receivable: this.#owed() + claimed }
    this.#fold.enter(event, at, counted, report)
  }

  #keepTime(event: AccountEvent, at: number, report: Report): void {
    const rule = "time never goes back, and nothing that is due waits for what comes after it"
    if (at < this.#at) report(rule, `decided at ${at}, after ${this.#at}`)
    if (at > this.#at && this.#owed() > 0) {
      for (const [lotId, lot] of this.#lots) {
        if (isPaid(lot) && lot.left > 0 && expiry(lot) > this.#at)
          report("debt is repaid by paid lots, and nothing is held in debt", `${lotId} did not repay`)
      }
    }
    this.#at = Math.max(at, this.#at)
    // What is due comes in order of due time; whatever else is decided finds nothing due
    const dueAt = "dueAt" in event ? event.dueAt : undefined
    const until = dueAt ?? at
    if (until > at) report(rule, `due at ${until}, but decided at ${at}`)
    if (event._tag === "LotExpired" || event._tag === "CreditsGranted" || event._tag === "DebtRepaid") return
    for (const [lotId, lot] of this.#lots) if (lot.left > 0 && expiry(lot) <= until) report(rule, `${lotId} was due at ${lot.expiresAt}`)
    for (const [id, { expiresAt, recoverable }] of this.#holds) {
      if (recoverable === undefined && expiresAt !== undefined && (dueAt === undefined ? expiresAt <= at : expiresAt < until))
        report(rule, `${id} was due at ${expiresAt}`)
    }
  }

  #keepBooks(event: AccountEvent, at: number, report: Report): void {
    switch (event._tag) {
      case "AccountSuspended":
        this.#status = "suspended"
        return
      case "AccountReinstated":
        this.#status = "open"
        return
      case "AccountClosed":
        this.#status = "closed"
        return
      case "CreditsGranted":
        return this.#granted(event, at, report)
      case "CreditReserved":
        return this.#reserved(event, report)
      case "OperationSucceeded":
        return this.#succeeded(event, at, report)
      case "Refunded":
        return event.stage === "reserved" ? this.#released(event, at, report) : this.#refunded(event, report)
      case "LotExpired":
        return this.#expired(event, at, report)
      case "CreditsClawedBack":
        return this.#clawedBack(event, report)
      case "ClawbackReversed":
        return this.#reversed(event, report)
      case "DebtRepaid":
        return this.#repaid(event, report)
      case "TrialReserved":
        this.#trials.set(event.reservationId, event.expiresAt)
        if (this.#trialsUsed + this.#trials.size > 10) report("ten trials", `${this.#trialsUsed} used, ${this.#trials.size} open`)
        return
      case "TrialUsed":
      case "TrialReleased":
        if (!this.#trials.delete(event.reservationId)) report("a hold is made once and ends once", `${event.reservationId} is not open`)
        if (event._tag === "TrialUsed") this.#trialsUsed++
        return
    }
  }

  #granted({ amount, expiresAt, lotId, priority, source }: EventOf<"CreditsGranted">, at: number, report: Report): void {
    const before = this.#lots.get(lotId)
    if (before !== undefined && (isPaid(before) || before.left + before.held > 0))
      report("a payment grants once", `${lotId} was there already`)
    if (source === "signup" && [...this.#lots.values()].some((lot) => lot.source === source))
      report("a payment grants once", "a second sign-up")
    const until = this.#renewals.get(RENEWAL.exec(lotId)?.groups?.["name"] ?? "")
    if (source === "adjustment" && until !== undefined && until !== expiresAt)
      report("what comes back into an expired lot lives on for as long as its hold says", `${lotId} until ${expiresAt}, not ${until}`)
    this.#lots.set(lotId, { ...EMPTY, source, priority, expiresAt, grantedAt: at, granted: amount, left: amount })
  }

  #expired({ amount, dueAt, lotId }: EventOf<"LotExpired">, at: number, report: Report): void {
    const lot = this.#lot(lotId, report)
    if (lot.expiresAt !== dueAt || dueAt > at || amount !== lot.left || amount === 0)
      report("a lot expires when it is due, with all that is free", `${amount} of ${lot.left} in ${lotId}, due at ${lot.expiresAt}`)
    lot.left -= amount
  }

  #clawedBack({ amount, debt, fromAvailable, fromHeld, lotId }: EventOf<"CreditsClawedBack">, report: Report): void {
    const lot = this.#lot(lotId, report)
    lot.left -= fromAvailable
    lot.claimed += fromHeld
    this.#owe(lotId, debt)
    this.#clawBack(lot, amount, fromAvailable + fromHeld + debt, report)
  }

  #reversed({ amount, lotId, toAvailable, toDebt, toHeld }: EventOf<"ClawbackReversed">, report: Report): void {
    const lot = this.#lot(lotId, report)
    lot.left += toAvailable
    lot.claimed -= toHeld
    this.#payOff(lotId, toDebt, report)
    this.#clawBack(lot, -amount, -(toHeld + toDebt + toAvailable), report)
  }

  #repaid({ amount, lotId }: EventOf<"DebtRepaid">, report: Report): void {
    const lot = this.#lot(lotId, report)
    lot.left -= amount
    if (!isPaid(lot)) report("debt is repaid by paid lots, and nothing is held in debt", `${lotId} was not paid for`)
    let missing: number = amount
    for (const [owedFor, owed] of this.#debts) {
      const repaid = Math.min(owed, missing)
      missing -= repaid
      this.#payOff(owedFor, repaid, report)
    }
    if (missing > 0) report("debt is repaid by paid lots, and nothing is held in debt", `${missing} more than was owed`)
  }

  #reserved(event: EventOf<"CreditReserved">, report: Report): void {
    const { reservationId, quantity, amount, lots: parts, expiresAt, acceptBy, lateOf } = event
    if (this.#made.has(reservationId)) report("a hold is made once and ends once", `${reservationId} was made before`)
    if (expiresAt === undefined && acceptBy === undefined && lateOf === undefined) report("no hold without a deadline", reservationId)
    if (total(parts) !== amount)
      report("amounts are quantity times price, and no more is charged than held", `${total(parts)} of lots for ${amount}`)
    if (quantity <= 0 || amount % quantity !== 0) {
      report("amounts are quantity times price, and no more is charged than held", `${amount} for ${quantity}`)
    }
    if (this.#status !== "open") report("nothing is held while suspended or closed", this.#status)
    if (this.#owed() > 0) report("debt is repaid by paid lots, and nothing is held in debt", `${this.#owed()} is owed`)
    this.#made.add(reservationId)
    this.#heldAt.set(reservationId, this.#at)
    this.#holds.set(reservationId, event)
    for (const { lotId, amount } of parts) {
      const lot = this.#lot(lotId, report)
      lot.left -= amount
      lot.held += amount
    }
    const taken = parts.map(({ lotId }) => this.#lot(lotId, report))
    for (const [lotId, lot] of this.#lots) {
      if (lot.left > 0 && expiry(lot) > this.#at && taken.some((after) => comesBefore(lot, after))) {
        report("what expires first is used first", `${lot.left} were left in ${lotId}`)
      }
    }
  }

  #succeeded(event: EventOf<"OperationSucceeded">, at: number, report: Report): void {
    const { reservationId, charged, quantity, lots: parts, claimed = [], owed = [] } = event
    const hold = this.#end(reservationId, at, report)
    if (hold === undefined) return
    if (quantity < 0 || quantity > hold.quantity || charged * hold.quantity !== hold.amount * quantity) {
      report("amounts are quantity times price, and no more is charged than held", `${charged} for ${quantity} of ${hold.quantity}`)
    }
    if (total(parts) !== charged)
      report("amounts are quantity times price, and no more is charged than held", `${total(parts)} of lots for ${charged}`)
    if (!within([...parts, ...claimed], hold.lots))
      report("what goes back goes to the lots it came from, never more than came", reservationId)
    for (const { lotId, amount } of hold.lots) {
      const lot = this.#lot(lotId, report)
      lot.held -= amount
      lot.left += amount - of(parts, lotId) - of(claimed, lotId)
      lot.claimed -= of(claimed, lotId) + of(owed, lotId)
      this.#owe(lotId, of(owed, lotId))
    }
    this.#charges.set(reservationId, { charged, parts, refunded: [] })
    if (hold.keyHash === undefined) return
    const before = this.#successes.get(hold.keyHash)
    const since = hold.jobId === undefined ? at : (this.#heldAt.get(reservationId) ?? at)
    if (before !== undefined && since - before < DAY) report("one success for each idempotency key and day", reservationId)
    this.#successes.set(hold.keyHash, since)
  }

  #released(event: EventOf<"Refunded">, at: number, report: Report): void {
    const { reservationId, amount, lots: parts, claimed = [], dueAt } = event
    const hold = this.#end(reservationId, dueAt ?? at, report)
    if (hold === undefined) return
    const rule = "what goes back goes to the lots it came from, never more than came"
    if (amount !== hold.amount || !within(parts, hold.lots) || !within(hold.lots, parts) || !within(claimed, parts))
      report(rule, reservationId)
    if (dueAt !== undefined && dueAt !== hold.expiresAt) {
      report("time never goes back, and nothing that is due waits for what comes after it", `${reservationId} was due at ${hold.expiresAt}`)
    }
    for (const { lotId, amount } of hold.lots) {
      const lot = this.#lot(lotId, report)
      lot.held -= amount
      lot.left += amount - of(claimed, lotId)
      lot.claimed -= of(claimed, lotId)
    }
  }

  #refunded(event: EventOf<"Refunded">, report: Report): void {
    const { reservationId, amount, lots: parts, claimed = [] } = event
    const charge = this.#charges.get(reservationId)
    if (charge === undefined) return report("a hold is made once and ends once", `${reservationId} was not charged`)
    charge.refunded.push(...parts)
    if (
      total(parts) !== amount ||
      !within(charge.refunded, charge.parts) ||
      total(charge.refunded) > charge.charged ||
      !within(claimed, parts)
    ) {
      report("what goes back goes to the lots it came from, never more than came", reservationId)
    }
    for (const { lotId, amount } of parts) this.#lot(lotId, report).left += amount - of(claimed, lotId)
    for (const { lotId, amount } of claimed) this.#payOff(lotId, amount, report)
  }

  #end(reservationId: string, at: number, report: Report): EventOf<"CreditReserved"> | undefined {
    const hold = this.#holds.get(reservationId)
    if (hold !== undefined)
      this.#renewals.set(reservationId.slice(reservationId.indexOf("_") + 1), at + (hold.adjustmentLifetime ?? ADJUSTMENT_LIFETIME))
    if (!this.#holds.delete(reservationId)) report("a hold is made once and ends once", `${reservationId} is not open`)
    return hold
  }

  #lot(lotId: string, report: Report): Lot {
    const known = this.#lots.get(lotId)
    if (known !== undefined) return known
    report("no lot gives more than it has", `${lotId} was never granted`)
    const lot: Lot = { ...EMPTY }
    this.#lots.set(lotId, lot)
    return lot
  }

  #clawBack(lot: Lot, by: number, parts: number, report: Report): void {
    lot.clawedBack += by
    if (by !== parts || lot.clawedBack < 0 || lot.clawedBack > lot.granted || !isPaid(lot)) {
      report("no more is clawed back than was paid, nor reversed than was clawed back", `${by}, to ${lot.clawedBack} of ${lot.granted}`)
    }
  }

  #owed(): number {
    return [...this.#debts.values()].reduce((sum, owed) => sum + owed, 0)
  }

  #owe(lotId: string, amount: number): void {
    if (amount > 0) this.#debts.set(lotId, (this.#debts.get(lotId) ?? 0) + amount)
  }

  #payOff(lotId: string, amount: number, report: Report): void {
    const rest = (this.#debts.get(lotId) ?? 0) - amount
    if (rest < 0) report("debt is repaid by paid lots, and nothing is held in debt", `${-rest} more than was owed for ${lotId}`)
    if (rest > 0) this.#debts.set(lotId, rest)
    else this.#debts.delete(lotId)
  }
}

const comesBefore = (a: Lot, b: Lot): boolean => {
  const [first, second] = [expiry(a), expiry(b)]
  if (first !== second) return first < second
  return a.priority !== b.priority ? a.priority < b.priority : a.grantedAt < b.grantedAt
}
