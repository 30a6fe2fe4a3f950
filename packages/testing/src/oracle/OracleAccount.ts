/** The account of the oracle ledger: its lots, holds, debts and trials as plain arrays, and how time and credits move through them. */
import { later } from "./Calendar.ts"
import { type Call, RENEWED, type Reason, type Recurring, type Source, type View } from "./Commands.ts"

const WEEK = 7 * 24 * 60 * 60_000
/** Slots of the free trial. */
export const SLOTS = 10
const NEVER = Number.POSITIVE_INFINITY
/** An account remembers successes under idempotency keys for so long, milliseconds, at least. */
export const MEMORY = 10 * 60_000

export interface Lot {
  readonly lotId: string
  /** The id that a view shows. */
  readonly name: string
  readonly source: Source
  readonly priority: number
  readonly expiresAt: number
  /** When the ledger wrote its grant: see {@link OracleAccount.written}. */
  grantedAt: number
  readonly granted: number
  clawedBack: number
  left: number
  /** The part of the held credits that a clawback takes when they are released. */
  claimed: number
  announced: boolean
}

/** An amount of one lot. */
export interface Part {
  readonly lotId: string
  readonly amount: number
}

interface Hold extends Call {
  readonly parts: ReadonlyArray<Part>
  readonly expiresAt: number
}

interface RecurringGrant extends Recurring {
  readonly anchor: number
  /** The next one, from 0, and when it begins. */
  period: number
  dueAt: number
}

interface Ending {
  readonly how: "succeeded" | Reason
  readonly at: number
  readonly key: Call["key"] | undefined
  readonly charged: ReadonlyArray<Part>
  refunded: number
}

export const sum = (amounts: ReadonlyArray<number>): number => amounts.reduce((a, b) => a + b, 0)

/** The sum of the parts, or of those of one lot. */
export const total = (parts: ReadonlyArray<Part>, lotId?: string): number =>
  sum(parts.filter((part) => lotId === undefined || part.lotId === lotId).map(({ amount }) => amount))

/** The first `amount` of these parts. */
export const first = (parts: ReadonlyArray<Part>, amount: number): ReadonlyArray<Part> =>
  parts.flatMap((part) => {
    const taken = Math.min(part.amount, amount)
    amount -= taken
    return taken === 0 ? [] : [{ lotId: part.lotId, amount: taken }]
  })

const remove = <A>(from: Array<A>, one: A) => from.splice(from.indexOf(one), 1)

export const isPaid = ({ source }: Lot): boolean => source === "topup" || source === "subscription"

/** The successes under idempotency keys. Two generations are remembered; one ends after ten minutes, when the next success comes. */
class Successes {
  readonly #times: Array<number> = []
  #generation = { since: Number.NEGATIVE_INFINITY, recorded: 0 }
  forgotten = 0

  /** How many were recorded by then. */
  countBy(time: number): number {
    return this.#times.filter((at) => at <= time).length
  }

  record(at: number): void {
    const age = at - this.#generation.since
    if (age >= MEMORY) {
      this.forgotten = age >= 2 * MEMORY ? this.#times.length : this.#generation.recorded
      this.#generation = { since: at, recorded: this.#times.length }
    }
    this.#times.push(at)
  }
}

export class OracleAccount {
  status: View["status"] = "absent"
  verified = false
  threshold: number | null = null
  readonly recurring: Array<RecurringGrant> = []
  readonly lots: Array<Lot> = []
  readonly holds: Array<Hold> = []
  readonly endings = new Map<string, Ending>()
  /** Open trials, with the time when each expires. */
  readonly trials = new Map<string, number>()
  readonly trialsUsed: Array<string> = []
  readonly trialsReleased: Array<string> = []
  readonly successes = new Successes()
  #debts: Array<{ readonly lotId: string; amount: number }> = []
  #renewals = 0
  /** Lots that fell due since the ledger last wrote. */
  #unwritten: Array<Lot> = []

