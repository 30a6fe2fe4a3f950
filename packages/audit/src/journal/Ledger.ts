/**
 * The journals for hledger and ledger, which declare a commodity differently. Every posting to a customer's account asserts its balance.
 * The last transaction moves nothing and asserts all balances.
 *
 * Account names are unchanged, except that characters which end a name, a component or a line are written as `%` and their hexadecimal
 * code.
 */
import { type Balance, COMMODITY, decimal, escaped, type Format, type Transaction } from "./Format.ts"

const amount = (thousandths: number): string => `${decimal(thousandths)} ${COMMODITY}`

/** Escapes `%` as well, so that {@link nameFrom} can undo it. */
export const nameOf = (account: string): string => escaped(account, /[^\p{L}\p{N}:._-]/gu, "%")

export const nameFrom = (name: string): string => decodeURIComponent(name)

const line = (account: string, thousandths: number, balance: number | undefined): string =>
  `    ${nameOf(account)}  ${amount(thousandths)}${balance === undefined ? "" : ` = ${amount(balance)}`}\n`

const transaction = ({ at, date, event, lines, position, revision, stream, type }: Transaction): string =>
  `\n${date} * ${type}\n    ; event: ${event}\n    ; position: ${position}\n    ; stream: ${stream}\n    ; revision: ${revision}\n    ; at: ${at}\n` +
  lines.map(({ account, amount, balance }) => line(account, amount, balance)).join("")

const closing = (date: string, balances: ReadonlyArray<Balance>): string =>
  `\n${date} * Balances\n${balances.map(({ account, balance }) => line(account, 0, balance)).join("")}`

const format = (commodity: string): Format => ({
  opening: `; Millrace, credits: one is a thousandth of a dollar\n\n${commodity}\n`,
  account: (account) => `\naccount ${nameOf(account)}\n`,
  transaction,
  closing
})

export const hledger: Format = format(`commodity 1000.000 ${COMMODITY}`)
/** Declares the tags, as `--pedantic` requires. */
export const ledger: Format = format(
  `commodity ${COMMODITY}\n    format 1000.000 ${COMMODITY}\n\n${["event", "position", "stream", "revision", "at"].map((tag) => `tag ${tag}\n`).join("")}`
)
