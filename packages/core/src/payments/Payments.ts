/**
 * Payments and what they buy: each buys credits once, for one account. A payment made elsewhere is claimed for an account before its credits
 * are granted. If a process stops in between, the same grant, repeated, completes it. Of concurrent claims for several accounts, one stands.
 * The credits of a payment made here follow from its stream: see `settle`.
 *
 * Older logs have grants without a claim. They come before the first claim, so only that part of the log is searched.
 */
import { Aggregate, type EventStore } from "@millrace/event-sourcing"
import { Context, Effect, Layer, Result, Schema } from "effect"
import * as Credits from "../Credits.ts"
import { lotIdOfPayment } from "../Ids.ts"
import * as Decisions from "../ledger/Decisions.ts"
import * as History from "../ledger/History.ts"
import { type Committed, Ledger } from "../ledger/Ledger.ts"
import type { LotSource } from "../ledger/Lots.ts"
import { Invoices } from "./Invoices.ts"
import * as Payment from "./Payment.ts"

/** The payment bought credits for another account. */
export class PaymentUsed extends Schema.TaggedError<PaymentUsed>()("PaymentUsed", { accountId: Schema.String }) {
  override get message(): string {
    return `That payment bought credits for ${this.accountId} already`
  }
}

/** The payment is made here, so its credits follow its capture, and nobody grants them by hand. */
export class PaymentMadeHere extends Schema.TaggedError<PaymentMadeHere>()("PaymentMadeHere", { paymentId: Schema.String }) {
  override get message(): string {
    return `The payment ${this.paymentId} is made here: its credits are granted when it is captured`
  }
}

/** What a payment buys. `paymentRef` names the payment where it was made; `amount` in thousandths of a credit. */
export interface PaidGrant extends Omit<Decisions.Grant, "lotId" | "source" | "paymentRef"> {
  readonly source: Extract<LotSource, "topup" | "subscription">
  readonly paymentRef: string
}

type GrantRefused = Decisions.AccountNotFound | Decisions.AccountClosed | Decisions.BalanceTooLarge

export class Payments extends Context.Service<
  Payments,
  {
    /**
     * Grants what a payment made elsewhere bought. The same payment again grants nothing more to its account, and is refused for any other.
     * An account that cannot be granted anything does not claim the payment.
     */
    readonly grant: (
      accountId: string,
      grant: PaidGrant,
      metadata?: Aggregate.Metadata
    ) => Effect.Effect<Committed, PaymentUsed | PaymentMadeHere | GrantRefused | Aggregate.Failure>
    /** The account that a payment was claimed for, or that it is made for; undefined before. */
    readonly owner: (paymentRef: string) => Effect.Effect<string | undefined, Aggregate.Failure>
    /** Decides on a payment made here. */
    readonly execute: Aggregate.Aggregate<Payment.Payment, Payment.PaymentEvent>["execute"]
    /** A payment made here, by its id; undefined if there is none. */
    readonly order: (paymentId: string) => Effect.Effect<Payment.Order | undefined, Aggregate.Failure>
    /** A payment made here, by the id of its stream. */
    readonly orderIn: (stream: string) => Effect.Effect<Payment.Order | undefined, Aggregate.Failure>
    /**
     * Brings an account up to date with a payment made here: grants the lot and the bonus once it is captured, and makes the changes that
     * follow from refunds and disputes. Then it issues the invoice and the credit notes that follow. Each happens once, however often and
     * wherever this is called. Returns the payment.
     */
    readonly settle: (paymentId: string) => Effect.Effect<Payment.Order | undefined, Aggregate.Failure>
    /** Payments whose streams this host cannot read: for `/ready`. */
    readonly refused: () => ReadonlyArray<Aggregate.StreamRefused>
  }
>()("@millrace/core/payments/Payments") {
  static readonly layer: Layer.Layer<Payments | Invoices, never, Ledger | EventStore.EventStore> = Layer.effect(
    Payments,
    Effect.suspend(() => make)
  ).pipe(Layer.provideMerge(Invoices.layer))
}

