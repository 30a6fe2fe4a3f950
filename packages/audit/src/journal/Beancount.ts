/**
 * The journal for beancount. It asserts balances at the beginning of a day: of a customer's accounts on each day with postings, of all
 * accounts on the day after the last.
 *
 * Components of its account names are letters, digits and hyphens, and begin with a capital or a digit. Ours are mapped one to one: the
 * first letter becomes a capital, any other character `-` and the two hexadecimal digits of each of its bytes; a component that does not
 * begin with a small letter or a digit is led by `0-00`. So `assets:receivable:acc_01` is `Assets:Receivable:Acc-5F01`.
 */
import { type Balance, COMMODITY, dayAfter, decimal, escaped, type Format, type Transaction } from "./Format.ts"

const AS_IT_IS = "0-00"

const componentOf = (component: string): string => {
  const text = escaped(component, /[^A-Za-z0-9]/gu, "-")
  if (!/^[a-z0-9]/u.test(text) || text.startsWith(AS_IT_IS)) return AS_IT_IS + text
  return text.charAt(0).toUpperCase() + text.slice(1)
}

const componentFrom = (text: string): string => {
  const component = text.startsWith(AS_IT_IS) ? text.slice(AS_IT_IS.length) : text.charAt(0).toLowerCase() + text.slice(1)
  return decodeURIComponent(component.replaceAll("-", "%"))
}

/** Converts an account name to beancount's format. */
export const nameOf = (account: string): string => account.split(":").map(componentOf).join(":")
/** Converts an account name back from beancount's format. */
export const nameFrom = (name: string): string => name.split(":").map(componentFrom).join(":")

/** Exact to the thousandth: by default beancount tolerates small differences. */
const balance = (date: string, { account, balance }: Balance): string =>
  `${date} balance ${nameOf(account)}  ${decimal(balance)} ~ 0 ${COMMODITY}\n`

const transaction = ({ at, carried, date, event, lines, position, revision, stream, type }: Transaction): string =>
  `${carried.length === 0 ? "" : `\n${carried.map((own) => balance(date, own)).join("")}`}\n${date} * "${type}"\n` +
  `  event: ${JSON.stringify(event)}\n  position: ${JSON.stringify(position)}\n  stream: ${JSON.stringify(stream)}\n  revision: ${revision}\n  at: "${at}"\n` +
  lines.map(({ account, amount }) => `  ${nameOf(account)}  ${decimal(amount)} ${COMMODITY}\n`).join("")

/** Accounts are open from the beginning of time: the clocks of hosts may differ, so the log is not strictly in the order of dates. */
const BEGINNING = "1970-01-01"

export const beancount: Format = {
  opening: `; Millrace, credits: one is a thousandth of a dollar\n\n${BEGINNING} commodity ${COMMODITY}\n`,
  account: (account) => `\n${BEGINNING} open ${nameOf(account)} ${COMMODITY}\n`,
  transaction,
  closing: (date, balances) => `\n${balances.map((own) => balance(dayAfter(date), own)).join("")}`
}
