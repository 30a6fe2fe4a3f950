/**
 * Payments: each buys credits once, for one account. A payment is claimed for an account before its credits are granted. If a process
 * stops in between, the same grant, repeated, completes it. Of concurrent claims for several accounts, one stands.
 *
 * Older logs have grants without a claim. They come before the first claim, so only that part of the log is searched.
 */
import { Aggregate, type EventStore } from "@millrace/event-sourcing"
import { Context, Effect, Layer, Result, Schema } from "effect"
import { lotIdOfPayment } from "../Ids.ts"
import * as Decisions from "../ledger/Decisions.ts"
import * as History from "../ledger/History.ts"
import { type Committed, Ledger } from "../ledger/Ledger.ts"
import type { LotSource } from "../ledger/Lots.ts"
import { claim, PaymentClaim, paymentIdOf } from "./Claim.ts"

/** The payment bought credits for another account. */
export class PaymentUsed extends Schema.TaggedError<PaymentUsed>()("PaymentUsed", { accountId: Schema.String }) {
  override get message(): string {
    return `That payment bought credits for ${this.accountId} already`
  }
}

/** What a payment buys. `paymentRef` names the payment where it was made; `amount` in thousandths of a credit. */
export interface PaidGrant extends Omit<Decisions.Grant, "lotId" | "source" | "paymentRef"> {
  readonly source: Extract<LotSource, "topup" | "subscription">
  readonly paymentRef: string
}

export class Payments extends Context.Service<
  Payments,
  {
    /**
     * Grants what a payment bought. The same payment again grants nothing more to its account, and is refused for any other. An account that
     * cannot be granted anything does not claim the payment.
     */
    readonly grant: (
      accountId: string,
      grant: PaidGrant,
      metadata?: Aggregate.Metadata
    ) => Effect.Effect<
      Committed,
      PaymentUsed | Decisions.AccountNotFound | Decisions.AccountClosed | Decisions.BalanceTooLarge | Aggregate.Failure
    >
    /** The account that a payment was claimed for; undefined before its claim. */
    readonly owner: (paymentRef: string) => Effect.Effect<string | undefined, Aggregate.Failure>
  }
>()("@millrace/core/accounts/Payments") {
  static readonly layer: Layer.Layer<Payments, never, Ledger | EventStore.EventStore> = Layer.effect(
    Payments,
    Effect.gen(function* () {
      const ledger = yield* Ledger
      const claims = yield* Aggregate.make(PaymentClaim)
      const context = yield* Effect.context<EventStore.EventStore>()
      const grantedUnclaimed = (lotId: string) =>
        Effect.provideContext(History.accountOfLot(lotId, { before: PaymentClaim.category }), context)

      const owner = Effect.fn("Payments.owner")(function* (paymentRef: string) {
        const { accountId } = (yield* claims.read(paymentIdOf(paymentRef))).state
        return accountId ?? (yield* grantedUnclaimed(lotIdOfPayment(paymentRef)))
      })

      const grant = Effect.fn("Payments.grant")(function* (accountId: string, grant: PaidGrant, metadata?: Aggregate.Metadata) {
        const lotId = lotIdOfPayment(grant.paymentRef)
        const decide = Decisions.grant({ ...grant, lotId })
        const { at, state } = yield* ledger.read(accountId)
        const possible = decide(state, at)
        if (Result.isFailure(possible)) return yield* possible.failure
        const first = (yield* owner(grant.paymentRef)) ?? accountId
        const claimed = yield* claims.execute(
          paymentIdOf(grant.paymentRef),
          claim({ _tag: "PaymentClaimed", accountId: first, lotId }),
          metadata
        )
        const owns = claimed.state.accountId ?? first
        if (owns !== accountId) return yield* new PaymentUsed({ accountId: owns })
        return yield* ledger.execute(accountId, decide, metadata)
      })

      return Payments.of({ grant, owner })
    })
  )
}