const make = Effect.gen(function* () {
  const ledger = yield* Ledger
  const invoices = yield* Invoices
  const { execute, read, refused } = yield* Aggregate.make(Payment.Payment)
  const context = yield* Effect.context<EventStore.EventStore>()
  const grantedUnclaimed = (lotId: string) =>
    Effect.provideContext(History.accountOfLot(lotId, { before: Payment.Payment.category }), context)
  const orderIn = (stream: string) => Effect.map(read(stream), ({ state }) => state.order)
  const order = (paymentId: string) => orderIn(Payment.paymentIdOf(paymentId))

  const owner = Effect.fn("Payments.owner")(function* (paymentRef: string) {
    const { accountId } = (yield* read(Payment.paymentIdOf(paymentRef))).state
    return accountId ?? (yield* grantedUnclaimed(lotIdOfPayment(paymentRef)))
  })

  const grant = Effect.fn("Payments.grant")(function* (accountId: string, grant: PaidGrant, metadata?: Aggregate.Metadata) {
    const { paymentRef } = grant
    const lotId = lotIdOfPayment(paymentRef)
    const decide = Decisions.grant({ ...grant, lotId })
    const { at, state } = yield* ledger.read(accountId)
    const possible = decide(state, at)
    if (Result.isFailure(possible)) return yield* possible.failure
    const first = (yield* owner(paymentRef)) ?? accountId
    const claim = Payment.claim({ _tag: "PaymentClaimed", accountId: first, lotId })
    const claimed = yield* execute(Payment.paymentIdOf(paymentRef), claim, metadata)
    if (claimed.state.order !== undefined) return yield* new PaymentMadeHere({ paymentId: paymentRef })
    const owns = claimed.state.accountId ?? first
    if (owns !== accountId) return yield* new PaymentUsed({ accountId: owns })
    return yield* ledger.execute(accountId, decide, metadata)
  })

  const credited = Effect.fnUntraced(function* (paymentId: string) {
    const order = (yield* read(Payment.paymentIdOf(paymentId))).state.order
    if (order?.status !== "captured") return order
    const { accountId, changes } = order
    const lotId = lotIdOfPayment(paymentId)
    const metadata = { $correlationId: paymentId }
    if (order.notGranted === undefined) {
      const refused = yield* ledger.execute(accountId, Decisions.grantPaid(...lotsOf(order)), metadata).pipe(
        Effect.as(undefined),
        Effect.catchTag(["AccountNotFound", "AccountClosed", "BalanceTooLarge"], ({ message }) => Effect.succeed(message))
      )
      if (refused !== undefined) return (yield* execute(Payment.paymentIdOf(paymentId), Payment.notGranted(refused), metadata)).state.order
    }
    if (changes.length > 0) yield* ledger.execute(accountId, Decisions.followPayment(lotId, changes, ledger.adjustmentLifetime), metadata)
    return order
  })

  const settle = Effect.fn("Payments.settle")(function* (paymentId: string) {
    const order = yield* credited(paymentId)
    if (order?.status === "captured") yield* invoices.issue(paymentId)
    return order
  })

  return Payments.of({ grant, owner, execute, order, orderIn, settle, refused })
})

/** The lot that a captured payment buys, and that of its bonus. */
export const lotsOf = (order: Payment.Order): readonly [paid: Decisions.Grant, bonus: Decisions.Grant] => {
  const { bonus, captured, amount, paymentId, purchase } = order
  const paid = { lotId: lotIdOfPayment(paymentId), amount: Payment.granted(order), paymentRef: paymentId }
  const expiring = purchase._tag === "Period" ? { expiresAt: purchase.until } : {}
  return [
    { ...paid, source: purchase._tag === "Pack" ? "topup" : "subscription", ...expiring },
    { lotId: Payment.bonusLotIdOf(paymentId), amount: captured >= amount ? bonus : Credits.zero, source: "promotion", ...expiring }
  ]
}
