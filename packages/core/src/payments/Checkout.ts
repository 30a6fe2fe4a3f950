/**
 * Makes payments at the gateway of this host: requests and begins them, captures what was authorized, asks for what became of them, and
 * gives money back. Whatever a gateway says is written by one decision, and the credits follow at once. If a process stops in between,
 * `PaymentUpkeep` continues.
 */
import type { Aggregate, Decide, EventStore, StateStore } from "@millrace/event-sourcing"
import { Context, Duration, Effect, Layer, Option, Schema } from "effect"
import { toText } from "./Amount.ts"
import * as Packs from "./Packs.ts"
import * as Payment from "./Payment.ts"
import { type BookUnread, type Filter, type Listed, make as makeBook, type Paged } from "./PaymentBook.ts"
import { Currency } from "./PaymentEvent.ts"
import {
  type Begun,
  type GatewayRefused,
  type GatewayUnavailable,
  type Known,
  type Notice,
  type NoticeForged,
  PaymentGateway,
  type Standing
} from "./PaymentGateway.ts"
import { Payments } from "./Payments.ts"
import * as PendingLimit from "./PendingLimit.ts"

/** This host takes no payments, or the payment is of a gateway that this host is not set up for. */
export class NoGateway extends Schema.TaggedError<NoGateway>()("NoGateway", { gateway: Schema.NullOr(Schema.String) }) {
  override get message(): string {
    return this.gateway === null ? "This host takes no payments" : `This host takes no payments by ${this.gateway}`
  }
}

/** There is no such payment, or it is another account's. */
export class PaymentNotFound extends Schema.TaggedError<PaymentNotFound>()("PaymentNotFound", { paymentId: Schema.String }) {
  override get message(): string {
    return `There is no payment ${this.paymentId}`
  }
}

/** More than is left of it was to be given back, or it was not captured. `refundable` in the smallest unit of its currency. */
export class RefundTooLarge extends Schema.TaggedError<RefundTooLarge>()("RefundTooLarge", {
  paymentId: Schema.String,
  refundable: Schema.Int,
  currency: Currency
}) {
  override get message(): string {
    return `At most ${toText({ minor: this.refundable, currency: this.currency })} ${this.currency} of the payment ${this.paymentId} can be given back`
  }
}

/** A payment to request. */
export interface NewOrder extends Omit<Payment.Terms, "expiresAt" | "gateway"> {
  /** What the payer reads: `10,000 credits`. */
  readonly description: string
}

/** A payment that was requested, with what its payer needs; without it once it is not pending. */
export interface Requested {
  readonly order: Payment.Order
  readonly next: Begun["next"] | undefined
}

type GatewayFailure = GatewayUnavailable | GatewayRefused

export interface CheckoutOptions extends Packs.Terms {
  /** How long a payment may be pending before it has failed: a day by default. */
  readonly lifetime?: Duration.Input
  /** How many payments of an account may be pending at a time: 20 by default. */
  readonly pendingLimit?: number
}

const LIFETIME = "1 day"
const PENDING_LIMIT = 20

export class Checkout extends Context.Service<
  Checkout,
  {
    /** The gateway's name; null where this host takes no payments. */
    readonly gateway: string | null
    /** What a pack of credits costs and brings at this host. */
    readonly offer: (pack: Packs.Pack) => Packs.Offer
    /** Payments made here, the newest first, whichever gateway takes them. */
    readonly list: (filter?: Filter) => Effect.Effect<ReadonlyArray<Listed>, NoGateway | BookUnread>
    /** A page of the payments of an account, the newest first, and how many there are. */
    readonly page: (
      accountId: string,
      paged: Paged
    ) => Effect.Effect<
      { readonly orders: ReadonlyArray<Listed & { readonly order: Payment.Order }>; readonly total: number },
      NoGateway | BookUnread | Aggregate.Failure
    >
    /** What the payer of a pending payment needs, told again. Undefined where nothing is to be done, or the gateway does not tell it now. */
    readonly next: (order: Payment.Order) => Effect.Effect<Begun["next"] | undefined>
    /** Requests a payment and begins it. Requesting it again, under its id, returns the same. */
    readonly request: (
      order: NewOrder,
      metadata?: Aggregate.Metadata
    ) => Effect.Effect<Requested, NoGateway | GatewayFailure | Aggregate.Failure>
    /** The same for an account that asks by itself: refused while too many of its payments are pending. */
    readonly buy: (
      order: NewOrder,
      metadata?: Aggregate.Metadata
    ) => Effect.Effect<Requested, PendingLimit.TooManyPending | NoGateway | GatewayFailure | Aggregate.Failure | BookUnread>
    /**
     * Captures a payment of an account that was authorized, and grants its credits. Returns it as it stands: also where it is still pending, or
     * has failed. Capturing again changes nothing.
     */
    readonly capture: (
      accountId: string,
      paymentId: string
    ) => Effect.Effect<Payment.Order, PaymentNotFound | NoGateway | GatewayUnavailable | Aggregate.Failure>
    /** Asks the gateway what became of a payment, and does what follows from it. */
    readonly ask: (paymentId: string) => Effect.Effect<Payment.Order, PaymentNotFound | NoGateway | GatewayFailure | Aggregate.Failure>
    /** Asks, and fails a payment that nobody paid in time. */
    readonly lapse: (paymentId: string) => Effect.Effect<Payment.Order, PaymentNotFound | NoGateway | GatewayFailure | Aggregate.Failure>
    /**
     * Gives money back: the whole rest by default. `minor` in the smallest unit. Doing it again under one `refundId` changes nothing; it is
     * refused once less than that is left.
     */
    readonly refund: (
      paymentId: string,
      refund: { readonly refundId: string; readonly minor?: number },
      metadata?: Aggregate.Metadata
    ) => Effect.Effect<Payment.Order, PaymentNotFound | RefundTooLarge | NoGateway | GatewayFailure | Aggregate.Failure>
    /** Takes a notice of the gateway: asks for the payments that it is about. How many of them are ours. */
    readonly notice: (
      notice: Notice
    ) => Effect.Effect<number, NoticeForged | PaymentNotFound | NoGateway | GatewayFailure | Aggregate.Failure | BookUnread>
  }
