/**
 * What is true of every account's and every job's events, always, whatever led to them. Bookkeeping of its own, kept from the events alone, except
 * for the rules `postings` and `fold`, which hold the real fold and the real postings against each other.
 */
import { Account, type AccountEvent, type EventOf, Job, Lots, Postings } from "@millrace/core"
import { StreamName } from "@millrace/event-sourcing"
import { JobInvariants, type JobRule } from "./JobInvariants.ts"

/** An event of an account or a job as it stands in a log. */
export interface Recorded {
  readonly stream: string
  /** Its place in the stream, by default counted from 0. */
  readonly revision?: number
  readonly event: AccountEvent | Job.JobEvent
  /** When it was decided: milliseconds since 1970. */
  readonly at: number
}

export interface Violation {
  readonly stream: string
  readonly revision: number
  readonly rule: Rule
  readonly detail: string
}

export type Rule =
  | "time never goes back, and nothing that is due waits for what comes after it"
  | "a hold is made once and ends once"
  | "no hold without a deadline"
  | "amounts are quantity times price, and no more is charged than held"
  | "what goes back goes to the lots it came from, never more than came"
  | "no lot gives more than it has"
  | "what expires first is used first"
  | "a lot expires when it is due, with all that is free"
  | "what comes back into an expired lot lives on for as long as its hold says"
  | "a payment grants once"
  | "no more is clawed back than was paid, nor reversed than was clawed back"
  | "debt is repaid by paid lots, and nothing is held in debt"
  | "one success for each idempotency key and day"
  | "ten trials"
  | "nothing is held while suspended or closed"
  | "postings sum to zero and equal the fold"
  | "the fold can be made"
  | JobRule

const JOB = `${Job.Job.category}-`

/** Events of jobs belong to streams of theirs. */
const isOfJob = (recorded: Recorded): recorded is Recorded & { readonly event: Job.JobEvent } => recorded.stream.startsWith(JOB)
const isOfAccount = (recorded: Recorded): recorded is Recorded & { readonly event: AccountEvent } => !isOfJob(recorded)

/**
 * All violations, in the order of the log; of events of many accounts or of one, of jobs, or of both: then also of what they have to do
 * with each other. It never throws.
 */
export const invariants = (events: Iterable<Recorded>): ReadonlyArray<Violation> => {
  const violations: Array<Violation> = []
  const accounts = new Map<string, Books>()
  const all = [...events]
  const jobs = new JobInvariants({ accounts: all.some(isOfAccount), jobs: all.some(isOfJob) })
  const revisions = new Map<string, number>()
  for (const recorded of all) {
    if (isOfJob(recorded)) {
      const { at, event, stream } = recorded
      const revision = recorded.revision ?? (revisions.get(stream) ?? -1) + 1
      revisions.set(stream, revision)
      jobs.enter(stream.slice(JOB.length), event, at, (rule, detail) =>
        violations.push({ stream, revision, rule, detail: `${event._tag}: ${detail}` })
      )
    }
    if (!isOfAccount(recorded)) continue
    const { stream, revision, event, at } = recorded
    const books = accounts.get(stream) ?? new Books(StreamName.isStreamName(stream) ? StreamName.id(stream) : stream)
    accounts.set(stream, books)
    books.revision = revision ?? books.revision + 1
    const report = (rule: Rule, detail: string) =>
      violations.push({ stream, revision: books.revision, rule, detail: `${event._tag}: ${detail}` })
    books.enter(event, at, report)
    jobs.follow(event, report)
  }
  return violations
}

type Report = (rule: Rule, detail: string) => void
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
  readonly givenBack: Array<Part>
}

const DAY = 24 * 3_600_000
/** Of a hold that says nothing else. */
const ADJUSTMENT_LIFETIME = 7 * DAY

/** A lot that a hold's end granted anew. */
const RENEWAL = /^lot_(?<name>.+)_[0-9]+$/u

const total = (parts: ReadonlyArray<Part>): number => parts.reduce((sum, { amount }) => sum + amount, 0)
const of = (parts: ReadonlyArray<Part>, lotId: string): number => total(parts.filter((part) => part.lotId === lotId))
const within = (parts: ReadonlyArray<Part>, all: ReadonlyArray<Part>): boolean =>
  parts.every(({ lotId }) => of(parts, lotId) <= of(all, lotId))
