/**
 * The time of the server. A server tells it only by dating the events that it writes. So an event is written for this purpose and read
 * again, in a stream of which the server keeps the newest events (`$maxCount`). These events are not part of the log.
 */
import type { EventIds, EventStore } from "@millrace/event-sourcing"
import { Effect } from "effect"
import type { Clients } from "./Clients.ts"
import { Fault } from "./Driver.ts"
import * as OwnStreams from "./OwnStreams.ts"
import { CLOCK } from "./Selecting.ts"

const STREAM = "clock-server"

/** Events that are kept: so many hosts may ask at once, and each finds its own event. */
const KEPT = 100
/** Attempts to append while other hosts are faster. */
const ATTEMPTS = 20

export const make = (clients: Clients, newId: EventIds) => {
  const { append, keepNewest } = OwnStreams.make(clients, newId)
  let last: EventStore.ExpectedRevision = "noStream"
  let isBounded = false

  /**
   * Has the server date an event; answers the revision of the event. If an answer was lost, the expected revision is taken: the next attempt
   * goes on from the end of the stream.
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
    return yield* new Fault({ kind: "noAnswer", message: "The event that was dated is gone" })
  })

  return { ask, timeOf }
}