>()("@millrace/core/payments/Checkout") {
  /** A host that is provided with no `PaymentGateway` takes no payments. */
  static readonly layer = (
    options: CheckoutOptions = {}
  ): Layer.Layer<Checkout, never, Payments | EventStore.EventStore | StateStore.StateStore> =>
    Layer.effect(
      Checkout,
      Effect.flatMap(
        Effect.serviceOption(PaymentGateway),
        Option.match({ onNone: () => Effect.succeed(withoutGateway(options)), onSome: (gateway) => make(gateway, options) })
      )
    )
}

const withoutGateway = (options: CheckoutOptions): Checkout["Service"] => {
  const missing = () => Effect.fail(new NoGateway({ gateway: null }))
  const offer = Packs.offer(options)
  return {
    gateway: null,
    offer,
    list: missing,
    page: missing,
    next: () => Effect.undefined,
    request: missing,
    buy: missing,
    capture: missing,
    ask: missing,
    lapse: missing,
    refund: missing,
    notice: missing
  }
}

type Execute = (
  paymentId: string,
  decide: Decide<Payment.Payment, Payment.PaymentEvent>,
  metadata?: Aggregate.Metadata
) => Effect.Effect<Aggregate.Committed<Payment.Payment, Payment.PaymentEvent>, Aggregate.Failure>

/** Requests payments and begins them. `lifetime` in milliseconds. */
const requesting = (gateway: PaymentGateway["Service"], lifetime: number, execute: Execute) => {
  const requested = (terms: NewOrder, metadata?: Aggregate.Metadata) =>
    Effect.flatMap(
      execute(terms.paymentId, Payment.request({ ...terms, gateway: gateway.name, lifetime }), metadata),
      ({ state: { order } }) => (order === undefined ? Effect.die(new Error("A payment that was requested exists")) : Effect.succeed(order))
    )

  /** Begins a payment at the gateway, unless it is not pending any more. */
  const beginning = Effect.fnUntraced(function* (order: Payment.Order, description: string, metadata?: Aggregate.Metadata) {
    const { paymentId } = order
    if (order.gateway !== gateway.name) return yield* new NoGateway({ gateway: order.gateway })
    if (order.status !== "pending") return { order, next: undefined }
    const amount = { minor: order.amount, currency: order.currency }
    const { next, reference } = yield* gateway
      .begin({ paymentId, amount, description, ...(order.recurring === undefined ? {} : { recurring: order.recurring }) })
      .pipe(Effect.tapErrorTag("GatewayRefused", ({ reason }) => execute(paymentId, Payment.refuse(reason), metadata)))
    const begun = (yield* execute(paymentId, Payment.begun(reference), metadata)).state.order
    return { order: begun ?? order, next }
  })

  return { requested, beginning }
}

