/** The parts of a journal, and the interface of a tool's format. Amounts in thousandths, debit positive. */

export interface Line {
  readonly account: string
  readonly amount: number
  /** The balance of a customer's account afterwards, by the fold. */
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
  /** For the first transaction of a day: the customer's balances at the beginning of the day. */
  readonly carried: ReadonlyArray<Balance>
  readonly lines: ReadonlyArray<Line>
}

export interface Format {
  readonly opening: string
  /** Written before the first transaction that names the account. */
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

/** The text with every character of the pattern written as `mark` and the two hexadecimal digits of each of its bytes. */
export const escaped = (text: string, pattern: RegExp, mark: string): string =>
  text.replace(pattern, (char) => [...Buffer.from(char)].map((byte) => mark + byte.toString(16).toUpperCase().padStart(2, "0")).join(""))

/** The next day: `2026-02-01` after `2026-01-31`. */
export const dayAfter = (date: string): string => new Date(Date.parse(date) + 86_400_000).toISOString().slice(0, 10)
