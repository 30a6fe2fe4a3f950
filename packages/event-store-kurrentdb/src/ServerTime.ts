/**
 * The time of the server. The only source is the date that the server gives to an event. So the store appends an event for this purpose and
 * reads it back, in a stream of which the server keeps the newest events (`$maxCount`). These events are not part of the log.
 */
import type { EventIds, EventStore } from "@millrace/event-sourcing"
import { Effect } from "effect"
import type { Clients } from "./Clients.ts"
import { Fault } from "./Driver.ts"
import * as OwnStreams from "./OwnStreams.ts"
import { CLOCK } from "./Selecting.ts"

const STREAM = "clock-server"

/** Events that the server keeps: this many hosts can ask at once, and each finds its own event. */
const KEPT = 100
/** Attempts to append while other hosts append first. */
const ATTEMPTS = 20

export const make = (clients: Clients, newId: EventIds) => {
  const { append, keepNewest } = OwnStreams.make(clients, newId)
  let last: EventStore.ExpectedRevision = "noStream"
  let isBounded = false

  /**
   * Appends an event and returns its revision. If an answer was lost, the expected revision is outdated, and the next attempt uses the
   * actual end of the stream.
   */
  const ask = Effect.suspend(() => append(STREAM, last, CLOCK, "{}")).pipe(
    Effect.tapError((fault) =>
      Effect.sync(() => {
        if (OwnStreams.isOvertaken(fault)) last = fault.actual ?? "noStream"
      })
    ),
    Effect.retry({ while: OwnStreams.isOvertaken, times: ATTEMPTS }),
    Effect.map(({ revision }) => {
      last = revision
      return revision
    })
  )

  /** The date of that event, in milliseconds since 1970. */
  const timeOf = Effect.fnUntraced(function* (asked: EventStore.Revision) {
    const [event] = yield* clients.call((driver) => driver.readStream(STREAM, "forwards", asked, 1))
    if (!isBounded) {
      yield* keepNewest(STREAM, KEPT)
      isBounded = true
    }
    if (event?.revision === asked && Number.isFinite(event.created)) return event.created
    return yield* new Fault({ kind: "noAnswer", message: "The event that tells the server's time is gone" })
  })

  return { ask, timeOf }
}