const make = Effect.fnUntraced(function* (gateway: PaymentGateway["Service"], options: CheckoutOptions) {
  const { lifetime = LIFETIME, pendingLimit = PENDING_LIMIT } = options
  const payments = yield* Payments
  const book = yield* makeBook
  const limit = PendingLimit.make(pendingLimit, book.look)

  const ordered = Effect.fnUntraced(function* (paymentId: string, accountId?: string) {
    const order = Payment.isId(paymentId) ? yield* payments.order(paymentId) : undefined
    if (order === undefined || (accountId !== undefined && order.accountId !== accountId)) return yield* new PaymentNotFound({ paymentId })
    if (order.gateway !== gateway.name) return yield* new NoGateway({ gateway: order.gateway })
    return order
  })

  const execute = (paymentId: string, decide: Decide<Payment.Payment, Payment.PaymentEvent>, metadata?: Aggregate.Metadata) =>
    payments.execute(Payment.paymentIdOf(paymentId), decide, metadata)

  /** Writes what is new of a standing, brings the account up to date, and gives back what nothing could be granted for. */
  const observed = Effect.fnUntraced(function* (order: Payment.Order, known: Known, standing: Standing, metadata?: Aggregate.Metadata) {
    const { paymentId } = order
    yield* execute(paymentId, Payment.observe(standing), { $correlationId: paymentId, ...metadata })
    const settled = (yield* payments.settle(paymentId)) ?? order
    const left = settled.captured - Payment.returned(settled)
    if (settled.notGranted === undefined || left === 0) return settled
    const back = yield* gateway.refund(known, { refundId: `${paymentId}_not_granted`, minor: left })
    return (yield* execute(paymentId, Payment.observe(back))).state.order ?? settled
  })

  const asked = (order: Payment.Order): Effect.Effect<Payment.Order, GatewayFailure | Aggregate.Failure> => {
    const known = knownOf(order)
    // Before it was begun nobody can pay it
    return known === undefined ? Effect.succeed(order) : Effect.flatMap(gateway.standing(known), (now) => observed(order, known, now))
  }

  const captured = Effect.fnUntraced(function* (order: Payment.Order) {
    const known = knownOf(order)
    if (known === undefined || order.status !== "authorized") return order
    return yield* observed(order, known, yield* gateway.capture(known))
  })

  const { beginning, requested } = requesting(gateway, Duration.toMillis(lifetime), execute)

  return Checkout.of({
    gateway: gateway.name,
    offer: Packs.offer(options),
    list: book.list,
    page: paging(book, payments),
    next: nextAt(gateway),
    request: Effect.fn("Checkout.request")(function* (order: NewOrder, metadata?: Aggregate.Metadata) {
      return yield* beginning(yield* requested(order, metadata), order.description, metadata)
    }),
    buy: Effect.fn("Checkout.buy")(function* (order: NewOrder, metadata?: Aggregate.Metadata) {
      const { accountId, description, paymentId } = order
      const stream = Payment.paymentIdOf(paymentId)
      // Requested before, under its id, it has its place already
      const admitted = (yield* payments.order(paymentId)) === undefined ? limit.admit(accountId, stream) : Effect.void
      const made = yield* Effect.onError(Effect.andThen(admitted, requested(order, metadata)), () => limit.release(stream))
      return yield* beginning(made, description, metadata)
    }),
    capture: Effect.fn("Checkout.capture")(function* (accountId: string, paymentId: string) {
      const order = yield* ordered(paymentId, accountId)
      return yield* Effect.flatMap(asked(order), captured).pipe(
        // A gateway that refuses has changed nothing, or has told the outcome before: what is known stands
        Effect.catchTag("GatewayRefused", () => Effect.map(payments.order(paymentId), (now) => now ?? order))
      )
    }),
    ask: Effect.fn("Checkout.ask")(function* (paymentId: string) {
      return yield* asked(yield* ordered(paymentId))
    }),
    lapse: Effect.fn("Checkout.lapse")(function* (paymentId: string) {
      const order = yield* asked(yield* ordered(paymentId))
      if (order.status !== "pending") return order
      return (yield* execute(paymentId, Payment.lapse)).state.order ?? order
    }),
    refund: Effect.fn("Checkout.refund")(function* (
      paymentId: string,
      { minor, refundId }: { readonly refundId: string; readonly minor?: number },
      metadata?: Aggregate.Metadata
    ) {
      const order = yield* asked(yield* ordered(paymentId))
      const known = knownOf(order)
      const refundable = order.captured - Payment.returned(order)
      const back = minor ?? refundable
      if (known === undefined || back > refundable || back <= 0)
        return yield* new RefundTooLarge({ paymentId, refundable, currency: order.currency })
      return yield* observed(order, known, yield* gateway.refund(known, { refundId, minor: back }), metadata)
    }),
    notice: Effect.fn("Checkout.notice")(function* (notice: Notice) {
      const references = yield* gateway.notice(notice)
      const found = yield* Effect.forEach(references, (reference) => book.paymentOf(gateway.name, reference))
      const ours = found.filter((paymentId) => paymentId !== undefined)
      for (const paymentId of ours) yield* Effect.flatMap(ordered(paymentId), asked)
      return ours.length
    })
  })
})

const paging = (book: Effect.Success<typeof makeBook>, payments: Payments["Service"]) =>
  Effect.fn("Checkout.page")(function* (accountId: string, paged: Paged) {
    const { listed, total } = yield* book.page(accountId, paged)
    const orders = yield* Effect.forEach(listed, (payment) =>
      Effect.map(payments.order(payment.paymentId), (order) => (order === undefined ? [] : [{ ...payment, order }]))
    )
    return { orders: orders.flat(), total }
  })

const nextAt = (gateway: PaymentGateway["Service"]) =>
  Effect.fn("Checkout.next")(function* (order: Payment.Order) {
    const known = knownOf(order)
    if (known === undefined || order.status !== "pending" || order.gateway !== gateway.name) return undefined
    const amount = { minor: order.amount, currency: order.currency }
    return yield* Effect.orElseSucceed(gateway.next?.({ ...known, amount }) ?? Effect.undefined, () => undefined)
  })

const knownOf = ({ paymentId, reference }: Payment.Order): Known | undefined =>
  reference === undefined ? undefined : { paymentId, reference }
