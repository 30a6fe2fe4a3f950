/**
 * The journal as CSV (RFC 4180): a row for each posting, then a row of type `Balance` and amount zero for each account. `balance` is the
 * account's balance after the row; for accounts of the operator it is empty until the end.
 */
import { type Format, quantity, symbolOf, TAGS, type Writing } from "./Format.ts"

const COLUMNS = ["date", "at", "position", "stream", "revision", "event", "type", "account", "amount", "commodity", "balance"]
const MORE = ["payee", "note", ...TAGS]

const field = (text: string): string => (/[",\r\n]/u.test(text) ? `"${text.replaceAll(`"`, `""`)}"` : text)
const row = (...fields: ReadonlyArray<string>): string => `${fields.map(field).join(",")}\r\n`

export const csv = ({ money }: Writing): Format => ({
  opening: row(...COLUMNS, ...MORE),
  currency: () => "",
  account: () => "",
  transaction: ({ at, currency, date, event, lines, note, payee, position, revision, stream, tags, type }) =>
    lines
      .map(({ account, amount, balance }) =>
        row(
          ...[date, at, position, stream, String(revision), event, type],
          ...[account, quantity(amount, currency), symbolOf(currency, money)],
          ...[balance === undefined ? "" : quantity(balance, currency), payee, note],
          ...TAGS.map((tag) => tags[tag] ?? "")
        )
      )
      .join(""),
  closing: (date, balances) =>
    balances
      .map(({ account, balance, currency }) =>
        row(
          ...[date, "", "", "", "", "", "Balance"],
          ...[account, quantity(0, currency), symbolOf(currency, money), quantity(balance, currency)],
          ...MORE.map(() => "")
        )
      )
      .join("")
})
