/** The operations that show the invoices and credit notes of an account. */
import { createHash } from "node:crypto"
import { Effect, Schema, Stream } from "effect"
import { Registration } from "../accounts/Registration.ts"
import { toDecimal } from "../payments/Amount.ts"
import type { InvoiceEvent, Line } from "../payments/Invoice.ts"
import { InvoiceBook, type Status } from "../payments/InvoiceBook.ts"
import * as InvoicePage from "../payments/InvoicePage.ts"
import { Invoices } from "../payments/Invoices.ts"
import { Timestamp } from "../Timestamp.ts"
import * as Operation from "../work/Operation.ts"
import { NotFound, UpstreamUnavailable } from "../work/OperationError.ts"
import * as ApiPath from "./ApiPath.ts"
import { LAST_PAGE, PER_PAGE } from "./CommonLimits.ts"

const LineRecord = Schema.Struct({
  description: Schema.String,
  /** In units of the currency, as are the other amounts. Without the tax. */
  net: Schema.Finite,
  tax: Schema.Finite,
  total: Schema.Finite,
  currency: Schema.String,
  /** Percent; 0 where no tax is owed. */
  tax_rate: Schema.Finite,
  /** The lot of credits that it paid for. */
  lot_id: Schema.String,
  /** The event of the payment from which it follows. */
  event_id: Schema.String
})

const InvoiceRecord = Schema.Struct({
  /** Without gaps in its series and month: `INV-2026-11-000001`, `CN-2026-11-000001`. */
  number: Schema.String,
  kind: Schema.Literals(["invoice", "credit_note"]),
  issued_at: Timestamp,
  /** ISO 4217. */
  currency: Schema.String,
  /** With the tax. Of a credit note: what went back. */
  total: Schema.Finite,
  tax: Schema.Finite,
  /** `issued` for a credit note. */
  status: Schema.Literals(["paid", "partly_refunded", "refunded", "issued"]),
  payment_id: Schema.String,
  /** The first invoice of the payment, for a credit note, and for an invoice that takes one back. */
  invoice: Schema.NullOr(Schema.String),
  lines: Schema.Array(LineRecord),
  /** The document as a page to read and print. */
  url: ApiPath.mark(Schema.String)
})

const unavailable = ({ _tag }: { readonly _tag: string }) => new UpstreamUnavailable({ upstream: "ledger", reason: _tag, isolated: true })

const lineOf = ({ cause, currency, taxed }: InvoiceEvent, { description, lotId, net, tax, total }: Line): typeof LineRecord.Type => ({
  description,
  net: signed(net, currency),
  tax: signed(tax, currency),
  total: signed(total, currency),
  currency,
  tax_rate: (taxed?.rate ?? 0) / 100,
  lot_id: lotId,
  event_id: cause
})

const signed = (minor: number, currency: string): number => {
  const size = toDecimal({ minor: Math.abs(minor), currency })
  return minor < 0 ? -size : size
}

const recordOf = (document: InvoiceEvent, status: Status): typeof InvoiceRecord.Type => ({
  number: document.number,
  kind: document._tag === "InvoiceIssued" ? "invoice" : "credit_note",
  issued_at: document.issuedAt,
  currency: document.currency,
  total: signed(document.total, document.currency),
  tax: signed(document.tax, document.currency),
  status,
  payment_id: document.paymentId,
  invoice: document.invoice ?? null,
  lines: document.lines.map((line) => lineOf(document, line)),
  url: `/billing/invoices/${document.number}`
})

const read = Effect.fnUntraced(function* (number: string) {
  const document = yield* Effect.mapError(
    Invoices.use((invoices) => invoices.read(number)),
    unavailable
  )
  return document ?? (yield* new NotFound({ resource: "invoice" }))
})

export const list = Operation.make("billing.invoices", {
  summary: "List the invoices and credit notes of the account",
  description:
    "The newest comes first. Each captured payment has one invoice, which is never changed: what goes back has a credit note. Prices include " +
    "the tax, where one is owed.",
  price: 0,
  local: true,
  route: {
    method: "GET",
    path: "/billing/invoices",
    query: {
      page: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: LAST_PAGE }))),
      /** 25 by default. */
      per_page: Schema.optionalKey(Schema.Int.check(Schema.isBetween(PER_PAGE)))
    }
  },
  success: Schema.Struct({ invoices: Schema.Array(InvoiceRecord) }),
  run: Effect.fnUntraced(function* ({ page = 1, per_page = PER_PAGE.default }, { accountId }) {
    const { documents, total } = yield* Effect.mapError(
      InvoiceBook.use((book) => book.page(accountId, { page, perPage: per_page })),
      unavailable
    )
    const invoices = yield* Effect.forEach(documents, ({ number, status }) =>
      Effect.map(read(number), (document) => recordOf(document, status))
    )
    return { data: { invoices }, page: { number: page, size: per_page, total } }
  }),
  example: {
    input: { per_page: 1 },
    data: {
      invoices: [
        {
          number: "INV-2026-11-000001",
          kind: "invoice",
          issued_at: Date.UTC(2026, 10, 21, 12),
          currency: "USD",
          total: 25,
          tax: 0,
          status: "paid",
          payment_id: "pay_01M7YKD46JCP6VGMKADN3JSPJP",
          invoice: null,
          lines: [
            {
              description: "25000 credits",
              net: 25,
              tax: 0,
              total: 25,
              currency: "USD",
              tax_rate: 0,
              lot_id: "lot_01JAGVQG6ZJ5YH8W3N0T4RQX2K",
              event_id: "0192f3a0-6c1e-7b2a-9d4e-3f5a7c9b1d2e"
            }
          ],
          url: "/billing/invoices/INV-2026-11-000001"
        }
      ]
    }
  },
  links: [{ operation: "billing.invoice", parameters: { invoice: "/invoices/0/number" } }]
})

const STANDINGS: Readonly<Record<Status, string | undefined>> = {
  paid: "Paid",
  partly_refunded: "Paid, partly refunded since",
  refunded: "Refunded",
  issued: undefined
}

const MEDIA_TYPE = "text/html; charset=utf-8"

export const page = Operation.file("billing.invoice", {
  summary: "Show an invoice or a credit note as a page",
  description: "The page prints to one sheet of paper. It loads nothing and runs nothing.",
  price: 0,
  local: true,
  route: {
    path: "/billing/invoices/:invoice",
    params: { invoice: Schema.String.check(Schema.isMinLength(1), Schema.isMaxCodePoints(40)) }
  },
  contentTypes: [MEDIA_TYPE],
  open: Effect.fnUntraced(function* ({ invoice }, { accountId }) {
    const document = yield* read(invoice)
    if (document.accountId !== accountId) return yield* new NotFound({ resource: "invoice" })
    const status = yield* Effect.mapError(
      InvoiceBook.use((book) => book.statusOf(accountId, invoice)),
      unavailable
    )
    const buyer = yield* Effect.mapError(
      Registration.use((registration) => registration.email(accountId)),
      unavailable
    )
    const bytes = Buffer.from(InvoicePage.render(document, { buyer, standing: status && STANDINGS[status] }))
    return {
      contentType: MEDIA_TYPE,
      size: bytes.byteLength,
      tag: createHash("sha256").update(bytes).digest("base64url"),
      filename: `${invoice}.html`,
      policy: InvoicePage.POLICY,
      read: ({ length = bytes.byteLength, offset } = { offset: 0 }) => Effect.succeed(Stream.make(bytes.subarray(offset, offset + length)))
    }
  }),
  example: { invoice: "INV-2026-11-000001" }
})
