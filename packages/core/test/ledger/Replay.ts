/** Runs scripts on the real ledger: commands as decisions, events through their codec, states in the oracle's form. */
import { Account, type AccountEvent, Credits, Decisions, Lots } from "@millrace/core"
import type { Decide } from "@millrace/event-sourcing"
import { HashMap, Result } from "effect"
import type { Call, Command, View } from "../../../testing/src/OracleLedger.ts"
import { RENEWED } from "../../../testing/src/OracleLedger.ts"

export interface Logged {
  readonly at: number
  readonly event: AccountEvent
}

const { codec } = Account.Account

/** The event as it is read back from the log. */
export const logged = (event: AccountEvent): AccountEvent => {
  const { type, data } = codec.encode(event)
  return codec.decode(type, data)
}

/** An account and its log. */
export class Book {
  readonly log: Array<Logged> = []
  account: Account.Account = Account.initial

  /** Decides and writes. Returns the tag of the refusal, or undefined. */
  tell(command: Command, now: number): string | undefined {
    return this.decide(decisionOf(command, this.log), now)
  }

  decide(decide: Decide<Account.Account, AccountEvent, { readonly _tag: string }>, now: number): string | undefined {
    const decision = decide(this.account, now)
    if (Result.isFailure(decision)) return decision.failure._tag
    for (const event of decision.success.map(logged)) {
      this.log.push({ at: now, event })
      this.account = Account.Account.evolve(this.account, event, now)
    }
    return undefined
  }
}

export const fold = (log: ReadonlyArray<Logged>): Account.Account =>
  log.reduce((account, { at, event }) => Account.Account.evolve(account, event, at), Account.initial)

const GRANTED = /^lot_(?:[0-9]{3}|signup)$/u

/** The account at an instant, in the oracle's form. */
export const viewOf = (account: Account.Account, now: number): View => {
  const { lowBalance, recurring, status, trial, purse } = Decisions.asOf(account, now)
  const { debts, lots } = purse
  return {
    status,
    available: Lots.available(lots, now),
    held: Lots.held(lots),
    debt: Lots.total(debts),
    lots: lots.map(({ lotId, source, priority, expiresAt, left, held, claimed, announced = false }) => ({
      lotId: GRANTED.test(lotId) ? lotId : RENEWED,
      source,
      priority,
      expiresAt,
      left,
      held,
      claimed,
      announced
    })),
    trials: { used: trial.used, open: HashMap.size(trial.open) },
    recurring: recurring.map(({ grantId, period, dueAt }) => ({ grantId, period, dueAt })),
    threshold: lowBalance.threshold,
    // Told whenever it is low, at every instant
    low: lowBalance.told
  }
}

const credits = (amount: number | undefined) => (amount === undefined ? undefined : Credits.of(amount))

const reserveOf = (
  { reservationId, quantity, unitPrice, end, adjustmentLifetime, key }: Call,
  log: ReadonlyArray<Logged>
): Decisions.Reserve => ({
  reservationId,
  requestId: `request of ${reservationId}`,
  operation: "grammar.check",
  quantity,
  priceVersion: 1,
  unitPrice: Credits.of(unitPrice),
  ...(end._tag === "job"
    ? { job: { jobId: `job of ${reservationId}`, acceptWithin: end.acceptWithin } }
    : { lifetime: end.lifetime, recoverable: end._tag === "recovery" }),
  ...(adjustmentLifetime === undefined ? {} : { adjustmentLifetime }),
  ...(key && { key: { hash: key.hash, fingerprint: key.fingerprint, since: successesUntil(log, key.knownAt) } })
})

/** The number of successes under keys that were recorded up to a time. */
const successesUntil = (log: ReadonlyArray<Logged>, until: number): number => {
  const keyed = new Set<string>()
  let successes = 0
  for (const { at, event } of log) {
    if (at > until) break
    if (event._tag === "CreditReserved" && event.keyHash !== undefined) keyed.add(event.reservationId)
    if (event._tag === "OperationSucceeded" && keyed.has(event.reservationId)) successes++
  }
  return successes
}

