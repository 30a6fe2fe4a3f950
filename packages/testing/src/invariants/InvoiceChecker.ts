/** Checks the invoices and credit notes against the payments that they follow from, with bookkeeping of its own. */
import { type Invoice, Payment } from "@millrace/core"
import type { PaymentChecker } from "./PaymentChecker.ts"
import type { Report } from "./Rules.ts"

/** The documents of a payment so far. */
interface Entry {
  readonly first: string
  readonly documents: number
  /** The tax of all of them: of credit notes with a minus. */
  readonly tax: number
}

const SERIES = { InvoiceIssued: "INV", CreditNoteIssued: "CN" } as const

export class InvoiceChecker {
  /** How many documents each month of a series has. */
  readonly #counts = new Map<string, number>()
  readonly #causes = new Set<string>()
  readonly #entries = new Map<string, Entry>()
  /** Undefined where the events of payments are not there. */
  readonly #payments: PaymentChecker | undefined
  readonly #report: Report

  constructor(payments: PaymentChecker | undefined, report: Report) {
    this.#payments = payments
    this.#report = report
  }

  /** `id`: that of the month's stream. */
  enter(id: string, event: Invoice.InvoiceEvent): void {
    const { cause, issuedAt, number } = event
    const count = (this.#counts.get(id) ?? 0) + 1
    this.#counts.set(id, count)
    const month = `${SERIES[event._tag]}-${new Date(issuedAt).toISOString().slice(0, 7)}`
    if (id !== month) this.#report("invoiceNumber", `${number} belongs to ${month}`)
    if (number !== `${id}-${String(count).padStart(6, "0")}`) this.#report("invoiceNumber", `${number} is document ${count} of ${id}`)
    if (this.#causes.has(cause)) this.#report("invoiceNumber", `${cause} had a document before ${number}`)
    this.#causes.add(cause)
    this.#sum(event)
    this.#follow(event)
  }

  #sum({ lines, net, number, tax, total }: Invoice.InvoiceEvent): void {
    const of = (part: "net" | "tax" | "total") => lines.reduce((sum, line) => sum + line[part], 0)
    if (of("net") !== net || of("tax") !== tax || of("total") !== total) this.#report("invoice", `the lines of ${number} are not its sums`)
    if (net + tax !== total || lines.some((line) => line.net + line.tax !== line.total))
      this.#report("invoice", `${number} has a total that is not its net and its tax`)
  }

  #follow(event: Invoice.InvoiceEvent): void {
    const { accountId, currency, gateway, invoice, number, paymentId, tax, taxed, total } = event
    const { documents, first, tax: before } = this.#entries.get(paymentId) ?? { documents: 0, first: undefined, tax: 0 }
    const sign = event._tag === "InvoiceIssued" ? 1 : -1
    const taxes = before + sign * tax
    this.#entries.set(paymentId, { first: first ?? number, documents: documents + 1, tax: taxes })
    if (invoice !== first) this.#report("invoice", `${number} is of ${invoice ?? "no invoice"}, and the first one is ${first ?? number}`)
    if (this.#payments === undefined) return
    const payment = this.#payments.of(Payment.paymentIdOf(paymentId))
    if (payment === undefined) return this.#report("invoice", `${number} is of a payment that was not requested`)
    if (payment.accountId !== accountId || payment.currency !== currency || payment.gateway !== gateway)
      this.#report("invoice", `${number} is not of the account, the currency or the gateway of its payment`)
    const [from, to] = [payment.kept[documents], payment.kept[documents + 1]]
    if (from === undefined || to === undefined)
      return this.#report("invoice", `${number} is document ${documents + 1}, and its money changed ${payment.kept.length - 1} times`)
    if (sign * total !== to - from) this.#report("invoice", `${number} is of ${sign * total}, and its money changed by ${to - from}`)
    if (payment.tax?.region !== taxed?.region || !isTaxIn(taxes, to, payment.tax?.rate ?? 0))
      this.#report("invoice", `with ${number} the documents have a tax of ${taxes} in ${to}`)
  }
}

/** Whether a tax is the integer nearest to `amount × rate / (1 + rate)`; the even one of two. `rate` in hundredths of a percent. */
const isTaxIn = (tax: number, amount: number, rate: number): boolean => {
  const whole = 10_000n + BigInt(rate)
  const off = 2n * (BigInt(tax) * whole - BigInt(amount) * BigInt(rate))
  const distance = off < 0n ? -off : off
  return distance < whole || (distance === whole && tax % 2 === 0)
}
