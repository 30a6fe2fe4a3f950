/**
 * The gateway of a simulated world: it holds the payments of all hosts, takes commands of payers and banks, and answers hosts, or does not.
 * What it answers may be lost after it did what was asked.
 */
import { PaymentGateway } from "@millrace/core"
import { Effect, Layer } from "effect"
import type { SeededRandom } from "../../SeededRandom.ts"
import type { World } from "../World.ts"

const { GatewayRefused, GatewayUnavailable } = PaymentGateway
type Standing = PaymentGateway.Standing

const NAME = "simulated"

export interface GatewayOptions {
  readonly world: World
  readonly random: SeededRandom
  /** Probability that a request of a host fails. */
  readonly rate: () => number
}

/** A payment at the gateway. */
export interface Held {
  readonly paymentId: string
  /** In the smallest unit. */
  readonly amount: number
  standing: Standing
}

/** The gateway's own id of a payment. */
export const referenceOf = (paymentId: string): string => `sim_${paymentId}`

export class SimulatedGateway {
  readonly payments = new Map<string, Held>()
  readonly #options: GatewayOptions
  #serial = 0

  constructor(options: GatewayOptions) {
    this.#options = options
  }

  /** What the payer, the payer's bank, or the merchant's own page does to a payment. Does nothing where it cannot be done. */
  happen(paymentId: string, what: "approve" | "decline" | "refund" | "bounce" | "dispute" | "win" | "lose", random: SeededRandom): void {
    const held = this.payments.get(paymentId)
    if (held === undefined) return
    const { amount, standing } = held
    this.#options.world.note("gateway", `${paymentId}: ${what}`)
    const isOpen = standing.status === "pending"
    const part = random.chance(0.4) ? amount : 1 + random.below(amount)
    const reference = `${what}_${++this.#serial}`
    switch (what) {
      case "approve":
        if (isOpen) held.standing = { ...standing, status: "authorized" }
        return
      case "decline":
        if (isOpen) held.standing = { ...standing, status: "failed", reason: "The card was declined" }
        return
      case "refund":
        if (standing.status === "captured")
          held.standing = { ...standing, refunds: [...standing.refunds, { reference, minor: part, status: "pending" }] }
        return
      case "bounce":
        held.standing = bounced(standing)
        return
      case "dispute":
        if (standing.status === "captured")
          held.standing = { ...standing, disputes: [...standing.disputes, { reference, minor: part, status: "open" }] }
        return
      case "win":
      case "lose":
        held.standing = closed(standing, what === "win" ? "won" : "lost")
    }
  }

  readonly layer: Layer.Layer<PaymentGateway.PaymentGateway> = Layer.sync(PaymentGateway.PaymentGateway, () => ({
    name: NAME,
    begin: ({ amount, paymentId }) =>
      this.#answer("begin", () => {
        if (!this.payments.has(paymentId)) this.payments.set(paymentId, { paymentId, amount: amount.minor, standing: PENDING })
        return { reference: referenceOf(paymentId), next: { _tag: "ClientSecret", clientSecret: `secret_${paymentId}` } }
      }),
    standing: ({ paymentId }) => this.#answer("standing", () => this.#held(paymentId).standing),
    capture: ({ paymentId }) =>
      Effect.suspend(
        (): Effect.Effect<Standing, PaymentGateway.GatewayRefused | PaymentGateway.GatewayUnavailable> =>
          this.#held(paymentId).standing.status === "pending"
            ? Effect.fail(new GatewayRefused({ gateway: NAME, reason: "it is not authorized" }))
            : this.#answer("capture", () => {
                const held = this.#held(paymentId)
                if (held.standing.status === "authorized") held.standing = { ...held.standing, status: "captured", captured: held.amount }
                return held.standing
              })
      ),
    refund: ({ paymentId }, { minor, refundId }) =>
      this.#answer("refund", () => {
        const held = this.#held(paymentId)
        if (!held.standing.refunds.some(({ reference }) => reference === refundId))
          held.standing = { ...held.standing, refunds: [...held.standing.refunds, { reference: refundId, minor, status: "succeeded" }] }
        return held.standing
      }),
    notice: ({ body }) => Effect.sync(() => [Buffer.from(body).toString()])
  }))

  #held(paymentId: string): Held {
    const held = this.payments.get(paymentId)
    if (held === undefined) throw new Error(`The gateway does not know ${paymentId}`)
    return held
  }

  #answer<A>(what: string, act: () => A): Effect.Effect<A, PaymentGateway.GatewayUnavailable> {
    return Effect.suspend(() => {
      const { random, rate } = this.#options
      const isFaulty = random.chance(rate())
      const isLost = random.chance(0.5)
      const takes = random.below(random.chance(0.1) ? 3_000 : 50)
      const away = new GatewayUnavailable({ gateway: NAME, reason: `no answer to ${what}` })
      if (isFaulty && !isLost) return Effect.delay(Effect.fail(away), takes)
      const acted = Effect.delay(Effect.sync(act), takes)
      // The answer comes from a standing as it was a moment before
      return Effect.delay(isFaulty ? Effect.andThen(acted, Effect.fail(away)) : acted, random.below(50))
    })
  }
}

const PENDING: Standing = { status: "pending", reason: null, captured: 0, refunds: [], disputes: [] }

/** The oldest refund that the payer's bank may still refuse comes back. */
const bounced = (standing: Standing): Standing => {
  const made = standing.refunds.find(({ status }) => status !== "failed")
  return { ...standing, refunds: standing.refunds.map((refund) => (refund === made ? { ...refund, status: "failed" } : refund)) }
}

/** Closes the dispute that has been open for the longest time; an appeal wins the oldest one that was lost. */
const closed = (standing: Standing, status: "won" | "lost"): Standing => {
  const find = (wanted: "open" | "lost") => standing.disputes.find((dispute) => dispute.status === wanted)
  const open = find("open") ?? (status === "won" ? find("lost") : undefined)
  return { ...standing, disputes: standing.disputes.map((dispute) => (dispute === open ? { ...dispute, status } : dispute)) }
}
