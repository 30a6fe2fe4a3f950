/** Hosts that take payments over the same stores: each with its own ledger, checkout and upkeep, at one gateway. */
import { EventStore, StateStore } from "@millrace/event-sourcing"
import { Effect, Layer } from "effect"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { Checkout } from "../../src/payments/Checkout.ts"
import { InvoiceBook } from "../../src/payments/InvoiceBook.ts"
import { Invoices } from "../../src/payments/Invoices.ts"
import { PaymentBook } from "../../src/payments/PaymentBook.ts"
import type { PaymentGateway } from "../../src/payments/PaymentGateway.ts"
import { Payments } from "../../src/payments/Payments.ts"
import { PaymentUpkeep } from "../../src/payments/PaymentUpkeep.ts"
import type { Stores } from "../accounts/Hosts.ts"

/** Opens a host. It ends with the scope. With `upkeep`, it also maintains payments. */
export const host = <More>(
  { events, states }: Stores,
  gateway: Layer.Layer<PaymentGateway | More, never, EventStore.EventStore>,
  { upkeep = false }: { readonly upkeep?: boolean } = {}
) =>
  Effect.gen(function* () {
    const base = Layer.mergeAll(Layer.succeed(EventStore.EventStore, events), Layer.succeed(StateStore.StateStore, states))
    const layer = (upkeep ? PaymentUpkeep.layer() : Layer.empty).pipe(
      Layer.provideMerge(Checkout.layer()),
      Layer.provideMerge(Layer.mergeAll(Payments.layer, PaymentBook.layer, InvoiceBook.layer, gateway)),
      Layer.provideMerge(Ledger.layer()),
      Layer.provide(base)
    )
    const context = yield* Layer.build(Layer.fresh(layer))
    const services = Effect.all({
      payments: Payments,
      ledger: Ledger,
      checkout: Checkout,
      book: PaymentBook,
      invoices: Invoices,
      invoiceBook: InvoiceBook
    })
    return { ...(yield* Effect.provideContext(services, context)), context }
  })
