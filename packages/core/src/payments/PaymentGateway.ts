/**
 * Takes money: a port. What a gateway says of a payment is its *standing*: all that happened to it so far. Whoever learns that something
 * happened asks for the standing anew, so notices may come twice, late, in any order, or never.
 */
import { Context, type Effect, Schema } from "effect"

/** An amount of money in the smallest unit of its currency, such as cents. */
export interface Amount {
  /** Not negative. */
  readonly minor: number
  /** By ISO 4217: `USD`. */
  readonly currency: string
}

/** A payment to begin. */
export interface NewPayment {
  /** Ours: `pay_...`. The key under which the gateway repeats what it did. */
  readonly paymentId: string
  readonly amount: Amount
  /** What the payer reads: `10,000 credits`. */
  readonly description: string
  /**
   * For a payment of a subscription. Without an agreement the payer also agrees to later ones, where the gateway can store that; with one the
   * payment is taken from the stored means, without the payer.
   */
  readonly recurring?: { readonly agreement?: string }
}

/** A payment that was begun. */
export interface Begun {
  /** The gateway's own id of the payment. */
  readonly reference: string
  /** What the payer needs to pay. */
  readonly next:
    | { readonly _tag: "ClientSecret"; readonly clientSecret: string }
    | { readonly _tag: "ApproveUrl"; readonly approveUrl: string }
    | { readonly _tag: "Instruction"; readonly instruction: string }
}

/** A payment that was begun, by its ids. */
export interface Known extends Pick<Begun, "reference"> {
  readonly paymentId: string
}

/**
 * Money that goes back to the payer at the host's will. `pending`: on its way, or waiting for the payer; `succeeded`: the payer has it;
 * `failed`: the payer's bank did not take it, or it was called off. Then the host has the money again, and still owes it.
 */
export interface Refund {
  /** The gateway's id of the refund. */
  readonly reference: string
  readonly minor: number
  readonly status: "pending" | "succeeded" | "failed"
}

/**
 * A chargeback: the payer's bank takes the money back. `open` and `lost`: the host does not have it; `won`: it has it again. An inquiry that
 * takes no money is none. Refunds and disputes together may be more than was captured.
 */
export interface Dispute {
  /** The gateway's id of the dispute. */
  readonly reference: string
  readonly minor: number
  readonly status: "open" | "won" | "lost"
}

/**
 * All that happened to a payment so far. `pending`: the payer has to act, or the gateway decides; `authorized`: the money can be captured,
 * or was asked for and is on its way; `captured`: it came; `failed`: it never will. A standing never goes back to an earlier one of these.
 * Refunds and disputes only of what was captured.
 */
export interface Standing {
  readonly status: "pending" | "authorized" | "captured" | "failed"
  /** Why it failed, why the payer's last try did, or what it waits for, in a sentence for the payer; null otherwise. */
  readonly reason: string | null
  /** What was captured, in the smallest unit; 0 before. */
  readonly captured: number
  /** Once captured: the payer's stored means, by which later payments can be taken. */
  readonly agreement?: string
  readonly refunds: ReadonlyArray<Refund>
  readonly disputes: ReadonlyArray<Dispute>
}

/** The gateway does not answer now, or what it answers is not understood. Whether it did what was asked is unknown: ask for the standing. */
export class GatewayUnavailable extends Schema.TaggedError<GatewayUnavailable>()("GatewayUnavailable", {
  gateway: Schema.String,
  reason: Schema.String
}) {
  override get message(): string {
    return `${this.gateway} does not answer now: ${this.reason}`
  }
}

/** The gateway refused, for good. Nothing happened. */
export class GatewayRefused extends Schema.TaggedError<GatewayRefused>()("GatewayRefused", {
  gateway: Schema.String,
  reason: Schema.String
}) {
  override get message(): string {
    return `${this.gateway} refused the payment: ${this.reason}`
  }
}

/** A notice whose signature is wrong, missing, or too old. */
export class NoticeForged extends Schema.TaggedError<NoticeForged>()("NoticeForged", { reason: Schema.String }) {
  override get message(): string {
    return `The notice was not signed by the gateway: ${this.reason}`
  }
}

/** A notice as it came over HTTP. */
export interface Notice {
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly body: Uint8Array
}

export class PaymentGateway extends Context.Service<
  PaymentGateway,
  {
    /** `manual`, `stripe` or `paypal`. */
    readonly name: string
    /** Begins a payment. Beginning it again, under its id, returns the same. */
    readonly begin: (payment: NewPayment) => Effect.Effect<Begun, GatewayUnavailable | GatewayRefused>
    /** Captures what was authorized, and tells the standing, whatever it is. Capturing it again changes nothing. */
    readonly capture: (payment: Known) => Effect.Effect<Standing, GatewayUnavailable | GatewayRefused>
    /** The standing now. `GatewayRefused` if the reference is none, or of another payment. */
    readonly standing: (payment: Known) => Effect.Effect<Standing, GatewayUnavailable | GatewayRefused>
    /**
     * What the payer of a pending payment needs, told again; undefined if there is nothing to do. A gateway without this tells it only when
     * the payment is begun.
     */
    readonly next?: (
      payment: Known & Pick<NewPayment, "amount">
    ) => Effect.Effect<Begun["next"] | undefined, GatewayUnavailable | GatewayRefused>
    /** Gives money back, and tells the standing. Doing it again under one `refundId` changes nothing. */
    readonly refund: (
      payment: Known,
      refund: { readonly refundId: string; readonly minor: number }
    ) => Effect.Effect<Standing, GatewayUnavailable | GatewayRefused>
    /** The gateway's references of the payments that a notice is about; empty if it is about none of ours. */
    readonly notice: (notice: Notice) => Effect.Effect<ReadonlyArray<string>, NoticeForged | GatewayUnavailable>
  }
>()("@millrace/core/payments/PaymentGateway") {}
