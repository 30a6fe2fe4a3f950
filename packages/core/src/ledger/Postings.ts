/**
 * Double entry: each event as postings that sum to zero. Debits are positive, credits negative, in thousandths of a credit.
 * `available` and `reserved` of an account equal the fold after every event.
 */
import * as Credits from "../Credits.ts"
import { type Account, get } from "./Account.ts"
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

/** The postings of `event`, which happened to the account as it was `before`. Empty for events that move no money. */
export const postings = (accountId: string, before: Account, event: AccountEvent): ReadonlyArray<Posting> => {
  const own = { available: available(accountId), reserved: reserved(accountId), receivable: receivable(accountId) }
  switch (event._tag) {
    case "CreditsGranted":
      return entry([funds(event.source), event.amount], [own.available, -event.amount])
    case "CreditReserved":
      return entry([own.available, event.amount], [own.reserved, -event.amount])
    case "OperationSucceeded": {
      const hold = get(before.holds, event.reservationId)
      if (hold === undefined) throw new Error(`Reservation ${event.reservationId} is not open`)
      const claimed = Lots.total(event.claimed ?? [])
      const back = hold.amount - event.charged - claimed
      return entry(
        [own.reserved, hold.amount],
        [operationIncome(hold.operation), -event.charged],
        [own.available, -back],
        [own.receivable, -claimed]
      )
    }
    case "Refunded": {
      const claimed = Lots.total(event.claimed ?? [])
      const from = event.stage === "reserved" ? own.reserved : REFUNDS
      return entry([from, event.amount], [own.available, claimed - event.amount], [own.receivable, -claimed])
    }
    case "LotExpired": {
      const lot = Lots.find(before.lots, event.lotId)
      if (lot === undefined) throw new Error(`Lot ${event.lotId} is not known`)
      return entry([own.available, event.amount], [Lots.isPaid(lot.source) ? BREAKAGE : PROMOTIONS, -event.amount])
    }
    case "CreditsClawedBack":
      return entry(
        [own.available, event.fromAvailable],
        [own.receivable, Credits.of(event.fromHeld + event.debt)],
        [PAYMENTS, -event.amount]
      )
    case "DebtRepaid":
      return entry([own.available, event.amount], [own.receivable, -event.amount])
    case "ClawbackReversed":
      return entry([PAYMENTS, event.amount], [own.receivable, -(event.toHeld + event.toDebt)], [own.available, -event.toAvailable])
    default:
      return []
  }
}

const funds = (source: Lots.LotSource): string => (Lots.isPaid(source) ? PAYMENTS : PROMOTIONS)

const entry = (...lines: ReadonlyArray<readonly [account: string, amount: number]>): ReadonlyArray<Posting> =>
  lines.filter(([, amount]) => amount !== 0).map(([account, amount]) => ({ account, amount }))
