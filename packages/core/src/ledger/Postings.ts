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

/**
 * The postings of an event, given the account before it. Empty for events that move no money. `of` is the account's id; or its names, made
 * once, where many events are posted.
 */
export const postings = (of: string | OwnAccounts, before: Account, event: AccountEvent): ReadonlyArray<Posting> => {
  const own = typeof of === "string" ? ownAccounts(of) : of
  switch (event._tag) {
    case "CreditsGranted":
      return entry(debit(funds(event.source), event.amount), credit(own.available, event.amount))
    case "CreditReserved":
      return entry(debit(own.available, event.amount), credit(own.reserved, event.amount))
    case "OperationSucceeded": {
      const hold = openHold(before, event.reservationId)
      if (hold === undefined) throw new Error(`Reservation ${event.reservationId} is not open`)
      const claimed = claimedOf(event)
      return entry(
        debit(own.reserved, hold.amount),
        credit(operationIncome(hold.operation), event.charged),
        credit(own.available, hold.amount - event.charged - claimed),
        credit(own.receivable, claimed)
      )
    }
    case "Refunded": {
      const claimed = claimedOf(event)
      return entry(
        debit(event.stage === "reserved" ? own.reserved : REFUNDS, event.amount),
        credit(own.available, event.amount - claimed),
        credit(own.receivable, claimed)
      )
    }
    case "LotExpired": {
      const lot = Lots.find(before.purse.lots, event.lotId)
      if (lot === undefined) throw new Error(`Lot ${event.lotId} is not known`)
      return entry(debit(own.available, event.amount), credit(Lots.isPaid(lot.source) ? BREAKAGE : PROMOTIONS, event.amount))
    }
    case "CreditsClawedBack":
      return entry(
        debit(own.available, event.fromAvailable),
        debit(own.receivable, Credits.of(event.fromHeld + event.debt)),
        credit(PAYMENTS, event.amount)
      )
    case "DebtRepaid":
      return entry(debit(own.available, event.amount), credit(own.receivable, event.amount))
    case "ClawbackReversed":
      return entry(
        debit(PAYMENTS, event.amount),
        credit(own.receivable, event.toHeld + event.toDebt),
        credit(own.available, event.toAvailable)
      )
    default:
      return []
  }
}

const funds = (source: Lots.LotSource): string => (Lots.isPaid(source) ? PAYMENTS : PROMOTIONS)

const claimedOf = ({ claimed }: { readonly claimed?: Lots.LotParts }): Credits.Credits =>
  claimed === undefined ? Credits.zero : Lots.total(claimed)

const debit = (account: string, amount: number): Posting => ({ account, amount })

const credit = (account: string, amount: number): Posting => ({ account, amount: -amount })

const entry = (...lines: ReadonlyArray<Posting>): ReadonlyArray<Posting> => lines.filter(({ amount }) => amount !== 0)
