/** The payments made here, to find one by its gateway's reference, and to list those of an account or those that are not final. */
import { type EventStore, Projection, type StateStore } from "@millrace/event-sourcing"
import { Context, Effect, Layer, Schema, SchemaTransformation } from "effect"
import * as Metrics from "../observability/Metrics.ts"
import { Payment, type PaymentEvent } from "./Payment.ts"

const Listed = Schema.Struct({
  paymentId: Schema.String,
  accountId: Schema.String,
  gateway: Schema.String,
  /** Milliseconds since 1970. */
  requestedAt: Schema.Int,
  status: Schema.Literals(["pending", "authorized", "captured", "failed"])
})
/** A payment in the list, with its newest status. */
export interface Listed extends Schema.Schema.Type<typeof Listed> {}

const Stored = Schema.Struct({
  /** By the id of their stream. */
  payments: Schema.Array(Schema.Tuple([Schema.String, Listed])),
  /** Ids of payments by gateway and reference. */
  references: Schema.Array(Schema.Tuple([Schema.String, Schema.String]))
})

interface Book {
  readonly payments: Map<string, Listed>
  /** The ids of the streams of payments, by account, the oldest first. Not stored, as the next one: it follows from the payments. */
  readonly ofAccount: Map<string, Set<string>>
  /** The ids of the streams of pending payments, by account. */
  readonly pending: Map<string, Set<string>>
  /** Ids of payments by gateway and reference. */
  readonly references: Map<string, string>
}

const keyOf = (gateway: string, reference: string): string => `${gateway}/${reference}`

const put = (book: Book, id: string, payment: Listed): Book => {
  const { accountId, status } = payment
  book.payments.set(id, payment)
  const own = book.ofAccount.get(accountId)
  if (own === undefined) book.ofAccount.set(accountId, new Set([id]))
  else own.add(id)
  const pending = book.pending.get(accountId) ?? new Set()
  if (status === "pending") pending.add(id)
  else pending.delete(id)
  if (pending.size > 0) book.pending.set(accountId, pending)
  else book.pending.delete(accountId)
  return book
}

const become =
  (status: Listed["status"]) =>
  (_: unknown, { id }: { readonly id: string }, book: Book): Book => {
    const payment = book.payments.get(id)
    return payment === undefined ? book : put(book, id, { ...payment, status })
  }

const empty = (): Book => ({ payments: new Map(), ofAccount: new Map(), pending: new Map(), references: new Map() })

const restored = ({ payments, references }: typeof Stored.Type): Book => {
  const book: Book = { ...empty(), references: new Map(references) }
  for (const [id, payment] of payments) put(book, id, payment)
  return book
}

export const definition: Projection.Definition<Book> = {
  name: "paymentList",
  version: 1,
  state: Stored.pipe(
    Schema.decodeTo(
      Schema.declare((_): _ is Book => true),
      SchemaTransformation.transform({
        decode: restored,
        encode: ({ payments, references }: Book): typeof Stored.Type => ({ payments: [...payments], references: [...references] })
      })
    )
  ),
  initial: empty,
  ...Projection.of<Book, PaymentEvent>(Payment, {
    PaymentRequested: ({ accountId, gateway, paymentId }, { at, id }, book) =>
      put(book, id, { paymentId, accountId, gateway, requestedAt: at, status: "pending" }),
    PaymentBegun: ({ reference }, { id }, book) => {
      const payment = book.payments.get(id)
      if (payment !== undefined) book.references.set(keyOf(payment.gateway, reference), payment.paymentId)
      return book
    },
    PaymentAuthorized: become("authorized"),
    PaymentCaptured: become("captured"),
    PaymentFailed: become("failed")
  })
}

/** Which payments to list. By default those of all accounts, whatever their status. */
export interface Filter {
  readonly accountId?: string
  readonly status?: Listed["status"]
  /** 100 by default. */
  readonly limit?: number
}

/** A page of the payments of an account. */
export interface Paged {
  /** Only those that are neither captured nor failed. */
  readonly isOpen: boolean
  /** Counted from 1. */
  readonly page: number
  readonly perPage: number
}

const isOpen = ({ status }: Listed): boolean => status === "pending" || status === "authorized"

/** What the list of payments has. Streams by their ids. */
export interface View {
  /** How many payments of an account are pending. */
  readonly pendingOf: (accountId: string) => number
  readonly has: (stream: string) => boolean
}

/** The list cannot be read now. */
export type BookUnread = Projection.ProjectionBehind | Projection.ProjectionStopped | EventStore.StoreUnavailable

const LIMIT = 100

/** Follows the payments in the background until the scope closes. */
export const make = Effect.gen(function* () {
  const book = yield* Projection.make(definition)
  yield* Metrics.lag("payments", book.status)
  return {
    /** The payment that a gateway knows by a reference, also one that another host began a moment ago; undefined if it is none of ours. */
    paymentOf: Effect.fnUntraced(function* (gateway: string, reference: string): Effect.fn.Return<string | undefined, BookUnread> {
      const key = keyOf(gateway, reference)
      const { state } = yield* book.read()
      return state.references.get(key) ?? (yield* book.caughtUp()).state.references.get(key)
    }),
    /** Payments, the newest first. */
    list: ({ accountId, limit = LIMIT, status }: Filter = {}): Effect.Effect<ReadonlyArray<Listed>, BookUnread> =>
      Effect.map(book.caughtUp(), ({ state }) =>
        [...state.payments.values()]
          .filter((payment) => (accountId ?? payment.accountId) === payment.accountId && (status ?? payment.status) === payment.status)
          .reverse()
          .slice(0, limit)
      ),
    /** A page of the payments of an account, the newest first, and how many there are. */
    page: (
      accountId: string,
      paged: Paged
    ): Effect.Effect<{ readonly listed: ReadonlyArray<Listed>; readonly total: number }, BookUnread> =>
      Effect.map(book.caughtUp(), ({ state }) => {
        const own = [...(state.ofAccount.get(accountId) ?? [])].flatMap((id) => state.payments.get(id) ?? [])
        const wanted = (paged.isOpen ? own.filter(isOpen) : own).reverse()
        return { listed: wanted.slice((paged.page - 1) * paged.perPage, paged.page * paged.perPage), total: wanted.length }
      }),
    /** Looks at the list once it has everything that any host wrote before. */
    look: <A>(read: (view: View) => A): Effect.Effect<A, BookUnread> =>
      Effect.map(book.caughtUp(), ({ state: { payments, pending } }) =>
        read({ pendingOf: (accountId) => pending.get(accountId)?.size ?? 0, has: (id) => payments.has(id) })
      ),
    status: book.status
  }
})

export class PaymentBook extends Context.Service<PaymentBook, Effect.Success<typeof make>>()("@millrace/core/payments/PaymentBook") {
  static readonly layer: Layer.Layer<PaymentBook, never, EventStore.EventStore | StateStore.StateStore> = Layer.effect(this, make)
}