const settleOf = (reservationId: string, quantity: number | undefined): Decisions.Settle => ({
  reservationId,
  ...(quantity === undefined ? {} : { quantity }),
  replyHash: "reply"
})

/** The charge of a settled call, from its events and those of its lots. */
export const chargeOf = (log: ReadonlyArray<Logged>, reservationId: string): Decisions.Charge | undefined => {
  const terms = new Map<string, Decisions.Charge["terms"][number]>()
  let charge: Pick<Decisions.Charge, "charged" | "lots"> | undefined
  for (const { at, event } of log) {
    if (event._tag === "CreditsGranted") terms.set(event.lotId, { ...event, grantedAt: at })
    if (event._tag === "OperationSucceeded" && event.reservationId === reservationId) charge = event
  }
  return charge && { reservationId, charged: charge.charged, lots: charge.lots, terms: termsOf(charge.lots, terms) }
}

const termsOf = (parts: Lots.LotParts, terms: ReadonlyMap<string, Decisions.Charge["terms"][number]>): Decisions.Charge["terms"] =>
  parts.flatMap(({ lotId }) => {
    const known = terms.get(lotId)
    if (known === undefined) return []
    const { source, priority, expiresAt, grantedAt } = known
    return [{ lotId, source, priority, expiresAt, grantedAt }]
  })

/** The decision of a command. */
export const decisionOf = (
  command: Command,
  log: ReadonlyArray<Logged>
): Decide<Account.Account, AccountEvent, { readonly _tag: string }> => {
  switch (command._tag) {
    case "ApplyDue":
      return Decisions.applyDue
    case "Open":
      return Decisions.open({ sealedEmail: "sealed", emailHash: "hash" })
    case "Verify":
      return Decisions.verify(Credits.of(command.signUp), command.lotId)
    case "Suspend":
      return Decisions.suspend
    case "Reinstate":
      return Decisions.reinstate
    case "Close":
      return Decisions.close
    case "Grant": {
      const { lotId, amount, source, priority, expiresAt } = command
      return Decisions.grant({
        lotId,
        amount: Credits.of(amount),
        source,
        priority,
        expiresAt,
        paymentRef: Lots.isPaid(source) ? "pay" : null
      })
    }
    case "ClawBack":
      return Decisions.clawBack(command.lotId, credits(command.amount))
    case "ReverseClawback":
      return Decisions.reverseClawback(command.lotId, credits(command.amount), command.adjustmentLifetime)
    case "Reserve":
      return Decisions.reserve(reserveOf(command.call, log))
    case "Settle":
      return Decisions.settle(settleOf(command.reservationId, command.quantity))
    case "SettleLate":
      return Decisions.settleLate(reserveOf(command.call, log), settleOf(command.lateOf, command.quantity))
    case "Release":
      return Decisions.release(command.reservationId, command.reason)
    case "Refund": {
      const charge = chargeOf(log, command.reservationId)
      return charge === undefined
        ? () => Result.fail(new Decisions.ReservationNotFound({ reservationId: command.reservationId }))
        : Decisions.refund(charge, command.reason, credits(command.amount), command.adjustmentLifetime)
    }
    case "StartRecurring":
      return Decisions.startRecurringGrant({ ...command.grant, amount: Credits.of(command.grant.amount) })
    case "StopRecurring":
      return Decisions.stopRecurringGrant(command.grantId)
    case "AnnounceExpiry":
      return Decisions.announceExpiry(command.lotId)
    case "SetThreshold":
      return Decisions.setBalanceThreshold(command.threshold === null ? null : Credits.of(command.threshold))
    case "ReserveTrial": {
      const { reservationId, lifetime } = command
      return Decisions.reserveTrial({ reservationId, requestId: "request", operation: "dns.lookup", lifetime })
    }
    case "UseTrial":
      return Decisions.useTrial(command.reservationId)
    case "ReleaseTrial":
      return Decisions.releaseTrial(command.reservationId)
  }
}
