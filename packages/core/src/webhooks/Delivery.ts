/**
 * Deliveries: a notice for one webhook. They follow from the log, so they are kept in the state store: `webhookDeliveries` holds those that
 * wait, by the time of their next attempt, and `webhookDeadLetters` those that were given up.
 */
import { StateStore } from "@millrace/event-sourcing"
import { Effect, Schema } from "effect"
import type { Notice } from "../notices/Notices.ts"

const Attempt = Schema.Struct({
  /** Milliseconds since 1970. */
  at: Schema.Int,
  /** Null if there was no answer. */
  status: Schema.NullOr(Schema.Int),
  /** Why it failed. */
  error: Schema.String
})
export type Attempt = typeof Attempt.Type

export const Delivery = Schema.Struct({
  webhook: Schema.String,
  notice: Schema.Struct({
    id: Schema.String,
    name: Schema.String,
    account: Schema.String,
    at: Schema.String,
    position: Schema.String,
    facts: Schema.Record(Schema.String, Schema.Unknown)
  }),
  /** Attempts so far. */
  attempts: Schema.Int,
  /** Not before: milliseconds since 1970. */
  nextAt: Schema.Int,
  last: Schema.NullOr(Attempt)
})
export type Delivery = typeof Delivery.Type

const Row = Schema.fromJsonString(Delivery)
const encode = Schema.encodeSync(Row)
const decode = Schema.decodeUnknownSync(Row)

export const WAITING = "webhookDeliveries"
export const DEAD = "webhookDeadLetters"

/** The id of a delivery, as commands show and take it: `{webhook}/{position of the event}.{name of the notice}`. */
export const idOf = ({ notice, webhook }: Delivery): string => `${webhook}/${notice.position}.${notice.name}`

/** Keys of waiting deliveries sort by webhook, then by the time of the next attempt, then in the order of the log. */
export const keyOf = (delivery: Delivery): string => {
  const { nextAt, notice, webhook } = delivery
  return `${prefixOf(webhook)}${String(nextAt).padStart(15, "0")}/${notice.position}.${notice.name}`
}

export const prefixOf = (webhook: string): string => `${webhook}/`

/** The webhook of a key of either space. */
export const webhookOf = (key: string): string => key.slice(0, key.indexOf("/"))

/** A delivery that is to be sent at once. */
export const make = (webhook: string, { account, at, facts, id, name, position }: Notice, now: number): Delivery => ({
  webhook,
  notice: { id, name, account, at, position, facts: facts as Readonly<Record<string, unknown>> },
  attempts: 0,
  nextAt: now,
  last: null
})

export const put = (delivery: Delivery): StateStore.Change => ({
  _tag: "put",
  space: WAITING,
  key: keyOf(delivery),
  value: Buffer.from(encode(delivery))
})

export const remove = (delivery: Delivery): StateStore.Change => ({ _tag: "remove", space: WAITING, key: keyOf(delivery) })

/** Changes a delivery that waits. Its key may change with it. */
export const replace = (from: Delivery, to: Delivery): ReadonlyArray<StateStore.Change> =>
  keyOf(from) === keyOf(to) ? [put(to)] : [remove(from), put(to)]

export const bury = (delivery: Delivery, expiresAt: number): StateStore.Change => ({
  _tag: "put",
  space: DEAD,
  key: idOf(delivery),
  value: Buffer.from(encode(delivery)),
  expiresAt
})

export const of = ({ value }: StateStore.Entry): Delivery => decode(Buffer.from(value).toString())

/** The first deliveries of a webhook: of those that wait by their next attempt, of dead letters the oldest. */
export const first = (
  space: typeof WAITING | typeof DEAD,
  webhook: string,
  limit: number
): Effect.Effect<ReadonlyArray<StateStore.Entry>, StateStore.StateUnavailable, StateStore.StateStore> =>
  Effect.map(
    StateStore.StateStore.use((states) => states.list(space, { after: prefixOf(webhook), limit })),
    (entries) => entries.filter(({ key }) => webhookOf(key) === webhook)
  )

const PAGE = 1_000

/** All deliveries of a webhook in a space, in the order of their keys. */
export const all = Effect.fnUntraced(function* (space: typeof WAITING | typeof DEAD, webhook: string) {
  const states = yield* StateStore.StateStore
  const found: Array<StateStore.Entry> = []
  for (let after = prefixOf(webhook); ; ) {
    const page: ReadonlyArray<StateStore.Entry> = yield* states.list(space, { after, limit: PAGE })
    const own = page.filter(({ key }) => webhookOf(key) === webhook)
    found.push(...own)
    const last = own.at(-1)
    if (last === undefined || own.length < PAGE) return found
    after = last.key
  }
})
