/**
 * The events of one decision. A transaction first expires and grants what is due. It ends with automatic consequences: credits returned to expired
 * lots are written off or granted anew, paid lots repay debt, and a balance that fell below its threshold is told.
 */
import type { Decide } from "@millrace/event-sourcing"
import { Result } from "effect"
import * as Credits from "../Credits.ts"
import { bare } from "../Ids.ts"
import type { Timestamp } from "../Timestamp.ts"
import { Account, debt, expiresByItself, type Hold } from "./Account.ts"
import type { AccountEvent, EventOf, RefundReason } from "./AccountEvent.ts"
import * as Lots from "./Lots.ts"
import * as LowBalance from "./LowBalance.ts"
import * as RecurringGrants from "./RecurringGrants.ts"

/**
 * The lifetime in milliseconds of credits that we return to an expired lot after our failure: they become a new lot. A hold may record
 * another lifetime. This constant must never change, because it applies to every recorded hold without one.
 */
export const ADJUSTMENT_LIFETIME = 7 * 24 * 3_600_000

/** The largest balance, available and held: a hundred million dollars. Sums over many accounts stay exact, too. */
export const MAX_BALANCE = Credits.of(100_000_000_000_000)

const NO_PARTS: Lots.LotParts = []

/** The events decided so far, and the account after them. */
export class Transaction {
  #events: Array<AccountEvent> = []
  readonly now: Timestamp
  #account: Account
  /** How many of the events `#account` includes. Most decisions add one event and do not ask for the account again. */
  #folded = 0
  #mayOwe: boolean
  #mayFall: boolean

  constructor(account: Account, now: Timestamp) {
    this.#account = account
    this.#mayOwe = account.purse.debts.length > 0
    this.#mayFall = account.lowBalance.threshold !== null
    this.now = now
    if (now >= account.nothingDueBefore) this.#applyDue()
  }

  get events(): ReadonlyArray<AccountEvent> {
    return this.#events
  }

  get account(): Account {
    for (let event = this.#events[this.#folded]; event !== undefined; event = this.#events[++this.#folded])
      this.#account = Account.evolve(this.#account, event, this.now)
    return this.#account
  }

  add(event: AccountEvent): void {
    // Most decisions add one event. A list that is made with it has no spare capacity
    if (this.#events.length === 0) this.#events = [event]
    else this.#events.push(event)
    if (event._tag === "CreditsClawedBack" || (event._tag === "OperationSucceeded" && event.owed !== undefined)) this.#mayOwe = true
  }

  /** From now on the account has this threshold. */
  setThreshold(threshold: Credits.Credits | null): void {
    this.add({ _tag: "BalanceThresholdSet", threshold })
    this.#mayFall = true
  }

  /** The events, for the log. */
  commit(): Result.Result<ReadonlyArray<AccountEvent>> {
    this.#repayDebt(this.now)
    if (this.#mayFall) this.#tellLowBalance()
    return Result.succeed(this.#events)
  }

  /**
   * Expires and grants in order of due time. At one instant, lots expire before holds, so such a hold returns to an expired lot; then
   * recurring grants grant theirs.
   */
  #applyDue(): void {
    for (const due of lapsed(this.account, this.now)) {
      this.#expireLots(due.at)
      if (due._tag === "trial") this.add({ _tag: "TrialReleased", reservationId: due.id, dueAt: due.at })
      else if (due._tag === "hold") this.release(due.id, due.hold, "abandoned", due.at)
      else this.#grantPeriod(due.id, due.lot)
    }
    this.#expireLots(this.now)
    for (const grant of this.account.recurring) if (grant.dueAt <= this.now || grant.until !== null) this.#stopIfOver(grant)
  }

  /** Starts a recurring grant, and grants its first lot. */
  startRecurring(started: EventOf<"RecurringGrantStarted">): void {
    this.add(started)
    const grant = RecurringGrants.find(this.account.recurring, started.grantId)
    if (grant === undefined) return
    for (const lot of RecurringGrants.due(grant, this.now).lots) this.#grantPeriod(started.grantId, lot)
    for (const after of this.account.recurring) if (after.grantId === started.grantId) this.#stopIfOver(after)
  }

  /** Grants the lot of a period. If it would be too much, it stays due, and so do the later ones. */
  #grantPeriod(grantId: string, { next, period }: RecurringGrants.DueLot): void {
    const { purse, recurring } = this.account
    const grant = RecurringGrants.find(recurring, grantId)
    if (grant === undefined || (grant.expires === "never" && grant.period !== period)) return
    const { amount, expires, priority, source } = grant
    const lotId = RecurringGrants.lotIdOf(grantId, period)
    if (Lots.find(purse.lots, lotId) !== undefined || Lots.left(purse.lots) + Lots.held(purse.lots) + amount > MAX_BALANCE) return
    const expiresAt = expires === "next" ? next : null
    const recurs = { grantId, period, next }
    this.add({ _tag: "CreditsGranted", lotId, amount, source, priority, expiresAt, paymentRef: null, recurring: recurs })
  }

  #stopIfOver(grant: RecurringGrants.RecurringGrant): void {
    const { isOver, lots } = RecurringGrants.due(grant, this.now)
    if (isOver && lots.length === 0) this.add({ _tag: "RecurringGrantStopped", grantId: grant.grantId })
  }

  /** Expires lots, including those that an expired hold refilled or created. */
  #expireLots(until: Timestamp): void {
    for (;;) {
      // Sorted by expiry
      const lot = this.account.purse.lots.find(({ left }) => left > 0)
      if (lot === undefined || lot.expiresAt === null || lot.expiresAt > until) return
      this.add({ _tag: "LotExpired", lotId: lot.lotId, amount: lot.left, dueAt: lot.expiresAt })
    }
  }

