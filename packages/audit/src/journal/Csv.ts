/**
 * The journal as CSV (RFC 4180): a row for each posting, then a row of type `Balance` and amount zero for each account. `balance` is the
 * account's balance after the row; for accounts of the operator it is empty until the end.
 */
import { commodityOf, decimal, type Format, TAGS, type Writing } from "./Format.ts"

const COLUMNS = ["date", "at", "position", "stream", "revision", "event", "type", "account", "amount", "commodity", "balance"]
const MORE = ["payee", "note", ...TAGS]

const field = (text: string): string => (/[",\r\n]/u.test(text) ? `"${text.replaceAll(`"`, `""`)}"` : text)
const row = (...fields: ReadonlyArray<string>): string => `${fields.map(field).join(",")}\r\n`

export const csv = ({ money }: Writing): Format => {
  const commodity = commodityOf(money)
  return {
    opening: row(...COLUMNS, ...MORE),
    account: () => "",
    transaction: ({ at, date, event, lines, note, payee, position, revision, stream, tags, type }) =>
      lines
        .map(({ account, amount, balance }) => {
          const moved = [account, decimal(amount), commodity, balance === undefined ? "" : decimal(balance)]
          return row(
            date,
            at,
            position,
            stream,
            String(revision),
            event,
            type,
            ...moved,
            payee,
            note,
            ...TAGS.map((tag) => tags[tag] ?? "")
          )
        })
        .join(""),
    closing: (date, balances) =>
      balances
        .map(({ account, balance }) =>
          row(date, "", "", "", "", "", "Balance", account, decimal(0), commodity, decimal(balance), ...MORE.map(() => ""))
        )
        .join("")
  }
}