  get debt(): number {
    return sum(this.#debts.map(({ amount }) => amount))
  }

  lot(lotId: string): Lot | undefined {
    return this.lots.find((lot) => lot.lotId === lotId)
  }

  openHold(reservationId: string): Hold | undefined {
    return this.holds.find((hold) => hold.reservationId === reservationId)
  }

  heldOf(lotId: string): number {
    return sum(this.holds.map(({ parts }) => total(parts, lotId)))
  }

  isLive({ left, lotId }: Lot): boolean {
    return left + this.heldOf(lotId) > 0
  }

  /** All lots, in the order in which they are spent. */
  lotsInOrder(): ReadonlyArray<Lot> {
    return [...this.lots].sort((a, b) =>
      a.expiresAt !== b.expiresAt ? (a.expiresAt < b.expiresAt ? -1 : 1) : a.priority - b.priority || a.grantedAt - b.grantedAt
    )
  }

  /** Replaces a lot of the same id. */
  addLot(lot: Lot): void {
    const known = this.lot(lot.lotId)
    if (known !== undefined) remove(this.lots, known)
    this.lots.push(lot)
    this.#unwritten.push(lot)
  }

  /** The ledger writes what fell due together with the next command that changes something. A lot is as old as the event that grants it. */
  written(now: number): void {
    for (const lot of this.#unwritten.splice(0)) lot.grantedAt = now
  }

  /** All that a command may change, as text. */
  get picture(): string {
    const { endings, holds, lots, recurring, status, threshold, trials, trialsReleased, trialsUsed, verified } = this
    return JSON.stringify([status, verified, threshold, lots, holds, recurring, [...endings], [...trials], trialsUsed, trialsReleased])
  }

  /** A lot that was used up and gets credits again comes after the others that were granted in the same millisecond. */
  revive(lotId: string): void {
    for (const lot of this.lots.filter((lot) => lot.lotId === lotId && !this.isLive(lot))) {
      lot.announced = false
      this.lots.push(...remove(this.lots, lot))
    }
  }

  /**
   * Returns credits to a lot. If the lot has expired, they are lost, or if `isOurFault`, they become a new lot that lives for `lifetime`.
   */
  giveTo(lotId: string, amount: number, isOurFault: boolean, at: number, lifetime = WEEK): void {
    const lot = this.lot(lotId)
    if (lot === undefined || amount === 0) return
    if (lot.expiresAt > at) lot.left += amount
    else if (isOurFault) {
      const renewed = { source: "adjustment", priority: lot.priority, expiresAt: at + lifetime, grantedAt: at } as const
      const lotId = `${RENEWED} ${++this.#renewals}`
      this.addLot({ lotId, name: RENEWED, ...renewed, granted: amount, clawedBack: 0, left: amount, claimed: 0, announced: false })
    }
  }

  owe(lotId: string, amount: number): void {
    const owed = this.#debts.find((debt) => debt.lotId === lotId)
    if (owed !== undefined) owed.amount += amount
    else if (amount > 0) this.#debts.push({ lotId, amount })
  }

  /** Pays off the debt of one lot with at most `upTo`. Returns what was paid. */
  payOff(lotId: string, upTo: number): number {
    const owed = this.#debts.find((debt) => debt.lotId === lotId)
    if (owed === undefined) return 0
    const amount = Math.min(owed.amount, upTo)
    owed.amount -= amount
    this.#debts = this.#debts.filter((debt) => debt.amount > 0)
    return amount
  }

  /** Paid lots repay all debts, the oldest first. */
  repay(at: number): void {
    for (const lot of this.lotsInOrder().filter((lot) => isPaid(lot) && lot.expiresAt > at))
      for (const { lotId } of [...this.#debts]) lot.left -= this.payOff(lotId, lot.left)
  }

  /** The parts that a call would hold; undefined if there are not enough credits. */
  partsFor({ quantity, unitPrice }: Call): ReadonlyArray<Part> | undefined {
    const free = this.lotsInOrder().map(({ lotId, left }) => ({ lotId, amount: left }))
    const taken = first(free, quantity * unitPrice)
    return total(taken) === quantity * unitPrice ? taken : undefined
  }

  hold(call: Call, now: number): void {
    const parts = this.partsFor(call) ?? []
    for (const lot of this.lots) lot.left -= total(parts, lot.lotId)
    this.holds.push({ ...call, parts, expiresAt: call.end._tag === "itself" ? now + call.end.lifetime : NEVER })
  }

  /** Ends a hold: the parts in `charged` are spent, the rest is returned. */
  end(hold: Hold, how: Ending["how"], charged: ReadonlyArray<Part>, at: number): void {
    remove(this.holds, hold)
    this.endings.set(hold.reservationId, { how, at, key: hold.key, charged, refunded: 0 })
    if (how === "succeeded" && hold.key !== undefined) this.successes.record(at)
    for (const { lotId, amount } of hold.parts) {
      const lot = this.lot(lotId)
      if (lot === undefined) continue
      const released = amount - total(charged, lotId)
      const taken = Math.min(released, lot.claimed)
      lot.claimed -= taken
      // What no other hold on the lot can still release becomes debt
      const lost = Math.max(0, lot.claimed - this.heldOf(lotId))
      lot.claimed -= lost
      this.owe(lotId, lost)
      this.giveTo(lotId, released - taken, how !== "cancelled", at, hold.adjustmentLifetime)
    }
    this.repay(at)
  }

  /** Lets time pass: everything that is due by `now` happens at its own time, first lots, then holds, then trials. */
  advanceTo(now: number): void {
    for (let at = this.#nextDue(); at <= now && at !== NEVER; at = this.#nextDue()) {
      for (const lot of this.lots) if (lot.expiresAt <= at) lot.left = 0
      const expired = this.holds.filter((hold) => hold.expiresAt <= at)
      for (const hold of expired.sort((a, b) => (a.reservationId < b.reservationId ? -1 : 1))) this.end(hold, "abandoned", [], at)
      for (const [id, expiresAt] of [...this.trials].sort()) {
        if (expiresAt > at) continue
        this.trials.delete(id)
        this.trialsReleased.push(id)
      }
      for (const grant of [...this.recurring].sort((a, b) => (a.grantId < b.grantId ? -1 : 1)))
        if (grant.dueAt <= at) this.#grantPeriod(grant, at)
    }
  }

  #grantPeriod(grant: RecurringGrant, at: number): void {
    const { amount, expires, grantId, priority, source, until } = grant
    const lotId = `${grantId} ${grant.period++}`
    const next = later(grant.anchor, grant.every, grant.period)
    grant.dueAt = next
    const expiresAt = expires === "next" ? next : NEVER
    this.addLot({
      lotId,
      name: RENEWED,
      source,
      priority,
      expiresAt,
      grantedAt: at,
      granted: amount,
      clawedBack: 0,
      left: amount,
      claimed: 0,
      announced: false
    })
    if (until !== null && next >= until) remove(this.recurring, grant)
  }

  #nextDue(): number {
    const due = [...this.lots.filter((lot) => lot.left > 0), ...this.holds]
    return Math.min(...due.map(({ expiresAt }) => expiresAt), ...this.trials.values(), ...this.recurring.map(({ dueAt }) => dueAt), NEVER)
  }

  view(): View {
    const lots = this.lotsInOrder()
      .filter((lot) => this.isLive(lot))
      .map(({ lotId, name, source, priority, expiresAt, left, claimed, announced }) => ({
        ...{ lotId: name, source, priority, expiresAt: expiresAt === NEVER ? null : expiresAt },
        ...{ left, held: this.heldOf(lotId), claimed, announced }
      }))
    return {
      status: this.status,
      available: sum(lots.map(({ left }) => left)),
      held: sum(lots.map(({ held }) => held)),
      debt: this.debt,
      lots,
      trials: { used: this.trialsUsed.length, open: this.trials.size },
      recurring: this.recurring.map(({ grantId, period, dueAt }) => ({ grantId, period, dueAt })),
      threshold: this.threshold,
      low: this.threshold !== null && sum(lots.map(({ claimed, held, left }) => left + held - claimed)) < this.threshold
    }
  }
}
