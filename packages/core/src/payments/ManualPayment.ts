/**
 * A payment that people confirm: money that comes by bank transfer, in cash, or on an invoice. An operator who has the money approves it.
 * Stream `manualPayment-{paymentId}`; money in the smallest unit of its currency.
 */
import { type Decider, type Decision, EventCodec } from "@millrace/event-sourcing"
import { Result, Schema } from "effect"
import { Currency, Minor } from "./PaymentEvent.ts"
import type { Refund, Standing } from "./PaymentGateway.ts"

export const ManualPaymentEvent = Schema.TaggedUnion({
  ManualPaymentBegun: { amount: Minor, currency: Currency },
  /** The money is there. */
  ManualPaymentApproved: {},
  /** For the payer to read. */
  ManualPaymentRejected: { reason: Schema.String },
  ManualPaymentRefunded: { refundId: Schema.String, amount: Minor }
})
export type ManualPaymentEvent = typeof ManualPaymentEvent.Type

export interface Begun {
  readonly status: "pending" | "captured" | "failed"
  readonly amount: number
  readonly reason: string | null
  readonly refunds: ReadonlyArray<Pick<Refund, "reference" | "minor">>
}

export type ManualPayment = { readonly status: "absent" } | Begun

const begun = (payment: ManualPayment): Begun => {
  if (payment.status === "absent") throw new Error("A manual payment is begun first")
  return payment
}

const pending = (payment: ManualPayment): Begun => {
  const before = begun(payment)
  if (before.status !== "pending") throw new Error("A manual payment is approved or rejected once")
  return before
}

export const ManualPayment: Decider<ManualPayment, ManualPaymentEvent> = {
  category: "manualPayment",
  codec: EventCodec.make(ManualPaymentEvent),
  initial: { status: "absent" },
  evolve: (payment, event) => {
    switch (event._tag) {
      case "ManualPaymentBegun":
        if (payment.status !== "absent") throw new Error("A manual payment is begun once")
        return { status: "pending", amount: event.amount, reason: null, refunds: [] }
      case "ManualPaymentApproved":
        return { ...pending(payment), status: "captured" }
      case "ManualPaymentRejected":
        return { ...pending(payment), status: "failed", reason: event.reason }
      case "ManualPaymentRefunded": {
        const before = begun(payment)
        return { ...before, refunds: [...before.refunds, { reference: event.refundId, minor: event.amount }] }
      }
    }
  }
}

/** All that happened to it so far. */
export const standingOf = ({ amount, reason, refunds, status }: Begun): Standing => ({
  status,
  reason,
  captured: status === "captured" ? amount : 0,
  // Whoever records it has given the money back
  refunds: refunds.map((refund) => ({ ...refund, status: "succeeded" })),
  disputes: []
})

/** The other was decided before. */
export class AlreadyDecided extends Schema.TaggedError<AlreadyDecided>()("AlreadyDecided", {
  decided: Schema.Literals(["approved", "rejected"])
}) {
  override get message(): string {
    return `The payment was ${this.decided} already`
  }
}

/** No manual payment has this id. */
export class NotManual extends Schema.TaggedError<NotManual>()("NotManual", { paymentId: Schema.String }) {
  override get message(): string {
    return `There is no manual payment ${this.paymentId}`
  }
}

type Decided<E = never> = Decision<ManualPaymentEvent, E>

export const begin =
  (amount: number, currency: string) =>
  (payment: ManualPayment): Decided =>
    Result.succeed(payment.status === "absent" ? [{ _tag: "ManualPaymentBegun", amount, currency }] : [])

/** The money is there. Approving again changes nothing. */
export const approve =
  (paymentId: string) =>
  (payment: ManualPayment): Decided<AlreadyDecided | NotManual> => {
    if (payment.status === "absent") return Result.fail(new NotManual({ paymentId }))
    if (payment.status === "failed") return Result.fail(new AlreadyDecided({ decided: "rejected" }))
    return Result.succeed(payment.status === "pending" ? [{ _tag: "ManualPaymentApproved" }] : [])
  }

/** The money will not come. Rejecting again changes nothing. */
export const reject =
  (paymentId: string, reason: string) =>
  (payment: ManualPayment): Decided<AlreadyDecided | NotManual> => {
    if (payment.status === "absent") return Result.fail(new NotManual({ paymentId }))
    if (payment.status === "captured") return Result.fail(new AlreadyDecided({ decided: "approved" }))
    return Result.succeed(payment.status === "pending" ? [{ _tag: "ManualPaymentRejected", reason }] : [])
  }

/** Records money that goes back, once under each id, and never more than came. */
export const refund =
  (refundId: string, amount: number) =>
  (payment: ManualPayment): Decided => {
    if (payment.status !== "captured" || payment.refunds.some(({ reference }) => reference === refundId)) return Result.succeed([])
    const left = payment.refunds.reduce((left, { minor }) => left - minor, payment.amount)
    return Result.succeed(amount > 0 && amount <= left ? [{ _tag: "ManualPaymentRefunded", refundId, amount }] : [])
  }