const paid = (lot: Lot): boolean => lot.source === "topup" || lot.source === "subscription"
const expiry = (lot: Lot): number => lot.expiresAt ?? Number.POSITIVE_INFINITY

class Books {
  readonly #accountId: string
  revision = -1
  #at = Number.NEGATIVE_INFINITY
  #status: "open" | "suspended" | "closed" = "open"
  readonly #lots = new Map<string, Lot>()
  readonly #holds = new Map<string, EventOf<"CreditReserved">>()
  readonly #made = new Set<string>()
  readonly #charges = new Map<string, Charge>()
  readonly #debts = new Map<string, number>()
  /** When the key of a success was used last: by a call as it succeeded, by a job as it was held for. */
  readonly #successes = new Map<string, number>()
  readonly #heldAt = new Map<string, number>()
  /** Until when credits live that a hold's end brought back into expired lots, by its name. */
  readonly #renewals = new Map<string, number>()
  readonly #trials = new Map<string, number>()
  #trialsUsed = 0
  /** The real fold, while it can be made. */
  #account: Account.Account | undefined = Account.initial
  readonly #posted = new Map<string, number>()

  constructor(accountId: string) {
    this.#accountId = accountId
  }

  enter(event: AccountEvent, at: number, report: Report): void {
    this.#keepTime(event, at, report)
    this.#keepBooks(event, at, report)
    for (const [lotId, { left, held, claimed }] of this.#lots) {
      if (left < 0 || held < 0 || claimed < 0 || claimed > held) {
        report("no lot gives more than it has", `${lotId} has ${left} left, ${held} held, ${claimed} of that claimed`)
      }
    }
    this.#post(event, at, report)
  }

