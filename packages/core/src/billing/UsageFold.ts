/** Folds the events of an account into the usage of a month, by operation. */
import { Aggregate, type EventStore, HashChain, type StreamName } from "@millrace/event-sourcing"
import { Effect, Option, Schema, Stream } from "effect"
import * as Credits from "../Credits.ts"
import { Account } from "../ledger/Account.ts"
import type { EventOf } from "../ledger/AccountEvent.ts"
import { type Timestamp, toIso } from "../Timestamp.ts"
import { countDay, type Days, MOVING } from "./UsageDays.ts"

/** A month of UTC, such as `2026-11`. */
export type Month = string

export const monthOf = (at: Timestamp): Month => toIso(at).slice(0, 7)

/**
 * The usage of one operation. A charge counts in the month of its settlement and a refund in the month of the refund, so a past month never
 * changes. Free calls leave no event in the ledger, so they are not counted.
 */
export const OperationUsage = Schema.Struct({
  /** The operation's key. */
  operation: Schema.String,
  /** Charged calls. */
  calls: Schema.Int,
  /** Charged units. */
  units: Schema.Int,
  charged: Credits.Credits,
  /** Refunds of charges of this month or an earlier one. */
  refunded: Credits.Credits,
  /** Calls that failed or were cancelled, so their hold was released in full. */
  uncharged: Schema.Int
})
export type OperationUsage = typeof OperationUsage.Type

export type Operations = Map<string, OperationUsage>

/** The used operations, sorted by key. */
export const listed = (operations: Operations): ReadonlyArray<OperationUsage> =>
  [...operations.values()].sort((a, b) => (a.operation < b.operation ? -1 : 1))

type Events = EventStore.EventStore["Service"]
type Recorded = EventStore.RecordedEvent
type Ending = EventOf<"OperationSucceeded"> | EventOf<"Refunded">

const unused = (operation: string): OperationUsage => ({
  operation,
  calls: 0,
  units: 0,
  charged: Credits.zero,
  refunded: Credits.zero,
  uncharged: 0
})

const evolve = (usage: OperationUsage, event: Ending): OperationUsage => {
  if (event._tag === "OperationSucceeded") {
    const { charged, quantity } = event
    return { ...usage, calls: usage.calls + 1, units: usage.units + quantity, charged: Credits.of(usage.charged + charged) }
  }
  return event.stage === "reserved"
    ? { ...usage, uncharged: usage.uncharged + 1 }
    : { ...usage, refunded: Credits.of(usage.refunded + event.amount) }
}

// reading the account's stream

/** The month of an event. Events of an account are in the order of time. */
export const monthOfEvent = (event: Recorded): Month => HashChain.atOf(event).slice(0, 7)

export const eventAt = (events: Events, stream: StreamName.StreamName, revision: EventStore.Revision) =>
  Stream.runHead(events.readStream(stream, { from: revision, limit: 1 }))

/** The first revision of a month or of a later one, by binary search. */
export const firstRevisionOf = Effect.fnUntraced(function* (events: Events, stream: StreamName.StreamName, month: Month) {
  const last = yield* events.lastRevision(stream)
  let low = 0
  let high = last === "noStream" ? 0 : last + 1
  while (low < high) {
    const middle = (low + high) >>> 1
    const isBefore = Option.exists(yield* eventAt(events, stream, middle), (event) => monthOfEvent(event) < month)
    if (isBefore) low = middle + 1
    else high = middle
  }
  return low
})

const { codec } = Account
const RESERVED = codec.typesOf(["CreditReserved"])
const COUNTED = codec.typesOf(["CreditReserved", ...MOVING])

const decode = (event: Recorded) =>
  Effect.try({
    try: () => codec.decode(event.type, event.data),
    catch: (error) => new Aggregate.StreamRefused({ stream: event.stream, revision: event.revision, reason: String(error) })
  })

/** A charge, a release or a refund. `operation`: undefined if its reservation was made before the events read so far. */
interface Ended {
  readonly event: Ending
  readonly revision: EventStore.Revision
  readonly operation: string | undefined
}

/** The endings in a page. It updates the days, and `holds`: the operations of open reservations. */
const endingsIn = Effect.fnUntraced(function* (page: ReadonlyArray<Recorded>, holds: Map<string, string>, days: Days) {
  const endings: Array<Ended> = []
  for (const recorded of page) {
    if (!COUNTED.has(recorded.type)) continue
    const event = yield* decode(recorded)
    if (event._tag === "CreditReserved") holds.set(event.reservationId, event.operation)
    else countDay(days, HashChain.atOf(recorded).slice(0, 10), event)
    if (event._tag !== "OperationSucceeded" && event._tag !== "Refunded") continue
    endings.push({ event, revision: recorded.revision, operation: holds.get(event.reservationId) })
    holds.delete(event.reservationId)
  }
  return endings
})

/** The operations of reservations by their endings. Reads backwards, because most reservations were made shortly before. */
const operationsBefore = Effect.fnUntraced(function* (events: Events, stream: StreamName.StreamName, endings: ReadonlyArray<Ended>) {
  const found = new Map<string, string>()
  const sought = new Set(endings.map(({ event }) => event.reservationId))
  const before = endings.at(-1)?.revision ?? 0
  if (before === 0) return found
  yield* Stream.runForEachWhile(events.readStream(stream, { from: before - 1, direction: "backwards" }), (recorded) =>
    !RESERVED.has(recorded.type)
      ? Effect.succeed(true)
      : Effect.map(decode(recorded), (event) => {
          if (event._tag === "CreditReserved" && sought.has(event.reservationId)) found.set(event.reservationId, event.operation)
          return found.size < sought.size
        })
  )
  return found
})

/** What a fold of a month counts. */
export interface Counts {
  readonly operations: Operations
  readonly days: Days
}

/** Counts a page of events. `holds`: the operations of open reservations, which it updates. */
export const count = Effect.fnUntraced(function* (
  events: Events,
  stream: StreamName.StreamName,
  { days, operations }: Counts,
  holds: Map<string, string>,
  page: ReadonlyArray<Recorded>
) {
  const endings = yield* endingsIn(page, holds, days)
  const unknown = endings.filter(({ operation }) => operation === undefined)
  const earlier = yield* operationsBefore(events, stream, unknown)
  for (const { event, revision, operation = earlier.get(event.reservationId) } of endings) {
    if (operation === undefined)
      return yield* new Aggregate.StreamRefused({ stream, revision, reason: `Reservation ${event.reservationId} was never made` })
    operations.set(operation, evolve(operations.get(operation) ?? unused(operation), event))
  }
})
