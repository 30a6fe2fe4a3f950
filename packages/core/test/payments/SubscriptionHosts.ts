/** Hosts that take manual payments of subscriptions over the same stores. */
import { Credits } from "@millrace/core"
import { EventStore, StateStore } from "@millrace/event-sourcing"
import { Effect, Layer } from "effect"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { Checkout } from "../../src/payments/Checkout.ts"
import * as ManualGateway from "../../src/payments/ManualGateway.ts"
import { GatewayRefused, type Known, PaymentGateway, type Standing } from "../../src/payments/PaymentGateway.ts"
import { Payments } from "../../src/payments/Payments.ts"
import { PaymentUpkeep } from "../../src/payments/PaymentUpkeep.ts"
import type { Plan } from "../../src/payments/Plans.ts"
import { Subscriptions } from "../../src/payments/Subscriptions.ts"
import { SubscriptionUpkeep } from "../../src/payments/SubscriptionUpkeep.ts"
import type { Stores } from "../accounts/Hosts.ts"

export const ACCOUNT = "acc_1"
export const DAY = 24 * 3_600_000

export const STANDARD: Plan = { plan: "standard", amount: 2_000, currency: "USD", credits: Credits.of(25_000_000), every: "month" }
export const PRO: Plan = { plan: "pro", amount: 5_000, currency: "USD", credits: Credits.of(75_000_000), every: "month" }

/** A gateway that stores the payer's means. `declines`: whether the bank declines payments by these. */
export class StoringGateway {
  declines = false
  /** The agreements by which payments were taken. */
  readonly taken: Array<string> = []
  readonly #captured = new Map<string, number>()
  readonly #amounts = new Map<string, number>()

  readonly layer: Layer.Layer<PaymentGateway> = Layer.sync(PaymentGateway, () => {
    const standing = ({ paymentId }: Known) => Effect.sync(() => this.#standing(paymentId))
    return {
      name: "storing",
      begin: ({ amount, paymentId, recurring }) =>
        Effect.suspend(() => {
          const by = recurring?.agreement
          if (by !== undefined && this.declines) return Effect.fail(new GatewayRefused({ gateway: "storing", reason: "card_declined" }))
          this.#amounts.set(paymentId, amount.minor)
          if (by !== undefined) {
            this.taken.push(by)
            this.pay(paymentId)
          }
          return Effect.succeed({ reference: paymentId, next: { _tag: "ClientSecret" as const, clientSecret: `secret_${paymentId}` } })
        }),
      capture: standing,
      standing,
      refund: standing,
      notice: () => Effect.succeed([])
    }
  })

  /** The payer pays in the browser. */
  pay(paymentId: string): void {
    this.#captured.set(paymentId, this.#amounts.get(paymentId) ?? 0)
  }

  #standing(paymentId: string): Standing {
    const captured = this.#captured.get(paymentId)
    const nothing = { reason: null, refunds: [], disputes: [] }
    return captured === undefined
      ? { ...nothing, status: "pending", captured: 0 }
      : { ...nothing, status: "captured", captured, agreement: "means_1" }
  }
}

export interface Host extends Effect.Success<ReturnType<typeof host>> {}

interface Options {
  /** Instead of manual payments. */
  readonly gateway?: Layer.Layer<never>
  /** Whether it maintains subscriptions. */
  readonly upkeep?: boolean
  /** Whether it maintains payments too, and both as soon as another host has died. */
  readonly pays?: boolean
}

/** Terms of leases and sweeps of hosts that die. */
const SOON = { ttl: "1 second", sweepEvery: "1 second" } as const

/** Opens a host. It ends with the scope. */
export const host = ({ events, states }: Stores, { gateway = Layer.empty, upkeep = false, pays = false }: Options = {}) =>
  Effect.gen(function* () {
    const base = Layer.mergeAll(Layer.succeed(EventStore.EventStore, events), Layer.succeed(StateStore.StateStore, states))
    const upkeeps = pays ? Layer.mergeAll(SubscriptionUpkeep.layer(SOON), PaymentUpkeep.layer(SOON)) : SubscriptionUpkeep.layer()
    const layer = (upkeep ? upkeeps : Layer.empty).pipe(
      Layer.provideMerge(Subscriptions.layer({ plans: [STANDARD, PRO] })),
      Layer.provideMerge(Checkout.layer()),
      Layer.provideMerge(Layer.mergeAll(Payments.layer, ManualGateway.layer(), gateway)),
      Layer.provideMerge(Ledger.layer()),
      Layer.provide(base)
    )
    const context = yield* Layer.build(Layer.fresh(layer))
    const services = {
      checkout: Checkout,
      ledger: Ledger,
      manual: ManualGateway.ManualPayments,
      payments: Payments,
      subscriptions: Subscriptions
    }
    return yield* Effect.provideContext(Effect.all(services), context)
  })
