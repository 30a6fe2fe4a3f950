/**
 * The journals for hledger and ledger, which declare a commodity differently. Every posting to a customer's account asserts its balance.
 * The last transaction moves nothing and asserts all balances. A price directive says what a credit is worth.
 *
 * Account names are unchanged, except that characters which end a name, a component or a line are written as `%` and their hexadecimal
 * code.
 */
import { Amount } from "@millrace/core"
import {
  type Balance,
  BEGINNING,
  commodityOf,
  decimalsOf,
  escaped,
  type Format,
  heading,
  quantity,
  symbolOf,
  TAGS,
  type Transaction,
  type Writing
} from "./Format.ts"

/** Escapes `%` as well, so that {@link nameFrom} can undo it. */
export const nameOf = (account: string): string => escaped(account, /[^\p{L}\p{N}:._-]/gu, "%")

export const nameFrom = (name: string): string => decodeURIComponent(name)

/** The value of a tag ends at a comma or at the line's end. */
const tagged = (value: string): string => escaped(value, /[\p{Cc}\p{Zl}\p{Zp},;|%]/gu, "%")

/** What differs between the tools: how they declare commodities and tags, and where they find the payee. */
interface Dialect {
  readonly declare: (commodity: string, decimals: number) => string
  readonly tags: boolean
  readonly description: (payee: string, note: string) => string
  /** The comment that says what a transaction in money is for, where the description does not. */
  readonly noted: (transaction: Transaction) => string
}

const DECLARED = ["event", "type", "position", "stream", "revision", "at", ...TAGS]

const format =
  ({ declare, description, noted, tags }: Dialect) =>
  (writing: Writing): Format => {
    const { money } = writing
    const commodity = commodityOf(money)
    const line = (account: string, amount: number, balance: number | undefined, currency: string | undefined): string => {
      const written = (amount: number) => `${quantity(amount, currency)} ${symbolOf(currency, money)}`
      return `    ${nameOf(account)}  ${written(amount)}${balance === undefined ? "" : ` = ${written(balance)}`}\n`
    }
    const transaction = (next: Transaction): string => {
      const { at, currency, date, event, lines, note, payee, position, revision, stream, tags, type } = next
      const facts = { event, type, position, stream, revision: String(revision), at, ...tags }
      const comments = Object.entries(facts).map(([tag, value]) => `    ; ${tag}: ${tagged(value)}\n`)
      return (
        `\n${date} * ${description(nameOf(payee), tagged(note))}\n${noted(next)}${comments.join("")}` +
        lines.map(({ account, amount, balance }) => line(account, amount, balance, currency)).join("")
      )
    }
    return {
      opening:
        `${heading(writing)}\n${declare(commodity, 3)}\n${declare(money.currency, decimalsOf(money))}\n` +
        `${tags ? `\n${DECLARED.map((tag) => `tag ${tag}\n`).join("")}` : ""}\nP ${BEGINNING} ${commodity} ${money.value} ${money.currency}\n`,
      currency: (currency) => (currency === money.currency ? "" : `\n${declare(symbolOf(currency, money), Amount.decimalsOf(currency))}\n`),
      account: (account) => `\naccount ${nameOf(account)}\n`,
      transaction,
      closing: (date: string, balances: ReadonlyArray<Balance>) =>
        `\n${date} * Balances\n${balances.map(({ account, balance, currency }) => line(account, 0, balance, currency)).join("")}`
    }
  }

const sample = (decimals: number): string => (1000).toFixed(decimals)

export const hledger = format({
  // It requires a decimal point, also where no decimals follow
  declare: (commodity, decimals) => `commodity ${sample(decimals)}${decimals === 0 ? "." : ""} ${commodity}`,
  tags: false,
  description: (payee, note) => `${payee} | ${note}`,
  noted: () => ""
})

/** Declares the tags, as `--pedantic` requires. The whole description is the payee. */
export const ledger = format({
  declare: (commodity, decimals) => `commodity ${commodity}\n    format ${sample(decimals)} ${commodity}`,
  tags: true,
  description: (payee) => payee,
  noted: ({ currency, note }) => (currency === undefined ? "" : `    ; ${tagged(note)}\n`)
})
