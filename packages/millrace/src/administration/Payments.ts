/** Acts on payments. Money in units of its currency, amounts in credits, times as `Date`s. */
import { Amount, Checkout, Credits, ManualGateway, type Millrace, Payment, PaymentNotFound, Payments } from "@millrace/core"
import type { Aggregate, EventStore } from "@millrace/event-sourcing"
import { Clock, Effect } from "effect"
import { type Failure, fail } from "../Failure.ts"
import { resolve } from "./Accounts.ts"

/** An act on the payments of a store. */
export type PaymentAct<A> = Effect.Effect<
  A,
  Failure,
  Checkout | ManualGateway.ManualPayments | Millrace.Administration | EventStore.EventStore
>

/** A payment as an administrator sees it. */
export interface ShownPayment {
  readonly payment: string
  readonly account: string
  readonly status: Payment.Status
  /** In units of the currency. */
  readonly amount: number
  readonly currency: string
  readonly credits: number
  readonly bonus: number
  readonly gateway: string
  /** The gateway's own id; null before the gateway knows it. */
  readonly reference: string | null
  /** Why it failed, or why nothing was granted for it. */
  readonly reason: string | null
  /** Money that went back: refunds that did not fail, and disputes that were not won. */
  readonly returned: number
  /** Refunds that did not reach the payer: the host has their money again. */
  readonly refundsFailed: number
  /** Disputes that are open. */
  readonly disputes: number
  /** When it fails if nobody pays it. */
  readonly expiresAt: Date
}

export interface PaymentFilter {
  readonly account?: string
  readonly status?: "pending" | "authorized" | "captured" | "failed"
  /** 100 by default. */
  readonly limit?: number
}

const shownOf = (order: Payment.Order): ShownPayment => {
  const inUnits = (minor: number) => Amount.toDecimal({ minor, currency: order.currency })
  return {
    payment: order.paymentId,
    account: order.accountId,
    status: Payment.statusOf(order),
    amount: inUnits(order.amount),
    currency: order.currency,
    credits: Credits.toDecimal(order.credits),
    bonus: Credits.toDecimal(order.bonus),
    gateway: order.gateway,
    reference: order.reference ?? null,
    reason: order.reason ?? order.notGranted ?? null,
    returned: inUnits(Payment.returned(order)),
    refundsFailed: order.refunds.filter(({ failed }) => failed === true).length,
    disputes: order.disputes.filter(({ status }) => status === "open").length,
    expiresAt: new Date(order.expiresAt)
  }
}

/** A payment made here. */
export const show = (payment: string): PaymentAct<ShownPayment> =>
  Effect.flatMap(
    Payments.use((payments) => payments.order(payment)),
    (order) => (order === undefined ? Effect.fail(new PaymentNotFound({ paymentId: payment })) : Effect.succeed(shownOf(order)))
  )

/** Payments, the newest first. */
export const list = ({ account, limit, status }: PaymentFilter = {}): PaymentAct<ReadonlyArray<ShownPayment>> =>
  Effect.gen(function* () {
    const of = account === undefined ? {} : { accountId: yield* resolve(account) }
    const filter = { ...of, ...(limit === undefined ? {} : { limit }), ...(status === undefined ? {} : { status }) }
    const found = yield* Checkout.use((checkout) => checkout.list(filter))
    return yield* Effect.forEach(found, ({ paymentId }) => show(paymentId))
  })

/** Asks the gateway what became of a payment, and does what follows from it. */
export const check = (payment: string): PaymentAct<ShownPayment> =>
  Effect.map(
    Checkout.use((checkout) => checkout.ask(payment)),
    shownOf
  )

/** The money of a manual payment is there: grants its credits. Approving again changes nothing. */
export const approve = (payment: string, metadata: Aggregate.Metadata): PaymentAct<ShownPayment> =>
  Effect.andThen(
    ManualGateway.ManualPayments.use((manual) => manual.approve(payment, metadata)),
    check(payment)
  )

/** The money of a manual payment will not come. `reason` is for the payer. */
export const reject = (payment: string, reason: string | undefined, metadata: Aggregate.Metadata): PaymentAct<ShownPayment> =>
  Effect.andThen(
    ManualGateway.ManualPayments.use((manual) => manual.reject(payment, reason, metadata)),
    check(payment)
  )

/** Gives money back: the whole rest by default, or `amount` in units of the currency. Its credits are taken back in proportion. */
export const refund = (
  payment: string,
  { amount, id }: { readonly amount?: number | undefined; readonly id?: string | undefined },
  metadata: Aggregate.Metadata
): PaymentAct<ShownPayment> =>
  Effect.gen(function* () {
    const { currency } = yield* show(payment)
    const minor = amount === undefined ? undefined : Amount.fromDecimal(amount, currency)
    if (amount !== undefined && minor === undefined) return yield* fail(`${amount} is no amount of ${currency}`)
    const refundId = id ?? `${payment}_${yield* Clock.currentTimeMillis}`
    const refund = { refundId, ...(minor === undefined ? {} : { minor }) }
    return shownOf(yield* Checkout.use((checkout) => checkout.refund(payment, refund, metadata)))
  })
