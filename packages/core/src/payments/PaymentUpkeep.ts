/**
 * Maintains payments, also after a process died and when a gateway's notices are lost. A payment that is not final is asked for at growing
 * intervals until it is; one that nobody pays in time fails. Captured payments, refunded ones and disputed ones are asked for after some days, because money may go back, or come back.
 * Each event that moves credits is carried to its account.
 */
import { Deadlines, type EventHandlers, type EventStore, Reaction, type StateStore } from "@millrace/event-sourcing"
import { Context, Duration, Effect, Layer } from "effect"
import { Checkout } from "./Checkout.ts"
import * as Payment from "./Payment.ts"
import { Payments } from "./Payments.ts"

const MINUTE = Duration.toMillis("1 minute")
const DAY = Duration.toMillis("1 day")

/** Minutes after which a payment that is not final is asked for, from when it was requested and again from when it was authorized. */
export const ASKED = [1, 3, 10, 30, 60, 120, 240, 480, 960, 1_440, 2_880, 4_320, 7_200, 10_080] as const

/** By then a gateway has given up what was authorized and not captured; from then on it is asked at each sweep. */
const AUTHORIZED = 8 * DAY

/** Days after which a captured, refunded or disputed payment is asked for again. Banks take chargebacks for 120 days. */
export const REVIEWS = [1, 3, 7, 14, 30, 60, 90, 120, 150] as const

/** A review that could not be made for so long, because the gateway was away, is left out. */
const REVIEW_LAPSES = 2 * DAY

/** The deadline of a payment that is not final. */
const END = "end"

const keyOf = (stream: string, what: string): string => `${stream}/${what}`

/** A payment is asked for at growing intervals, and at its end at each sweep. */
const asked = ({ at, id }: EventHandlers.Origin, end: number): ReadonlyArray<Deadlines.Change> => [
  { _tag: "set", key: keyOf(id, END), dueAt: end },
  ...ASKED.map((minutes): Deadlines.Change => {
    const key = keyOf(id, `${minutes}m`)
    const dueAt = at + minutes * MINUTE
    return dueAt < end ? { _tag: "set", key, dueAt, until: dueAt + minutes * MINUTE } : { _tag: "clear", key }
  })
]

const final = (_: unknown, { id }: EventHandlers.Origin): ReadonlyArray<Deadlines.Change> =>
  [END, ...ASKED.map((minutes) => `${minutes}m`)].map((what) => ({ _tag: "clear", key: keyOf(id, what) }))

const reviews = ({ at, id }: EventHandlers.Origin): ReadonlyArray<Deadlines.Change> =>
  REVIEWS.map((days) => {
    const dueAt = at + days * DAY
    return { _tag: "set", key: keyOf(id, `${days}d`), dueAt, until: dueAt + REVIEW_LAPSES }
  })

const schedule = Deadlines.of(Payment.Payment, {
  PaymentRequested: ({ expiresAt }, origin) => asked(origin, expiresAt),
  PaymentAuthorized: (_, origin) => asked(origin, origin.at + AUTHORIZED),
  PaymentCaptured: (event, origin) => [...final(event, origin), ...reviews(origin)],
  PaymentFailed: final,
  PaymentRefunded: (_, origin) => reviews(origin),
  PaymentDisputed: (_, origin) => reviews(origin)
})

/** Asks for a payment. A payment of a gateway that this host does not have is left to a host that has it. */
const asking = (payments: Payments["Service"], checkout: Checkout["Service"]) =>
  Effect.fnUntraced(function* ({ key }: Deadlines.Deadline) {
    const [stream = "", what] = key.split("/")
    const order = yield* payments.orderIn(stream)
    if (order === undefined) return
    yield* what === END ? checkout.lapse(order.paymentId) : checkout.ask(order.paymentId)
  })

/** At most this many settlements repeat after a crash. They are idempotent. */
const CHECKPOINT_EVERY = 100

/** Carries what moves credits to the account. */
const settlementsOf = (payments: Payments["Service"]) => {
  const settle = (_: unknown, { id }: EventHandlers.Origin) =>
    Effect.flatMap(payments.orderIn(id), (order) => (order === undefined ? Effect.void : Effect.asVoid(payments.settle(order.paymentId))))
  return {
    name: "paymentSettlements",
    start: "beginning",
    ...Reaction.of<Payment.PaymentEvent, Effect.Error<ReturnType<typeof settle>>>(Payment.Payment, {
      PaymentCaptured: settle,
      PaymentRefunded: settle,
      PaymentRefundFailed: settle,
      PaymentDisputed: settle,
      PaymentDisputeWon: settle
    })
  } as const
}

const make = Effect.fnUntraced(function* (options: Deadlines.Options = {}) {
  const payments = yield* Payments
  const checkout = yield* Checkout
  const deadlines = yield* Deadlines.make(
    { name: "paymentDeadlines", version: 2, ...schedule, onDue: asking(payments, checkout) },
    { sweepEvery: "1 minute", ...options }
  )
  const settlements = yield* Reaction.make(settlementsOf(payments), { ...options, checkpointEvery: CHECKPOINT_EVERY })
  return { status: Effect.all({ deadlines: deadlines.status, settlements: settlements.status }) }
})

export class PaymentUpkeep extends Context.Service<PaymentUpkeep, Effect.Success<ReturnType<typeof make>>>()(
  "@millrace/core/payments/PaymentUpkeep"
) {
  static readonly layer = (
    options?: Deadlines.Options
  ): Layer.Layer<PaymentUpkeep, never, Payments | Checkout | EventStore.EventStore | StateStore.StateStore> =>
    Layer.effect(this, make(options))
}
