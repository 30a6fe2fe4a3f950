/** What an administrator sees and does of deliveries: those that wait, dead letters, and sending dead letters again. */
import { StateStore } from "@millrace/event-sourcing"
import { Clock, Effect, Schema } from "effect"
import type { Timestamp } from "../Timestamp.ts"
import * as Delivery from "./Delivery.ts"
import * as Lane from "./Lane.ts"

/** There is no dead letter of this id. */
export class DeliveryNotFound extends Schema.TaggedError<DeliveryNotFound>()("DeliveryNotFound", { delivery: Schema.String }) {
  override get message(): string {
    return `There is no dead letter ${this.delivery}`
  }
}

type Reading<A> = Effect.Effect<A, StateStore.StateUnavailable, StateStore.StateStore>

/** The next deliveries of a webhook, at most `limit`. */
export const waiting = (webhook: string, limit: number): Reading<ReadonlyArray<Delivery.Delivery>> =>
  Effect.map(Delivery.first(Delivery.WAITING, webhook, limit), (rows) => rows.map(Delivery.of))

/** The oldest dead letters of a webhook, at most `limit`. */
export const dead = (webhook: string, limit: number): Reading<ReadonlyArray<Delivery.Delivery>> =>
  Effect.map(Delivery.first(Delivery.DEAD, webhook, limit), (rows) => rows.map(Delivery.of))

export interface Condition {
  /** Deliveries in the state store. */
  readonly waiting: number
  readonly dead: number
  /** Whether further notices wait in the log, because the webhook is disabled or too many deliveries wait. */
  readonly behind: boolean
  /** Since when every attempt has failed; null if the newest succeeded. */
  readonly failingSince: Timestamp | null
}

/** How a webhook is doing. */
export const condition = (webhook: string): Reading<Condition> =>
  Effect.gen(function* () {
    const { behind, failingSince } = yield* Lane.kept(webhook)
    const [waiting, dead] = yield* Effect.all([Delivery.all(Delivery.WAITING, webhook), Delivery.all(Delivery.DEAD, webhook)])
    return { waiting: waiting.length, dead: dead.length, behind: behind !== null, failingSince }
  })

/** Puts a dead letter back, to be sent again as if for the first time. */
const revive = Effect.fnUntraced(function* (row: StateStore.Entry) {
  const states = yield* StateStore.StateStore
  const now = yield* Clock.currentTimeMillis
  const removed = { _tag: "remove", space: Delivery.DEAD, key: row.key, expected: row.version } as const
  yield* states.write([removed, Delivery.put({ ...Delivery.of(row), attempts: 0, nextAt: now })])
})

/** Sends a dead letter again. */
export const resend = Effect.fn("Webhooks.resend")(function* (delivery: string) {
  const row = yield* StateStore.StateStore.use((states) => states.get(Delivery.DEAD, delivery))
  if (row === undefined) return yield* new DeliveryNotFound({ delivery })
  // Another process sends it again at this moment
  yield* Effect.catchTag(revive(row), "StateConflict", () => Effect.fail(new DeliveryNotFound({ delivery })))
})

/** Sends all dead letters of a webhook again, or those of what happened at `since` and later. Returns how many. */
export const resendAll = Effect.fn("Webhooks.resendAll")(function* (webhook: string, since: Timestamp = 0) {
  const rows = yield* Delivery.all(Delivery.DEAD, webhook)
  const chosen = rows.filter((row) => Date.parse(Delivery.of(row).notice.at) >= since)
  let sent = 0
  for (const row of chosen)
    if (yield* Effect.as(revive(row), true).pipe(Effect.catchTag("StateConflict", () => Effect.succeed(false)))) sent++
  return sent
})
