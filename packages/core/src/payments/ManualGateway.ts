/** Takes payments without any network: the payer is told how to pay, and an operator approves the payment when the money is there. */
import { Aggregate, type EventStore } from "@millrace/event-sourcing"
import { Context, Effect, Layer } from "effect"
import { toText } from "./Amount.ts"
import * as ManualPayment from "./ManualPayment.ts"
import { GatewayRefused, GatewayUnavailable, type NewPayment, NoticeForged, PaymentGateway } from "./PaymentGateway.ts"

export const NAME = "manual"

export interface ManualOptions {
  /** What the payer reads. `{amount}`, `{currency}` and `{payment}` stand for those of the payment. */
  readonly instruction?: string
}

const INSTRUCTION = "Pay {amount} {currency} to the operator of this host, and give {payment} as the reference. The operator confirms it."

const PLACES = /\{(amount|currency|payment)\}/gu

/** An instruction with the facts of a payment in their places. */
export const instructionOf = (template: string, { amount, paymentId }: Pick<NewPayment, "amount" | "paymentId">): string => {
  const facts = { amount: toText(amount), currency: amount.currency, payment: paymentId }
  return template.replace(PLACES, (_, name: keyof typeof facts) => facts[name])
}

type Decided = Effect.Effect<void, ManualPayment.NotManual | ManualPayment.AlreadyDecided | Aggregate.Failure>

/** What operators do. Whoever approves or rejects asks for the payment afterwards, so that its credits follow at once. */
export class ManualPayments extends Context.Service<
  ManualPayments,
  {
    /** The money is there. Approving again changes nothing. */
    readonly approve: (paymentId: string, metadata?: Aggregate.Metadata) => Decided
    /** The money will not come. Rejecting again changes nothing. */
    readonly reject: (paymentId: string, reason?: string, metadata?: Aggregate.Metadata) => Decided
    /** Payments whose streams this host cannot read: for `/ready`. */
    readonly refused: () => ReadonlyArray<Aggregate.StreamRefused>
  }
>()("@millrace/core/payments/ManualGateway/ManualPayments") {}

const makeOperators = Effect.gen(function* () {
  const { execute, refused } = yield* Aggregate.make(ManualPayment.ManualPayment)
  return ManualPayments.of({
    approve: (paymentId, metadata) => Effect.asVoid(execute(paymentId, ManualPayment.approve(paymentId), metadata)),
    reject: (paymentId, reason = "The operator rejected it", metadata) =>
      Effect.asVoid(execute(paymentId, ManualPayment.reject(paymentId, reason), metadata)),
    refused
  })
})

/** What operators do, without a gateway: for a host that has manual payments of an earlier time. */
export const operators: Layer.Layer<ManualPayments, never, EventStore.EventStore> = Layer.effect(ManualPayments, makeOperators)

const makeGateway = Effect.fnUntraced(function* ({ instruction = INSTRUCTION }: ManualOptions) {
  const { execute, read } = yield* Aggregate.make(ManualPayment.ManualPayment)
  const unavailable = <A>(effect: Effect.Effect<A, Aggregate.Failure>) =>
    Effect.mapError(effect, ({ _tag }) => new GatewayUnavailable({ gateway: NAME, reason: _tag }))
  const standing = (state: ManualPayment.ManualPayment) =>
    state.status === "absent"
      ? Effect.fail(new GatewayRefused({ gateway: NAME, reason: "The payment was never begun" }))
      : Effect.succeed(ManualPayment.standingOf(state))
  const asked = ({ paymentId }: { readonly paymentId: string }) =>
    Effect.flatMap(unavailable(read(paymentId)), ({ state }) => standing(state))
  return PaymentGateway.of({
    name: NAME,
    begin: (payment) =>
      Effect.as(unavailable(execute(payment.paymentId, ManualPayment.begin(payment.amount.minor, payment.amount.currency))), {
        reference: payment.paymentId,
        next: { _tag: "Instruction", instruction: instructionOf(instruction, payment) }
      }),
    next: (payment) => Effect.succeed({ _tag: "Instruction", instruction: instructionOf(instruction, payment) }),
    // There is nothing to capture: what is approved is there
    capture: asked,
    standing: asked,
    refund: ({ paymentId }, { minor, refundId }) =>
      Effect.flatMap(unavailable(execute(paymentId, ManualPayment.refund(refundId, minor))), ({ state }) => standing(state)),
    notice: () => Effect.fail(new NoticeForged({ reason: "this gateway sends no notices" }))
  })
})

/** The gateway alone. */
export const gateway = (options: ManualOptions = {}): Layer.Layer<PaymentGateway, never, EventStore.EventStore> =>
  Layer.effect(PaymentGateway, makeGateway(options))

/** Takes payments by hand. */
export const layer = (options: ManualOptions = {}): Layer.Layer<PaymentGateway | ManualPayments, never, EventStore.EventStore> =>
  Layer.merge(gateway(options), operators)
