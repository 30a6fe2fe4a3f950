/**
 * The parts of a journal, and the interface of a tool's format. Debit positive; amounts in thousandths of a credit, or in the smallest unit of
 * a currency.
 */
import { Amount, type Money } from "@millrace/core"

export interface Line {
  readonly account: string
  readonly amount: number
  /** The balance of a customer's account afterwards, by the fold. */
  readonly balance?: number
}

export interface Balance {
  readonly account: string
  readonly balance: number
  /** By ISO 4217; none for credits. */
  readonly currency?: string
}

/** One event that moved credits, or money of one currency. Its lines sum to zero. */
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
  /** The id of the account. */
  readonly payee: string
  /** What happened, in a few words: `Sign-up credits`. */
  readonly note: string
  /** What the event tells of its call or grant. */
  readonly tags: Tags
  /** For the first transaction of a day: the customer's balances at the beginning of the day. */
  readonly carried: ReadonlyArray<Balance>
  /** What all lines are in, by ISO 4217; none for credits. */
  readonly currency?: string
  readonly lines: ReadonlyArray<Line>
}

/** The operation is not known for the refund of a charge: that event names its reservation. */
export interface Tags {
  readonly operation?: string
  readonly request?: string
  readonly reservation?: string
  /** Of a grant: `signup`, `topup`, and so on. */
  readonly source?: string
}

export const TAGS = ["operation", "request", "reservation", "source"] as const satisfies ReadonlyArray<keyof Tags>

/** How a journal is written. */
export interface Writing {
  /** What credits are called and worth. */
  readonly money: Money.Money
  /** The hashes of the log were not checked. */
  readonly unverified: boolean
}

export interface Format {
  readonly opening: string
  /** Written before the first transaction in a currency. */
  readonly currency: (currency: string) => string
  /** Written before the first transaction that names the account. `currency`: what that one is in; none for credits. */
  readonly account: (account: string, currency?: string) => string
  readonly transaction: (transaction: Transaction) => string
  /** `date`: the last day of the journal. */
  readonly closing: (date: string, balances: ReadonlyArray<Balance>) => string
}

/** The symbol of credits: their name in capitals where that is a word of plain letters and no currency, else `CREDIT`. */
export const commodityOf = ({ credit, currency }: Money.Money): string => {
  const name = credit.toUpperCase()
  return /^[A-Z]{2,24}$/u.test(name) && name !== currency ? name : "CREDIT"
}

/** What amounts are in: the symbol of credits, or that of a currency, which is its code unless credits are called so. */
export const symbolOf = (currency: string | undefined, money: Money.Money): string => {
  const credits = commodityOf(money)
  if (currency === undefined) return credits
  return currency === credits ? `MONEY${currency}` : currency
}

/** The first lines of a journal, as comments. */
export const heading = ({ money, unverified }: Writing): string =>
  `; Millrace, ${money.credits}: one is worth ${money.value} ${money.currency}\n${unverified ? "; NOT VERIFIED: the hashes of the log were not checked\n" : ""}`

/** Decimals of a credit's value: at least those of the currency's cents. */
export const decimalsOf = ({ value }: Money.Money): number => Math.max(2, value.split(".")[1]?.length ?? 0)

/** Accounts, commodities and the price exist from the beginning of time: the clocks of hosts may differ, so the log is not strictly in the order of dates. */
export const BEGINNING = "1970-01-01"

/** Thousandths as credits with three decimals. */
export const decimal = (thousandths: number): string => {
  const digits = String(Math.abs(thousandths)).padStart(4, "0")
  return `${thousandths < 0 ? "-" : ""}${digits.slice(0, -3)}.${digits.slice(-3)}`
}

/** An amount of credits with three decimals, or of a currency with as many as it has. */
export const quantity = (amount: number, currency: string | undefined): string =>
  currency === undefined ? decimal(amount) : `${amount < 0 ? "-" : ""}${Amount.toText({ minor: Math.abs(amount), currency })}`

/** The text with every character of the pattern written as `mark` and the two hexadecimal digits of each of its bytes. */
export const escaped = (text: string, pattern: RegExp, mark: string): string =>
  text.replace(pattern, (char) => [...Buffer.from(char)].map((byte) => mark + byte.toString(16).toUpperCase().padStart(2, "0")).join(""))

/** The next day: `2026-02-01` after `2026-01-31`. */
export const dayAfter = (date: string): string => new Date(Date.parse(date) + 86_400_000).toISOString().slice(0, 10)
