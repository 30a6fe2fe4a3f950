/** What a journal is made of, whichever tool it is for, and how a tool's format writes it. Amounts in thousandths, debit positive. */

export interface Line {
  readonly account: string
  readonly amount: number
  /** What a customer's account stands at afterwards, by the fold. */
  readonly balance?: number
}

export interface Balance {
  readonly account: string
  readonly balance: number
}

/** One event that moved money. Its lines sum to zero. */
export interface Transaction {
  /** `at`, as the day in UTC. */
  readonly date: string
  /** ISO 8601. */
  readonly at: string
  readonly event: string
  readonly position: string
  readonly stream: string
  readonly revision: number
  readonly type: string
  /** What the customer's accounts stood at when the day began, where this is the first transaction of a day. */
  readonly carried: ReadonlyArray<Balance>
  readonly lines: ReadonlyArray<Line>
}

export interface Format {
  readonly opening: string
  /** Before the first transaction that names it. */
  readonly account: (account: string) => string
  readonly transaction: (transaction: Transaction) => string
  /** `date`: the last day of the journal. */
  readonly closing: (date: string, balances: ReadonlyArray<Balance>) => string
}

export const COMMODITY = "CREDIT"

/** Thousandths as credits with three decimals. */
export const decimal = (thousandths: number): string => {
  const digits = String(Math.abs(thousandths)).padStart(4, "0")
  return `${thousandths < 0 ? "-" : ""}${digits.slice(0, -3)}.${digits.slice(-3)}`
}

/** The day after, `2026-01-31` to `2026-02-01`. */
export const dayAfter = (date: string): string => new Date(Date.parse(date) + 86_400_000).toISOString().slice(0, 10)
