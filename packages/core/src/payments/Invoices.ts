/**
 * Issues the invoices and credit notes that follow from payments, each once: also when several hosts do it at the same time, or a process
 * stops in between. Reads them again by their number.
 */
import { Aggregate, EventStore, StreamName } from "@millrace/event-sourcing"
import { Context, Effect, Layer, Option, Stream } from "effect"
import { type Draft, Invoice, type InvoiceEvent, issue, numberFor, parseNumber, SERIES, seriesOf } from "./Invoice.ts"
import { type Due, dueOf, stepOf } from "./InvoiceDrafts.ts"
import { Payment, paymentIdOf } from "./Payment.ts"

export class Invoices extends Context.Service<
  Invoices,
  {
    /** Issues what follows from a payment and was not issued yet. Returns the numbers of all its documents, the oldest first. */
    readonly issue: (paymentId: string) => Effect.Effect<ReadonlyArray<string>, Aggregate.Failure>
    /** A document by its number; undefined if there is none. */
    readonly read: (number: string) => Effect.Effect<InvoiceEvent | undefined, EventStore.StoreUnavailable | Aggregate.StreamRefused>
    /** Months whose streams this host cannot read: for `/ready`. */
    readonly refused: () => ReadonlyArray<Aggregate.StreamRefused>
  }
>()("@millrace/core/payments/Invoices") {
  static readonly layer: Layer.Layer<Invoices, never, EventStore.EventStore> = Layer.effect(
    Invoices,
    Effect.suspend(() => make)
  )
}

/** Something of an event that this host cannot read. */
const refusedAt = ({ revision, stream }: EventStore.RecordedEvent, reason: unknown) =>
  new Aggregate.StreamRefused({ stream, revision, reason: String(reason) })

const make = Effect.gen(function* () {
  const events = yield* EventStore.EventStore
  const { execute, refused } = yield* Aggregate.make(Invoice)

  const stepsOf = (paymentId: string) =>
    events.readStream(StreamName.make(Payment.category, paymentIdOf(paymentId))).pipe(
      Stream.mapEffect((recorded) => Effect.try({ try: () => stepOf(recorded), catch: (error) => refusedAt(recorded, error) })),
      Stream.runCollect
    )

  const issued = Effect.fnUntraced(function* (due: Due, invoice: string | undefined) {
    const stream = seriesOf(SERIES[due._tag], due.issuedAt)
    // Only an invoice comes before the first invoice of its payment
    const draft = (invoice === undefined ? due : { ...due, invoice }) as Draft
    const { state } = yield* execute(stream, issue(stream, draft), { $correlationId: due.paymentId })
    return numberFor(stream, state, due.cause) ?? (yield* Effect.die(new Error("A document that was issued has its number")))
  })

  return Invoices.of({
    issue: Effect.fn("Invoices.issue")(function* (paymentId: string) {
      const numbers: Array<string> = []
      for (const due of dueOf(yield* stepsOf(paymentId))) numbers.push(yield* issued(due, numbers[0]))
      return numbers
    }),
    read: Effect.fn("Invoices.read")(function* (number: string) {
      const place = parseNumber(number)
      if (place === undefined) return undefined
      const found = yield* events
        .readStream(StreamName.make(Invoice.category, place.stream), { from: place.place - 1, limit: 1 })
        .pipe(Stream.runHead)
      if (Option.isNone(found)) return undefined
      const { data, type } = found.value
      return yield* Effect.try({ try: () => Invoice.codec.decode(type, data), catch: (error) => refusedAt(found.value, error) })
    }),
    refused
  })
})
