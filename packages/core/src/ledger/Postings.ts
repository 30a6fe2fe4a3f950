/**
 * Double entry: turns each event into postings that sum to zero. Debits are positive, credits negative, in thousandths of a credit. After
 * every event `available` and `reserved` of an account equal its purse.
 */
import * as Credits from "../Credits.ts"
import { type Account, hold as openHold } from "./Account.ts"
import type { AccountEvent } from "./AccountEvent.ts"
import * as Lots from "./Lots.ts"

export interface Posting {
  /** A name as accountants write it: `liabilities:credits:{account}:available`. */
  readonly account: string
  /** Debit positive, credit negative. */
  readonly amount: number
}

export const PAYMENTS = "assets:payments"
export const REFUNDS = "income:refunds"
export const BREAKAGE = "income:breakage"
export const PROMOTIONS = "expenses:promotions"
export const receivable = (accountId: string): string => `assets:receivable:${accountId}`
export const available = (accountId: string): string => `liabilities:credits:${accountId}:available`
export const reserved = (accountId: string): string => `liabilities:credits:${accountId}:reserved`
export const operationIncome = (operation: string): string => `income:operations:${operation}`

/** The names of the ledger accounts that belong to one credit account. */
export const ownAccounts = (accountId: string) => ({
  available: available(accountId),
  reserved: reserved(accountId),
  receivable: receivable(accountId)
})
export type OwnAccounts = Readonly<ReturnType<typeof ownAccounts>>

/** Takes postings one after another. */
export type Book = (account: Posting["account"], amount: Posting["amount"]) => void

/** Posts an event to a book, given the account before it. Events that move no money are not posted. */
export const post = (own: OwnAccounts, before: Account, event: AccountEvent, to: Book): void => {
  switch (event._tag) {
    case "CreditsGranted":
      debit(to, funds(event.source), event.amount)
      return credit(to, own.available, event.amount)
    case "CreditReserved":
      debit(to, own.available, event.amount)
      return credit(to, own.reserved, event.amount)
    case "OperationSucceeded": {
      const hold = openHold(before, event.reservationId)
      if (hold === undefined) throw new Error(`Reservation ${event.reservationId} is not open`)
      const claimed = claimedOf(event)
      debit(to, own.reserved, hold.amount)
      credit(to, operationIncome(hold.operation), event.charged)
      credit(to, own.available, hold.amount - event.charged - claimed)
      return credit(to, own.receivable, claimed)
    }
    case "Refunded": {
      const claimed = claimedOf(event)
      debit(to, event.stage === "reserved" ? own.reserved : REFUNDS, event.amount)
      credit(to, own.available, event.amount - claimed)
      return credit(to, own.receivable, claimed)
    }
    case "LotExpired": {
      const lot = Lots.find(before.purse.lots, event.lotId)
      if (lot === undefined) throw new Error(`Lot ${event.lotId} is not known`)
      debit(to, own.available, event.amount)
      return credit(to, Lots.isPaid(lot.source) ? BREAKAGE : PROMOTIONS, event.amount)
    }
    case "CreditsClawedBack":
      debit(to, own.available, event.fromAvailable)
      debit(to, own.receivable, Credits.of(event.fromHeld + event.debt))
      return credit(to, PAYMENTS, event.amount)
    case "DebtRepaid":
      debit(to, own.available, event.amount)
      return credit(to, own.receivable, event.amount)
    case "ClawbackReversed":
      debit(to, PAYMENTS, event.amount)
      credit(to, own.receivable, event.toHeld + event.toDebt)
      return credit(to, own.available, event.toAvailable)
    default:
      return
  }
}

/** The postings of an event of an account. Empty for events that move no money. */
export const postings = (accountId: string, before: Account, event: AccountEvent): ReadonlyArray<Posting> => {
  const all: Array<Posting> = []
  post(ownAccounts(accountId), before, event, (account, amount) => void all.push({ account, amount }))
  return all
}

const funds = (source: Lots.LotSource): string => (Lots.isPaid(source) ? PAYMENTS : PROMOTIONS)

const claimedOf = ({ claimed }: { readonly claimed?: Lots.LotParts }): Credits.Credits =>
  claimed === undefined ? Credits.zero : Lots.total(claimed)

const debit = (to: Book, account: string, amount: number): void => {
  if (amount !== 0) to(account, amount)
}

const credit = (to: Book, account: string, amount: number): void => debit(to, account, -amount)
