/** The invoices and credit notes in the log, as far as it was read, beside those that follow from the payments. */
import { isDeepStrictEqual } from "node:util"
import { Invoice, InvoiceDrafts, Payment } from "@millrace/core"
import { StreamName } from "@millrace/event-sourcing"
import { noAmount } from "./Means.ts"
import type { Problems, Replay, ReportProblem } from "./Report.ts"
import type { RuleName } from "./rules/Catalog.ts"

/** A document is issued so long after what it follows from, at the latest: milliseconds. */
const MARGIN = 5 * 60_000

const OTHER = noAmount("the document says something else than what was paid or went back")
const MISSING = noAmount("the payer has no document of what was paid, or of what went back")

/** A document that follows from an event of a payment. */
interface Expected {
  readonly due: InvoiceDrafts.Due
  readonly at: number
  readonly position: string
  isIssued: boolean
}

export class InvoiceIndex {
  /** By the event of a payment from which each follows. */
  readonly #expected = new Map<string, Expected>()
  /** The number of the first invoice of each payment. */
  readonly #first = new Map<string, string>()
  /** Payments whose streams cannot be replayed further. */
  readonly #doubtful = new Set<string>()
  /** Whether the stream of a month cannot be replayed further: then nothing is said to be missing. */
  #isPartial = false

  /** Takes an event of a payment, with the payment before and after it. */
  learn(before: Payment.Order | undefined, after: Payment.Order, step: InvoiceDrafts.Step, position: string): void {
    const due = InvoiceDrafts.dueAfter(InvoiceDrafts.keptOf(before), after, step)
    if (due !== undefined) this.#expected.set(step.id, { due, at: step.at, position, isIssued: false })
  }

  begin(stream: StreamName.StreamName, report: ReportProblem): Replay {
    const { codec, evolve, initial } = Invoice.Invoice
    const id = StreamName.id(stream)
    let month: Invoice.Month = initial
    return (type, data, at) => {
      const event = codec.decode(type, data)
      month = evolve(month, event, at)
      const wrong = this.#wrongWith(event, id)
      if (wrong !== undefined)
        report("invoice-follows-its-payment" satisfies RuleName, `${event.number}: ${wrong}`, () => ({
          account: event.accountId,
          ...OTHER
        }))
    }
  }

  #wrongWith(event: Invoice.InvoiceEvent, stream: string): string | undefined {
    const { invoice, number, ...document } = event
    if (this.#doubtful.has(Payment.paymentIdOf(event.paymentId))) return undefined
    const expected = this.#expected.get(event.cause)
    if (expected === undefined) return "no event of a payment asks for it"
    expected.isIssued = true
    const first = this.#first.get(event.paymentId)
    if (first === undefined) this.#first.set(event.paymentId, number)
    if (invoice !== first) return `its first invoice is ${first ?? "this one"}`
    const { due } = expected
    if (Invoice.seriesOf(Invoice.SERIES[due._tag], due.issuedAt) !== stream) return "it belongs to another series or month"
    return isDeepStrictEqual(document, due) ? undefined : "it does not say what follows from its payment"
  }

  /** Forgets a payment whose stream cannot be replayed further. `id`: that of its stream. */
  lostPayment(id: string): void {
    this.#doubtful.add(id)
  }

  /** Says nothing of what is missing: it may be in a stream that cannot be replayed further. */
  lost(): void {
    this.#isPartial = true
  }

  /** Reports what at `now` should have been invoiced or credited, and was not. */
  reportMissing(now: number, problems: Problems): void {
    if (this.#isPartial) return
    for (const { at, due, isIssued, position } of this.#expected.values()) {
      const { _tag, accountId, paymentId } = due
      if (isIssued || at + MARGIN > now || this.#doubtful.has(Payment.paymentIdOf(paymentId))) continue
      const place = { position, stream: StreamName.make(Payment.Payment.category, Payment.paymentIdOf(paymentId)) }
      const detail = `the payment ${paymentId} has no ${_tag === "InvoiceIssued" ? "invoice" : "credit note"} for this`
      problems.add(place, "payment-has-its-invoice", detail, () => ({ account: accountId, ...MISSING }))
    }
  }
}
