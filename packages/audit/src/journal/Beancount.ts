/**
 * The journal for beancount. It asserts balances at the beginning of a day: of a customer's accounts on each day with postings, of all
 * accounts on the day after the last.
 *
 * Components of its account names are letters, digits and hyphens, and begin with a capital or a digit. Ours are mapped one to one: the
 * first letter becomes a capital, any other character `-` and the two hexadecimal digits of each of its bytes; a component that does not
 * begin with a small letter or a digit is led by `0-00`. So `assets:receivable:acc_01` is `Assets:Receivable:Acc-5F01`.
 */
import type { Money } from "@millrace/core"
import {
  type Balance,
  BEGINNING,
  commodityOf,
  dayAfter,
  escaped,
  type Format,
  heading,
  quantity,
  symbolOf,
  TAGS,
  type Transaction,
  type Writing
} from "./Format.ts"

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

/** Exact to the last decimal: by default beancount tolerates small differences. */
const assertion = (date: string, { account, balance, currency }: Balance, money: Money.Money): string =>
  `${date} balance ${nameOf(account)}  ${quantity(balance, currency)} ~ 0 ${symbolOf(currency, money)}\n`

/** A string: beancount escapes quotation marks and backslashes alone. */
const text = (value: string): string => `"${value.replaceAll(/\p{Cc}/gu, " ").replaceAll(/["\\]/gu, (char) => `\\${char}`)}"`

const transaction = (transaction: Transaction, money: Money.Money): string => {
  const { at, carried, currency, date, event, lines, note, payee, position, revision, stream, tags, type } = transaction
  const metadata = [
    ...[`event: ${text(event)}`, `type: ${text(type)}`, `position: ${text(position)}`, `stream: ${text(stream)}`, `revision: ${revision}`],
    ...[`at: ${text(at)}`, ...TAGS.flatMap((tag) => (tags[tag] === undefined ? [] : `${tag}: ${text(tags[tag])}`))]
  ]
  return (
    `${carried.length === 0 ? "" : `\n${carried.map((own) => assertion(date, own, money)).join("")}`}\n${date} * ${text(payee)} ${text(note)}\n` +
    metadata.map((line) => `  ${line}\n`).join("") +
    lines.map(({ account, amount }) => `  ${nameOf(account)}  ${quantity(amount, currency)} ${symbolOf(currency, money)}\n`).join("")
  )
}

export const beancount = (writing: Writing): Format => {
  const { money } = writing
  const commodity = commodityOf(money)
  return {
    opening:
      `${heading(writing)}\n${BEGINNING} commodity ${commodity}\n${BEGINNING} commodity ${money.currency}\n` +
      `${BEGINNING} price ${commodity}  ${money.value} ${money.currency}\n`,
    currency: (currency) => (currency === money.currency ? "" : `\n${BEGINNING} commodity ${symbolOf(currency, money)}\n`),
    // Money may come to the same gateway in several currencies
    account: (account, currency) => `\n${BEGINNING} open ${nameOf(account)}${currency === undefined ? ` ${commodity}` : ""}\n`,
    transaction: (next) => transaction(next, money),
    closing: (date, balances) => `\n${balances.map((own) => assertion(dayAfter(date), own, money)).join("")}`
  }
}
