/** The documents of each account, to list them: their numbers, and what was credited for each invoice. */
import { type EventStore, Projection, type StateStore } from "@millrace/event-sourcing"
import { Context, Effect, Layer, Schema, SchemaTransformation } from "effect"
import * as Metrics from "../observability/Metrics.ts"
import { Invoice, type InvoiceEvent } from "./Invoice.ts"

const Entry = Schema.Struct({
  number: Schema.String,
  /** The invoice of the same payment that came first: itself, if it is that one. */
  first: Schema.String,
  /** In the smallest unit of its currency; negative for a credit note. */
  total: Schema.Int
})
type Entry = typeof Entry.Type

const Stored = Schema.Array(Schema.Tuple([Schema.String, Schema.Array(Entry)]))
/** By account, the oldest first. */
type Book = Map<string, Array<Entry>>

const enter = ({ accountId }: InvoiceEvent, entry: Entry, book: Book): Book => {
  const entries = book.get(accountId)
  if (entries === undefined) book.set(accountId, [entry])
  else entries.push(entry)
  return book
}

export const definition: Projection.Definition<Book> = {
  name: "invoicesByAccount",
  version: 1,
  state: Stored.pipe(
    Schema.decodeTo(
      Schema.declare((_): _ is Book => true),
      SchemaTransformation.transform({
        decode: (stored: typeof Stored.Type): Book => new Map(stored.map(([account, entries]) => [account, [...entries]])),
        encode: (book: Book): typeof Stored.Type => [...book]
      })
    )
  ),
  initial: () => new Map(),
  ...Projection.of<Book, InvoiceEvent>(Invoice, {
    InvoiceIssued: (event, _, book) =>
      enter(event, { number: event.number, first: event.invoice ?? event.number, total: event.total }, book),
    CreditNoteIssued: (event, _, book) => enter(event, { number: event.number, first: event.invoice, total: -event.total }, book)
  })
}

/** What became of an invoice: all that was paid stands, some of it or all of it was credited; `issued` for a credit note. */
export type Status = "paid" | "partly_refunded" | "refunded" | "issued"

export interface Listed {
  readonly number: string
  readonly status: Status
}

const statusOf = (entry: Entry, entries: ReadonlyArray<Entry>): Status => {
  if (entry.total < 0) return "issued"
  if (entry.first !== entry.number) return "paid"
  let kept = 0
  for (const { first, total } of entries) if (first === entry.number) kept += total
  return kept === entry.total ? "paid" : kept === 0 ? "refunded" : "partly_refunded"
}

/** The list cannot be read now. */
export type Unread = Projection.ProjectionBehind | Projection.ProjectionStopped | EventStore.StoreUnavailable

/** Follows the documents in the background until the scope closes. */
const make = Effect.gen(function* () {
  const book = yield* Projection.make(definition)
  yield* Metrics.lag("invoices", book.status)
  const entriesOf = (accountId: string) => Effect.map(book.caughtUp(), ({ state }): ReadonlyArray<Entry> => state.get(accountId) ?? [])
  return {
    /** A page of the documents of an account, the newest first, and how many there are. */
    page: Effect.fnUntraced(function* (accountId: string, { page, perPage }: { readonly page: number; readonly perPage: number }) {
      const entries = yield* entriesOf(accountId)
      const end = entries.length - (page - 1) * perPage
      const shown = entries.slice(Math.max(0, end - perPage), Math.max(0, end)).reverse()
      return {
        documents: shown.map((entry): Listed => ({ number: entry.number, status: statusOf(entry, entries) })),
        total: entries.length
      }
    }),
    /** What became of a document of an account; undefined if it has no such one. */
    statusOf: Effect.fnUntraced(function* (accountId: string, number: string): Effect.fn.Return<Status | undefined, Unread> {
      const entries = yield* entriesOf(accountId)
      const entry = entries.find((one) => one.number === number)
      return entry === undefined ? undefined : statusOf(entry, entries)
    }),
    status: book.status
  }
})

export class InvoiceBook extends Context.Service<InvoiceBook, Effect.Success<typeof make>>()("@millrace/core/payments/InvoiceBook") {
  static readonly layer: Layer.Layer<InvoiceBook, never, EventStore.EventStore | StateStore.StateStore> = Layer.effect(this, make)
}
