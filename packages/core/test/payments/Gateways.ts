/** What can happen to a payment at its gateway, as a script, and a plain statement of what follows from it. */
import { Credits } from "@millrace/core"
import { Effect, Layer } from "effect"
import fc from "fast-check"
import type { Terms } from "../../src/payments/Payment.ts"
import {
  type Dispute,
  GatewayRefused,
  GatewayUnavailable,
  PaymentGateway,
  type Refund,
  type Standing
} from "../../src/payments/PaymentGateway.ts"

export const PAYMENT = "pay_01M7YKD46JCP6VGMKADN3JSPJP"

export const terms: Terms = {
  paymentId: PAYMENT,
  accountId: "acc_1",
  gateway: "scripted",
  amount: 1_000,
  currency: "USD",
  purchase: { _tag: "Pack", pack: "10" },
  credits: Credits.of(10_000_000),
  bonus: Credits.of(500_000),
  expiresAt: 86_400_000
}

export const PENDING: Standing = { status: "pending", reason: null, captured: 0, refunds: [], disputes: [] }

/** Something that happens after the capture: a refund, or a step of a dispute. */
type Happening =
  | { readonly _tag: "refund"; readonly minor: number }
  | { readonly _tag: "failRefund"; readonly which: number }
  | { readonly _tag: "dispute"; readonly minor: number }
  | { readonly _tag: "close"; readonly which: number; readonly status: "won" | "lost" }

const happening: fc.Arbitrary<Happening> = fc.oneof(
  fc.record({ _tag: fc.constant("refund" as const), minor: fc.integer({ min: 1, max: 1_000 }) }),
  fc.record({ _tag: fc.constant("failRefund" as const), which: fc.nat(5) }),
  fc.record({ _tag: fc.constant("dispute" as const), minor: fc.integer({ min: 1, max: 1_000 }) }),
  fc.record({ _tag: fc.constant("close" as const), which: fc.nat(5), status: fc.constantFrom("won" as const, "lost" as const) })
)

/** The standings of one payment, from first to last. */
export const life: fc.Arbitrary<ReadonlyArray<Standing>> = fc
  .record({
    authorized: fc.boolean(),
    end: fc.constantFrom("captured", "captured", "captured", "failed", "pending"),
    captured: fc.constantFrom(1_000, 1_000, 1_000, 1_100, 700, 3),
    later: fc.array(happening, { maxLength: 8 })
  })
  .map(({ authorized, captured, end, later }) => {
    const standings: Array<Standing> = [PENDING]
    if (authorized) standings.push({ ...PENDING, status: "authorized" })
    if (end === "failed") standings.push({ ...PENDING, status: "failed", reason: "The card was declined" })
    if (end !== "captured") return standings
    let now: Standing = { ...PENDING, status: "captured", captured }
    standings.push(now)
    later.forEach((happening, i) => {
      now = happened(now, happening, i)
      standings.push(now)
    })
    return standings
  })

const happened = (now: Standing, happening: Happening, i: number): Standing => {
  switch (happening._tag) {
    case "refund":
      return {
        ...now,
        refunds: [...now.refunds, { reference: `re_${i}`, minor: happening.minor, status: "succeeded" }] satisfies ReadonlyArray<Refund>
      }
    case "failRefund": {
      const which = now.refunds[happening.which % Math.max(1, now.refunds.length)]?.reference
      const fail = (refund: Refund): Refund => (refund.reference === which ? { ...refund, status: "failed" } : refund)
      return { ...now, refunds: now.refunds.map(fail) }
    }
    case "dispute":
      return { ...now, disputes: [...now.disputes, { reference: `dp_${i}`, minor: happening.minor, status: "open" }] }
    case "close": {
      // A loss is reversed by an appeal
      const open = now.disputes.filter(({ status }) => status === "open" || (status === "lost" && happening.status === "won"))
      const which = open[happening.which % Math.max(1, open.length)]?.reference
      const close = (dispute: Dispute): Dispute => (dispute.reference === which ? { ...dispute, status: happening.status } : dispute)
      return { ...now, disputes: now.disputes.map(close) }
    }
  }
}

/** What the account has of the payment's lot in the end, by plain arithmetic: thousandths that were granted, and that were taken back. */
export const outcomeOf = (last: Standing): { readonly granted: number; readonly takenBack: number } => {
  if (last.status !== "captured") return { granted: 0, takenBack: 0 }
  const granted = Math.floor(terms.credits * Math.min(1, last.captured / terms.amount))
  const gone = [
    ...last.refunds.filter(({ status }) => status !== "failed"),
    ...last.disputes.filter(({ status }) => status !== "won")
  ].reduce((sum, { minor }) => sum + minor, 0)
  const takenBack = Math.floor((granted * Math.min(gone, last.captured)) / last.captured)
  return { granted, takenBack }
}

/** A gateway that a test moves by hand. */
export class ScriptedGateway {
  standing: Standing = PENDING
  /** What the next calls meet: the gateway is away before it did what was asked, or its answer is lost after it did. */
  faults: Array<"away" | "lost" | undefined> = []
  readonly calls: Array<string> = []

  readonly layer: Layer.Layer<PaymentGateway> = Layer.sync(PaymentGateway, () => ({
    name: "scripted",
    begin: ({ paymentId }) =>
      this.#call("begin", () => ({ reference: `gw_${paymentId}`, next: { _tag: "ClientSecret", clientSecret: `secret_${paymentId}` } })),
    capture: () =>
      Effect.suspend((): Effect.Effect<Standing, GatewayRefused | GatewayUnavailable> => {
        if (this.standing.status !== "authorized" && this.standing.status !== "captured")
          return Effect.fail(new GatewayRefused({ gateway: "scripted", reason: "not authorized" }))
        return this.#call("capture", () => {
          if (this.standing.status === "authorized") this.standing = { ...this.standing, status: "captured", captured: terms.amount }
          return this.standing
        })
      }),
    standing: () => this.#call("standing", () => this.standing),
    next: ({ paymentId }) => this.#call("next", () => ({ _tag: "ClientSecret", clientSecret: `secret_${paymentId}` })),
    refund: (_, { minor, refundId }) =>
      this.#call("refund", () => {
        if (!this.standing.refunds.some(({ reference }) => reference === refundId))
          this.standing = { ...this.standing, refunds: [...this.standing.refunds, { reference: refundId, minor, status: "succeeded" }] }
        return this.standing
      }),
    notice: ({ body }) => Effect.sync(() => JSON.parse(Buffer.from(body).toString()) as ReadonlyArray<string>)
  }))

  #call<A>(name: string, act: () => A): Effect.Effect<A, GatewayUnavailable> {
    return Effect.suspend(() => {
      this.calls.push(name)
      const fault = this.faults.shift()
      const away = Effect.fail(new GatewayUnavailable({ gateway: "scripted", reason: "no answer" }))
      if (fault === "away") return away
      const answer = act()
      return fault === "lost" ? away : Effect.succeed(answer)
    })
  }
}
