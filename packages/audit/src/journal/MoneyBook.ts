/**
 * The entries of the journal in money: what invoices, credit notes and payments post. Beside them it keeps what each account owes by the
 * totals of its documents and the states of its payments, to compare the two.
 */
import { Invoice, InvoiceDrafts, MoneyPostings, Payment, type Postings } from "@millrace/core"
import { type EventStore, StreamName } from "@millrace/event-sourcing"
import type { Balance } from "./Format.ts"

/** What an event posts in one currency. */
export interface Entry {
  /** The id of the account. */
  readonly payee: string
  /** When it counts, in milliseconds since 1970: a document has the date of what it follows from. */
  readonly at: number
  readonly currency: string
  readonly note: string
  readonly postings: ReadonlyArray<Postings.Posting>
}

const { codec: documents } = Invoice.Invoice
const { evolve, initial } = Payment.Payment

export class MoneyBook {
  /** By the id of their stream. */
  readonly #payments = new Map<string, Payment.Payment>()
  /** The totals of the documents by currency and account. */
  readonly #documents = new Map<string, Map<string, number>>()

  /** What an event posts: undefined if it moves no money. */
  next(recorded: EventStore.RecordedEvent): Entry | undefined {
    switch (StreamName.category(recorded.stream)) {
      case Invoice.Invoice.category:
        return this.#document(documents.decode(recorded.type, recorded.data))
      case Payment.Payment.category:
        return this.#payment(StreamName.id(recorded.stream), InvoiceDrafts.stepOf(recorded))
      default:
        return undefined
    }
  }

  #document(event: Invoice.InvoiceEvent): Entry {
    const { accountId, currency, issuedAt, number, paymentId } = event
    add(this.#documents, currency, accountId, MoneyPostings.owedBy(event))
    const name = event._tag === "InvoiceIssued" ? "Invoice" : "Credit note"
    const postings = MoneyPostings.ofDocument(event)
    return { payee: accountId, at: issuedAt, currency, note: `${name} ${number} for ${paymentId}`, postings }
  }

  #payment(id: string, { at, event }: InvoiceDrafts.Step): Entry | undefined {
    const before = this.#payments.get(id) ?? initial
    const after = evolve(before, event, at)
    this.#payments.set(id, after)
    if (after.order === undefined) return undefined
    const { accountId, currency, paymentId } = after.order
    const postings = MoneyPostings.ofPayment(before.order, after.order)
    if (postings.length === 0) return undefined
    return { payee: accountId, at, currency, note: `${NOTES[event._tag] ?? event._tag} of ${paymentId}`, postings }
  }

  /** What each account owes: the totals of its documents, less what its payments brought. */
  receivables(): ReadonlyArray<Balance & { readonly currency: string }> {
    const owed = new Map([...this.#documents].map(([currency, accounts]) => [currency, new Map(accounts)]))
    for (const { order } of this.#payments.values())
      if (order !== undefined) add(owed, order.currency, order.accountId, 0 - InvoiceDrafts.keptOf(order))
    return [...owed].flatMap(([currency, accounts]) =>
      [...accounts].map(([accountId, balance]) => ({ account: MoneyPostings.receivables(accountId), currency, balance }))
    )
  }
}

const NOTES: Partial<Record<Payment.PaymentEvent["_tag"], string>> = {
  PaymentCaptured: "Capture",
  PaymentRefunded: "Refund",
  PaymentRefundFailed: "Failed refund",
  PaymentDisputed: "Chargeback",
  PaymentDisputeWon: "Chargeback won"
}

const add = (sums: Map<string, Map<string, number>>, currency: string, account: string, amount: number): void => {
  const accounts = sums.get(currency) ?? new Map<string, number>()
  sums.set(currency, accounts.set(account, (accounts.get(account) ?? 0) + amount))
}
