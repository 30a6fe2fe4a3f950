/**
 * Searches the log across accounts: for the outcome of a request or a reservation, and for the account of a lot. It reads the log from its
 * start, without an index, so it is for operators and auditors, not for calls. Only events that contain the sought text are decoded.
 */

import { EventStore, StreamName } from "@millrace/event-sourcing"
import { Effect, Stream } from "effect"
import { Account } from "./Account.ts"
import type { AccountEvent, EventOf } from "./AccountEvent.ts"

/** A reservation: its hold, and every event about it up to the last refund. */
export interface ReservationHistory {
  readonly accountId: string
  readonly hold: EventOf<"CreditReserved">
  readonly events: ReadonlyArray<{ readonly recorded: EventStore.RecordedEvent; readonly event: AccountEvent }>
}

const { codec } = Account

/** The events of accounts that mention a text; `before`: only those before the first event of that category. */
const mentions = (text: string, before?: string) =>
  Effect.flatMap(EventStore.EventStore, (store) => {
    const log = store.readAll(EventStore.start)
    const part = before === undefined ? log : Stream.takeWhile(log, ({ stream }) => StreamName.category(stream) !== before)
    return Stream.runCollect(
      Stream.filter(part, ({ data, stream }) => data.includes(text) && StreamName.category(stream) === Account.category)
    )
  })

/** All reservations of a request (each retry makes one), or the reservation of an id, in the order of the log. */
export const reservations = (
  sought: { readonly requestId: string } | { readonly reservationId: string }
): Effect.Effect<ReadonlyArray<ReservationHistory>, EventStore.StoreUnavailable, EventStore.EventStore> =>
  Effect.gen(function* () {
    if ("requestId" in sought) {
      const holds = (yield* mentions(JSON.stringify(sought.requestId))).flatMap((recorded) => {
        const event = codec.decode(recorded.type, recorded.data)
        return event._tag === "CreditReserved" && event.requestId === sought.requestId ? [event.reservationId] : []
      })
      return (yield* Effect.forEach(holds, (reservationId) => reservations({ reservationId }))).flat()
    }
    const { reservationId } = sought
    const events = (yield* mentions(JSON.stringify(reservationId)))
      .map((recorded) => ({ recorded, event: codec.decode(recorded.type, recorded.data) }))
      .filter(({ event }) => "reservationId" in event && event.reservationId === reservationId)
    const [first] = events
    return first?.event._tag === "CreditReserved" ? [{ accountId: StreamName.id(first.recorded.stream), hold: first.event, events }] : []
  })

const GRANTS = codec.typesOf(["CreditsGranted"])

/** The account that a lot was granted to; `before`: as the log was before its first event of that category. */
export const accountOfLot = (
  lotId: string,
  { before }: { readonly before?: string } = {}
): Effect.Effect<string | undefined, EventStore.StoreUnavailable, EventStore.EventStore> =>
  Effect.map(mentions(JSON.stringify(lotId), before), (events) => {
    const grant = events.find(({ type, data }) => {
      if (!GRANTS.has(type)) return false
      const event = codec.decode(type, data)
      return event._tag === "CreditsGranted" && event.lotId === lotId
    })
    return grant && StreamName.id(grant.stream)
  })
