/** Rules of double entry: after every event, the sums of postings equal the balances of the fold. */
import { Account, Lots, type Postings } from "@millrace/core"

/** An account's balances in thousandths, credits positive. `receivable`: the account's debt. */
export interface Balances {
  readonly available: number
  readonly reserved: number
  readonly receivable: number
}

/** The balances of the fold. */
export const balancesOf = (account: Account.Account): Balances => {
  let available = 0
  let reserved = 0
  let receivable: number = account.purse.debts.length === 0 ? 0 : Account.debt(account)
  for (const lot of account.purse.lots) {
    available += lot.left
    reserved += lot.held
    receivable += lot.claimed
  }
  return { available, reserved, receivable }
}

/** The postings of each event sum to zero, so the sum over all accounts is zero at every position. */
export const postingsSumToZero = (postings: ReadonlyArray<Postings.Posting>): string | undefined => {
  let sum = 0
  for (const { amount } of postings) sum += amount
  return sum === 0 ? undefined : `the postings sum to ${sum / 1000}`
}

/** The sums of all postings equal the balances of the fold: available, reserved and receivable. */
export const booksAgree = (byPostings: Balances, byFold: Balances): string | undefined =>
  differs("available", byPostings.available, byFold.available) ??
  differs("reserved", byPostings.reserved, byFold.reserved) ??
  differs("receivable", byPostings.receivable, byFold.receivable)

const differs = (name: keyof Balances, byPostings: number, byFold: number): string | undefined =>
  byPostings === byFold ? undefined : `${name} is ${byPostings / 1000} by postings, ${byFold / 1000} by the account's lots`

/** The held amount of each lot equals the sum over open holds. Checked at the end of an account. */
export const holdsAreCovered = (account: Account.Account): string | undefined => {
  let open = 0
  for (const [, { amount }] of account.purse.holds) open += amount
  const held = Lots.held(account.purse.lots)
  return open === held ? undefined : `open holds come to ${open / 1000}, what is held of lots to ${held / 1000}`
}
