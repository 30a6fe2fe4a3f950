/**
 * The journal as JSON Lines: an object for each transaction, `{date, at, position, stream, revision, event, type, payee, note, operation?,
 * request?, reservation?, source?, commodity?, postings: [{account, amount, balance?}]}`, then one for each account, `{date, type: "Balance",
 * account, commodity?, balance}`. Amounts are decimal text, so that no reader converts them to floats. They are credits, or money of the
 * currency that `commodity` names.
 */
import { type Format, quantity, symbolOf, type Writing } from "./Format.ts"

export const jsonl = ({ money }: Writing): Format => {
  const commodityOf = (currency: string | undefined) => (currency === undefined ? {} : { commodity: symbolOf(currency, money) })
  return {
    opening: "",
    currency: () => "",
    account: () => "",
    transaction: ({ at, currency, date, event, lines, note, payee, position, revision, stream, tags, type }) => {
      const postings = lines.map(({ account, amount, balance }) => ({
        account,
        amount: quantity(amount, currency),
        ...(balance === undefined ? {} : { balance: quantity(balance, currency) })
      }))
      const place = { date, at, position, stream, revision, event, type }
      return `${JSON.stringify({ ...place, payee, note, ...tags, ...commodityOf(currency), postings })}\n`
    },
    closing: (date, balances) =>
      balances
        .map(({ account, balance, currency }) => {
          const own = { date, type: "Balance", account, ...commodityOf(currency), balance: quantity(balance, currency) }
          return `${JSON.stringify(own)}\n`
        })
        .join("")
  }
}
