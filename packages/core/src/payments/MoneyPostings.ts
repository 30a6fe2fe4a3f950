/**
 * Double entry of money: turns invoices, credit notes and payments into postings that sum to zero, in the smallest unit of their currency.
 * Debits are positive, credits negative. A document moves what its account owes, and the payment that it follows from settles that at the
 * gateway. So an account owes nothing once its documents are issued.
 */
import type { Posting } from "../ledger/Postings.ts"
import type { InvoiceEvent } from "./Invoice.ts"
import { keptOf } from "./InvoiceDrafts.ts"
import type { Order } from "./Payment.ts"

export const CREDITS_SOLD = "income:credits:sold"
export const receivables = (accountId: string): string => `assets:receivables:${accountId}`
export const gateway = (name: string): string => `assets:gateway:${name}`
export const taxOwed = (region: string): string => `liabilities:tax:${region}`

/** What a document adds to the receivables of its account: an invoice its total, a credit note the same with a minus. */
export const owedBy = ({ _tag, total }: Pick<InvoiceEvent, "_tag" | "total">): number => (_tag === "InvoiceIssued" ? total : 0 - total)

/** The postings of an invoice or a credit note. Throws for a tax whose region the document does not say. */
export const ofDocument = (event: InvoiceEvent): ReadonlyArray<Posting> => {
  const { accountId, net, number, tax, taxed } = event
  if (tax !== 0 && taxed === undefined) throw new Error(`${number} has a tax, and does not say which`)
  const sign = event._tag === "InvoiceIssued" ? -1 : 1
  return entry(
    { account: receivables(accountId), amount: owedBy(event) },
    { account: CREDITS_SOLD, amount: sign * net },
    { account: taxOwed(taxed?.region ?? ""), amount: sign * tax }
  )
}

/** The postings of an event of a payment, given the payment before and after it: what the gateway has more or less. Empty if that is the same. */
export const ofPayment = (before: Order | undefined, after: Order): ReadonlyArray<Posting> => {
  const change = keptOf(after) - keptOf(before)
  return entry({ account: gateway(after.gateway), amount: change }, { account: receivables(after.accountId), amount: 0 - change })
}

const entry = (...lines: ReadonlyArray<Posting>): ReadonlyArray<Posting> => lines.filter(({ amount }) => amount !== 0)