  /** Returns a hold to its lots. `dueAt`: when it expired, if it did. */
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
    // At the time of the release, because the lot may have expired since
    this.#repayDebt(at)
  }

  /** Charges the units done of a hold at its price, and returns the rest to its lots. */
  capture(reservationId: string, hold: Hold, replyHash: string, quantity: number = hold.quantity): void {
    const charged = hold.quantity === 0 ? Credits.zero : Credits.of((hold.amount / hold.quantity) * quantity)
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
      ...(claimed.length > 0 && { claimed }),
      ...(owed.length > 0 && { owed })
    })
    // Units that were not done count as our failure
    this.expireReturned(Lots.without(rest, claimed), bare(reservationId), hold.adjustmentLifetime ?? ADJUSTMENT_LIFETIME, this.now)
  }

  /**
   * Writes off credits that were returned to an expired lot and, with a `lifetime` in milliseconds, grants them as new lots. Their ids
   * derive from `name`, which identifies the cause.
   */
  expireReturned(parts: Lots.LotParts, name: string, lifetime: number | undefined, at: Timestamp): void {
    parts.forEach(({ lotId, amount }, i) => {
      const lot = Lots.find(this.account.purse.lots, lotId)
      if (lot === undefined || lot.expiresAt === null || lot.expiresAt > at) return
      this.add({ _tag: "LotExpired", lotId, amount, dueAt: lot.expiresAt })
      if (lifetime === undefined) return
      this.add({
        _tag: "CreditsGranted",
        lotId: this.#unusedLotId(`lot_${name}`, i),
        amount,
        source: "adjustment",
        priority: lot.priority,
        expiresAt: at + lifetime,
        paymentRef: null
      })
    })
  }

  /** The first id without a live lot. Two decisions at the same time may use the same name. */
  #unusedLotId(prefix: string, from: number): string {
    for (let i = from; ; i++) {
      const lotId = `${prefix}_${i}`
      if (Lots.find(this.account.purse.lots, lotId) === undefined) return lotId
    }
  }

  /** The part of released credits that a clawback has claimed. */
  #claimedOf(released: Lots.LotParts): Lots.LotParts {
    return this.#mapLots(released, (lot, amount) => Math.min(amount, lot.claimed))
  }

  /** The captured credits that become debt: claimed by a clawback, and no other hold on the lot can release them. */
  #owedOf(hold: Lots.LotParts, rest: Lots.LotParts): Lots.LotParts {
    return this.#mapLots(hold, (lot, amount) => {
      const claimed = lot.claimed - Math.min(Lots.amountOf(rest, lot.lotId), lot.claimed)
      return Math.max(0, claimed - (lot.held - amount))
    })
  }

  #mapLots(parts: Lots.LotParts, amountOf: (lot: Lots.Lot, amount: Credits.Credits) => number): Lots.LotParts {
    let found: Array<Lots.LotPart> | undefined
    for (const { lotId, amount } of parts) {
      const lot = Lots.find(this.account.purse.lots, lotId)
      if (lot === undefined || lot.claimed === 0) continue
      const part = amountOf(lot, amount)
      if (part <= 0) continue
      found ??= []
      found.push({ lotId, amount: Credits.of(part) })
    }
    return found ?? NO_PARTS
  }

  /** At the end of the decision, because a later event of it may lift the balance again. */
  #tellLowBalance(): void {
    const { lowBalance, purse } = this.account
    const low = LowBalance.untold(lowBalance, purse.lots)
    if (low !== undefined) this.add({ _tag: "BalanceFellBelow", ...low })
  }

  /** Paid lots repay debt, in the order in which they would be used. */
  #repayDebt(at: Timestamp): void {
    for (const lot of this.#mayOwe ? this.account.purse.lots : []) {
      const owed = debt(this.account)
      if (owed === 0) return
      if (!Lots.isPaid(lot.source) || lot.left === 0 || Lots.isExpired(lot, at)) continue
      this.add({ _tag: "DebtRepaid", lotId: lot.lotId, amount: Credits.min(lot.left, owed) })
    }
  }
}

