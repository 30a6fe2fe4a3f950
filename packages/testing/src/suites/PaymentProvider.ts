/** What the contract of payment gateways needs beside the gateway: the payer, the payer's bank, and the gateway's own pages. */
import type { PaymentGateway } from "@millrace/core"
import { Context, type Effect } from "effect"
import type { Contract } from "./Contract.ts"

/**
 * How a gateway fails a request. `away`: it answers with an error and does nothing. `busy`: it asks to be asked again. `cut`: it closes the
 * connection and does nothing. The others happen after it did what was asked: `lost`: it closes the connection; `half`: half a body;
 * `nonsense`: JSON of another shape; `text`: no JSON.
 */
export type Fault = "away" | "busy" | "cut" | "lost" | "half" | "nonsense" | "text"

export const FAULTS: ReadonlyArray<Fault> = ["away", "busy", "cut", "lost", "half", "nonsense", "text"]

/** Acts at a gateway in a test. References are those of payments. */
export class PaymentProvider extends Context.Service<
  PaymentProvider,
  {
    /** The payer pays; the money can be captured. */
    readonly approve: (reference: string) => Effect.Effect<void>
    /** The payer tries to pay with a means that is declined: at once, or when it is captured. */
    readonly decline: (reference: string) => Effect.Effect<void>
    /** The payment is called off before it is captured. */
    readonly cancel: (reference: string) => Effect.Effect<void>
    /** An operator gives money back on the gateway's pages. */
    readonly refund: (reference: string, minor: number) => Effect.Effect<void>
    /** The payer's bank does not take a refund, by the gateway's id of it. */
    readonly failRefund: (refund: string) => Effect.Effect<void>
    /** The payer's bank takes money back. Returns the dispute's id. */
    readonly dispute: (reference: string, minor: number) => Effect.Effect<string>
    /** Ends a dispute, or reverses a loss by an appeal. */
    readonly close: (dispute: string, status: "won" | "lost") => Effect.Effect<void>
    /** Notices that were sent since the last call, each as it came over HTTP. */
    readonly notices: Effect.Effect<ReadonlyArray<PaymentGateway.Notice>>
    /** A notice that somebody else signed. */
    readonly forge: (notice: PaymentGateway.Notice) => PaymentGateway.Notice
    /** How many payments, captures and refunds were made in all. */
    readonly made: Effect.Effect<{ readonly payments: number; readonly captures: number; readonly refunds: number }>
    /** The next requests fail so, one after the other; `undefined`: not. */
    readonly fail: (faults: ReadonlyArray<Fault | undefined>) => Effect.Effect<void>
    /** How many requests were made so far. */
    readonly requests: Effect.Effect<number>
    /** What must not appear in errors and logs. */
    readonly secrets: ReadonlyArray<string>
  }
>()("@millrace/testing/suites/PaymentProvider") {}

export type GatewayContract = Contract<readonly [gateway: PaymentGateway.PaymentGateway["Service"], provider: PaymentProvider["Service"]]>