  #keepTime(event: AccountEvent, at: number, report: Report): void {
    const rule = "time never goes back, and nothing that is due waits for what comes after it"
    if (at < this.#at) report(rule, `decided at ${at}, after ${this.#at}`)
    if (at > this.#at && this.#owed() > 0) {
      for (const [lotId, lot] of this.#lots) {
        if (paid(lot) && lot.left > 0 && expiry(lot) > this.#at)
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
      case "CreditsGranted": {
        const { lotId, amount, source, priority, expiresAt } = event
        const before = this.#lots.get(lotId)
        if (before !== undefined && (paid(before) || before.left + before.held > 0))
          report("a payment grants once", `${lotId} was there already`)
        if (source === "signup" && [...this.#lots.values()].some((lot) => lot.source === source))
          report("a payment grants once", "a second sign-up")
        const until = this.#renewals.get(RENEWAL.exec(lotId)?.groups?.["name"] ?? "")
        if (source === "adjustment" && until !== undefined && until !== expiresAt)
          report("what comes back into an expired lot lives on for as long as its hold says", `${lotId} until ${expiresAt}, not ${until}`)
        this.#lots.set(lotId, {
          source,
          priority,
          expiresAt,
          grantedAt: at,
          granted: amount,
          clawedBack: 0,
          left: amount,
          held: 0,
          claimed: 0
        })
        return
      }
      case "CreditReserved":
        return this.#reserved(event, report)
      case "OperationSucceeded":
        return this.#succeeded(event, at, report)
      case "Refunded":
        return event.stage === "reserved" ? this.#released(event, at, report) : this.#givenBack(event, report)
      case "LotExpired": {
        const { lotId, amount, dueAt } = event
        const lot = this.#lot(lotId, report)
        if (lot.expiresAt !== dueAt || dueAt > at || amount !== lot.left || amount === 0) {
          report("a lot expires when it is due, with all that is free", `${amount} of ${lot.left} in ${lotId}, due at ${lot.expiresAt}`)
        }
        lot.left -= amount
        return
      }
      case "CreditsClawedBack": {
        const { lotId, amount, fromAvailable, fromHeld, debt } = event
        const lot = this.#lot(lotId, report)
        lot.left -= fromAvailable
        lot.claimed += fromHeld
        this.#owe(lotId, debt)
        this.#clawedBack(lot, amount, fromAvailable + fromHeld + debt, report)
        return
      }
      case "ClawbackReversed": {
        const { lotId, amount, toHeld, toDebt, toAvailable } = event
        const lot = this.#lot(lotId, report)
        lot.left += toAvailable
        lot.claimed -= toHeld
        this.#payOff(lotId, toDebt, report)
        this.#clawedBack(lot, -amount, -(toHeld + toDebt + toAvailable), report)
        return
      }
      case "DebtRepaid": {
        const { lotId, amount } = event
        const lot = this.#lot(lotId, report)
        lot.left -= amount
        if (!paid(lot)) report("debt is repaid by paid lots, and nothing is held in debt", `${lotId} was not paid for`)
        let missing: number = amount
        for (const [owedFor, owed] of this.#debts) {
          const repaid = Math.min(owed, missing)
          missing -= repaid
          this.#payOff(owedFor, repaid, report)
        }
        if (missing > 0) report("debt is repaid by paid lots, and nothing is held in debt", `${missing} more than was owed`)
        return
      }
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
    this.#charges.set(reservationId, { charged, parts, givenBack: [] })
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

  #givenBack(event: EventOf<"Refunded">, report: Report): void {
    const { reservationId, amount, lots: parts, claimed = [] } = event
    const charge = this.#charges.get(reservationId)
    if (charge === undefined) return report("a hold is made once and ends once", `${reservationId} was not charged`)
    charge.givenBack.push(...parts)
    if (
      total(parts) !== amount ||
      !within(charge.givenBack, charge.parts) ||
      total(charge.givenBack) > charge.charged ||
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
    const lot: Lot = {
      source: "adjustment",
      priority: 0,
      expiresAt: null,
      grantedAt: 0,
      granted: 0,
      clawedBack: 0,
      left: 0,
      held: 0,
      claimed: 0
    }
    this.#lots.set(lotId, lot)
    return lot
  }

  #clawedBack(lot: Lot, by: number, parts: number, report: Report): void {
    lot.clawedBack += by
    if (by !== parts || lot.clawedBack < 0 || lot.clawedBack > lot.granted || !paid(lot)) {
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

  /** The real fold and the real postings, and both against these books. */
  #post(event: AccountEvent, at: number, report: Report): void {
    if (this.#account === undefined) return
    try {
      const postings = Postings.postings(this.#accountId, this.#account, event)
      const sum = postings.reduce((sum, { amount }) => sum + amount, 0)
      if (sum !== 0) report("postings sum to zero and equal the fold", `they sum to ${sum}`)
      for (const { account, amount } of postings) this.#posted.set(account, (this.#posted.get(account) ?? 0) + amount)
      this.#account = Account.Account.evolve(this.#account, event, at)
      const lots = [...this.#lots.values()]
      const amountOf = (amount: (lot: Lot) => number) => lots.reduce((sum, lot) => sum + amount(lot), 0)
      const { lots: folded } = this.#account.purse
      const claims = folded.reduce((sum, lot) => sum + lot.claimed, 0)
      const accounts = [
        [Postings.available(this.#accountId), -Lots.left(folded), -amountOf((lot) => lot.left)],
        [Postings.reserved(this.#accountId), -Lots.held(folded), -amountOf((lot) => lot.held)],
        [Postings.receivable(this.#accountId), Account.debt(this.#account) + claims, this.#owed() + amountOf((lot) => lot.claimed)]
      ] as const
      for (const [account, folded, counted] of accounts) {
        const posted = this.#posted.get(account) ?? 0
        if (Math.abs(posted - folded) + Math.abs(posted - counted) !== 0) {
          report("postings sum to zero and equal the fold", `${account} is ${posted}, ${folded} folded, ${counted} counted`)
        }
      }
    } catch (error) {
      this.#account = undefined
      report("the fold can be made", error instanceof Error ? error.message : String(error))
    }
  }
}

const comesBefore = (a: Lot, b: Lot): boolean => {
  const [first, second] = [expiry(a), expiry(b)]
  if (first !== second) return first < second
  return a.priority !== b.priority ? a.priority < b.priority : a.grantedAt < b.grantedAt
}
