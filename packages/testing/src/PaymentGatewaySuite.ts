/** The contract of payment gateways, as tests that each implementation runs unchanged. */
import { PaymentGateway } from "@millrace/core"
import { Effect, type Layer } from "effect"
import { declare, type Runner } from "./suites/Contract.ts"
import { faults } from "./suites/PaymentGatewayFaults.ts"
import { notices } from "./suites/PaymentGatewayNotices.ts"
import { payments } from "./suites/PaymentGatewayPayments.ts"
import { disputes, refunds } from "./suites/PaymentGatewayReturns.ts"
import { type GatewayContract, PaymentProvider } from "./suites/PaymentProvider.ts"

const PARTS = { payments, refunds, disputes, notices, faults } satisfies Readonly<Record<string, GatewayContract>>

/**
 * Declares the tests of one gateway. `makeLayer` is built anew for each; the waits before it repeats a request should be short. `parts` are
 * those of the contract that it has: all by default. A gateway without a network has neither notices nor faults.
 */
export const paymentGatewaySuite = (
  name: string,
  makeLayer: () => Layer.Layer<PaymentGateway.PaymentGateway | PaymentProvider, unknown>,
  runner: Runner,
  parts: ReadonlyArray<keyof typeof PARTS> = ["payments", "refunds", "disputes", "notices", "faults"]
): void => {
  const subject = Effect.all([PaymentGateway.PaymentGateway, PaymentProvider])
  for (const part of parts) declare(runner, `${name}: a payment gateway (${part})`, PARTS[part], subject, makeLayer)
}