/** What a decision returns if its command was carried out before: it writes nothing, not even what is due. */
export const NOTHING = "nothing"

/**
 * Makes a decision: `decide` adds its events to a transaction, and returns a refusal, `NOTHING` or undefined. `account` is the account
 * before what is due.
 */
export const deciding =
  <R>(decide: (transaction: Transaction, account: Account) => R): Decide<Account, AccountEvent, Exclude<R, typeof NOTHING | undefined>> =>
  (account, now) => {
    const transaction = new Transaction(account, now)
    const refusal = decide(transaction, account)
    if (refusal === undefined) return transaction.commit()
    return refusal === NOTHING ? Result.succeed([]) : Result.fail(refusal as Exclude<R, typeof NOTHING | undefined>)
  }

/** The lifetime of credits returned to an expired lot, milliseconds. Undefined if the caller cancelled: such credits expire. */
export const renewal = (reason: RefundReason, lifetime: number = ADJUSTMENT_LIFETIME): number | undefined =>
  reason === "cancelled" ? undefined : lifetime

/** What is due, under its id: an expired hold, an expired trial slot, or a period of a recurring grant. */
type Lapsed = { readonly at: Timestamp; readonly id: string } & (
  | { readonly _tag: "hold"; readonly hold: Hold }
  | { readonly _tag: "trial" }
  | { readonly _tag: "period"; readonly lot: RecurringGrants.DueLot }
)

const ORDER = ["hold", "trial", "period"]

/** In order of due time; at one instant holds before trials before recurring grants. */
const lapsed = (account: Account, now: Timestamp): ReadonlyArray<Lapsed> => {
  const all: Array<Lapsed> = []
  for (const [id, hold] of account.purse.holds)
    if (expiresByItself(hold) && hold.expiresAt <= now) all.push({ _tag: "hold", at: hold.expiresAt, id, hold })
  for (const [id, { expiresAt: at }] of account.trial.open) if (at <= now) all.push({ _tag: "trial", at, id })
  for (const grant of account.recurring)
    for (const lot of RecurringGrants.due(grant, now).lots) all.push({ _tag: "period", at: lot.from, id: grant.grantId, lot })
  return all.sort(byTime)
}

const byTime = (a: Lapsed, b: Lapsed): number => a.at - b.at || ORDER.indexOf(a._tag) - ORDER.indexOf(b._tag) || (a.id < b.id ? -1 : 1)

/** The events that are due at `now` and not yet written. Every decision begins with them. */
export const expireDue = (account: Account, now: Timestamp): ReadonlyArray<AccountEvent> => {
  const transaction = new Transaction(account, now)
  transaction.commit()
  return transaction.events
}

/** The account as of `now`, after everything that is due by then, whether or not it is written. */
export const asOf = (account: Account, now: Timestamp): Account =>
  now < account.nothingDueBefore ? account : expireDue(account, now).reduce((state, event) => Account.evolve(state, event, now), account)
