/**
 * Maintains subscriptions, also after a process died: requests the payment of the next period when one ends, tries again each day of the grace
 * period, and ends what is not paid. What became of a payment is written to its subscription, whatever told it.
 */
import { Deadlines, type EventHandlers, type EventStore, Reaction, type StateStore } from "@millrace/event-sourcing"
import { Context, Duration, Effect, Layer } from "effect"
import * as Payment from "./Payment.ts"
import { Payments } from "./Payments.ts"
import * as Subscription from "./Subscription.ts"
import { Subscriptions } from "./Subscriptions.ts"

/** A payment that was decided on and not begun by then is begun by the upkeep. */
const BEGUN_WITHIN = Duration.toMillis("1 minute")
const DAY = Duration.toMillis("1 day")

/** Money that goes back is tried for so long. */
const GIVEN_BACK_WITHIN = 30 * DAY

type What = "pay" | "due" | "grace" | "back"

const set = ({ id }: EventHandlers.Origin, what: What, dueAt: number, until?: number): Deadlines.Change => ({
  _tag: "set",
  key: `${id}/${what}`,
  dueAt,
  ...(until === undefined ? {} : { until })
})

const clear = ({ id }: EventHandlers.Origin, ...whats: ReadonlyArray<What>): ReadonlyArray<Deadlines.Change> =>
  whats.map((what) => ({ _tag: "clear", key: `${id}/${what}` }))

const pay = (_: unknown, origin: EventHandlers.Origin): ReadonlyArray<Deadlines.Change> => [
  set(origin, "pay", origin.at + BEGUN_WITHIN, origin.at + DAY)
]

const schedule = Deadlines.of(Subscription.Subscription, {
  SubscriptionStarted: pay,
  SubscriptionUpgradeRequested: pay,
  SubscriptionPeriodRequested: (event, origin) => [
    ...pay(event, origin),
    set(origin, "due", origin.at + Subscription.RETRY_AFTER),
    set(origin, "grace", event.graceUntil)
  ],
  SubscriptionPeriodBegan: ({ until }, origin) => [...clear(origin, "pay", "grace"), set(origin, "due", until)],
  SubscriptionPaymentNotNeeded: (_, origin) => [set(origin, "back", origin.at, origin.at + GIVEN_BACK_WITHIN)],
  SubscriptionEnded: (_, origin) => clear(origin, "pay", "due", "grace")
})

const acting = ({ advance, giveBack }: Subscriptions["Service"]) =>
  Effect.fnUntraced(function* ({ key }: Deadlines.Deadline) {
    const [stream = "", what] = key.split("/")
    yield* what === "back" ? giveBack(stream) : advance(stream)
  })

/** At most this many notes repeat after a crash. They are idempotent. */
const CHECKPOINT_EVERY = 100

/** Writes what became of a payment to its subscription. */
const notesOf = (payments: Payments["Service"], { note }: Subscriptions["Service"]) => {
  const noted = (_: unknown, { id }: EventHandlers.Origin) =>
    Effect.flatMap(payments.orderIn(id), (order) => (order === undefined ? Effect.void : note(order.paymentId)))
  return {
    name: "subscriptionPayments",
    start: "beginning",
    ...Reaction.of<Payment.PaymentEvent, Effect.Error<ReturnType<typeof noted>>>(Payment.Payment, {
      PaymentCaptured: noted,
      PaymentFailed: noted,
      PaymentRefunded: noted,
      PaymentDisputeLost: noted
    })
  } as const
}

const make = Effect.fnUntraced(function* (options: Deadlines.Options = {}) {
  const payments = yield* Payments
  const subscriptions = yield* Subscriptions
  const deadlines = yield* Deadlines.make(
    { name: "subscriptionDeadlines", version: 1, ...schedule, onDue: acting(subscriptions) },
    { sweepEvery: "1 minute", ...options }
  )
  const notes = yield* Reaction.make(notesOf(payments, subscriptions), { ...options, checkpointEvery: CHECKPOINT_EVERY })
  return { status: Effect.all({ deadlines: deadlines.status, notes: notes.status }) }
})

export class SubscriptionUpkeep extends Context.Service<SubscriptionUpkeep, Effect.Success<ReturnType<typeof make>>>()(
  "@millrace/core/payments/SubscriptionUpkeep"
) {
  static readonly layer = (
    options?: Deadlines.Options
  ): Layer.Layer<SubscriptionUpkeep, never, Payments | Subscriptions | EventStore.EventStore | StateStore.StateStore> =>
    Layer.effect(this, make(options))
}
