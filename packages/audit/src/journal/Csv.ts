/**
 * The journal as CSV (RFC 4180): a row for each posting, then a row of type `Balance` and amount zero for each account. `balance` is the
 * account's balance after the row; for accounts of the operator it is empty until the end.
 */
import { COMMODITY, decimal, type Format } from "./Format.ts"

const COLUMNS = ["date", "at", "position", "stream", "revision", "event", "type", "account", "amount", "commodity", "balance"]

const field = (text: string): string => (/[",\r\n]/u.test(text) ? `"${text.replaceAll(`"`, `""`)}"` : text)
const row = (...fields: ReadonlyArray<string>): string => `${fields.map(field).join(",")}\r\n`

export const csv: Format = {
  opening: row(...COLUMNS),
  account: () => "",
  transaction: ({ at, date, event, lines, position, revision, stream, type }) =>
    lines
      .map(({ account, amount, balance }) => {
        const moved = [account, decimal(amount), COMMODITY, balance === undefined ? "" : decimal(balance)]
        return row(date, at, position, stream, String(revision), event, type, ...moved)
      })
      .join(""),
  closing: (date, balances) =>
    balances
      .map(({ account, balance }) => row(date, "", "", "", "", "", "Balance", account, decimal(0), COMMODITY, decimal(balance)))
      .join("")
}
