/**
 * The journal as JSON Lines: an object for each transaction, `{date, at, position, stream, revision, event, type, payee, note, operation?,
 * request?, reservation?, source?, postings: [{account, amount, balance?}]}`, then one for each account, `{date, type: "Balance", account,
 * balance}`. Amounts are decimal text, so that no reader converts them to floats.
 */
import { decimal, type Format } from "./Format.ts"

export const jsonl = (): Format => ({
  opening: "",
  account: () => "",
  transaction: ({ at, date, event, lines, note, payee, position, revision, stream, tags, type }) => {
    const postings = lines.map(({ account, amount, balance }) => ({
      account,
      amount: decimal(amount),
      ...(balance === undefined ? {} : { balance: decimal(balance) })
    }))
    return `${JSON.stringify({ date, at, position, stream, revision, event, type, payee, note, ...tags, postings })}\n`
  },
  closing: (date, balances) =>
    balances.map(({ account, balance }) => `${JSON.stringify({ date, type: "Balance", account, balance: decimal(balance) })}\n`).join("")
})
