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
  /** For a payment of a subscription: the stored means by which it is taken; null where the payer is asked. */
  readonly recurring?: string | null
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
    begin: (payment) =>
      Effect.suspend(
        (): Effect.Effect<PaymentGateway.Begun, PaymentGateway.GatewayRefused | PaymentGateway.GatewayUnavailable> =>
          this.#isRefused(payment)
            ? Effect.fail(new GatewayRefused({ gateway: NAME, reason: "the stored card was declined" }))
            : this.#answer("begin", () => this.#begun(payment))
      ),
    standing: ({ paymentId }) => this.#answer("standing", () => this.#held(paymentId).standing),
    capture: ({ paymentId }) =>
      Effect.suspend(
        (): Effect.Effect<Standing, PaymentGateway.GatewayRefused | PaymentGateway.GatewayUnavailable> =>
          this.#held(paymentId).standing.status === "pending"
            ? Effect.fail(new GatewayRefused({ gateway: NAME, reason: "it is not authorized" }))
            : this.#answer("capture", () => {
                const held = this.#held(paymentId)
                if (held.standing.status === "authorized") held.standing = this.#captured(held)
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

  /** What becomes of a payment of a subscription: the same whenever it is asked for. */
  #fateOf(paymentId: string): SeededRandom {
    return this.#options.random.fork(paymentId)
  }

  /** Some payments by stored means are declined at once: the gateway then knows nothing of them. */
  #isRefused({ paymentId, recurring }: PaymentGateway.NewPayment): boolean {
    return recurring?.agreement !== undefined && this.#fateOf(paymentId).chance(0.15)
  }

  #begun({ amount, paymentId, recurring }: PaymentGateway.NewPayment): PaymentGateway.Begun {
    const { agreement = null } = recurring ?? {}
    if (!this.payments.has(paymentId)) {
      // Stored means: the money comes, or the bank wants the payer to confirm, or it declines
      const status = agreement === null ? "pending" : this.#fateOf(paymentId).fork("means").pick(OFF_SESSION)
      const standing = { ...PENDING, status, ...(status === "failed" ? { reason: "The card was declined" } : {}) }
      this.payments.set(paymentId, {
        paymentId,
        amount: amount.minor,
        standing,
        ...(recurring === undefined ? {} : { recurring: agreement })
      })
    }
    return { reference: referenceOf(paymentId), next: { _tag: "ClientSecret", clientSecret: `secret_${paymentId}` } }
  }

  /** Some payers let the gateway store their means with the payment. */
  #captured({ amount, paymentId, recurring, standing }: Held): Standing {
    const isStored = recurring === null && this.#fateOf(paymentId).fork("stored").chance(0.7)
    const agreement = isStored ? `means_${paymentId}` : recurring
    return { ...standing, status: "captured", captured: amount, ...(agreement == null ? {} : { agreement }) }
  }

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

const OFF_SESSION = ["authorized", "authorized", "authorized", "pending", "failed"] as const

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
