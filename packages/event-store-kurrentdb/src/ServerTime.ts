/**
 * The time of the server: it dates each event as it writes it, and tells nothing of its clock otherwise. So one is written for that
 * alone, to a stream of which the server keeps the newest few (`$maxCount`), and read again. They are no part of the log.
 */
import type { EventIds, EventStore } from "@millrace/event-sourcing"
import { Clock, Effect } from "effect"
import type { Clients } from "./Clients.ts"
import { Fault } from "./Driver.ts"
import { CLOCK } from "./Selecting.ts"

const STREAM = "clock-server"

/** As many hosts may ask at once, and each find its own. */
const KEPT = 100
/** Each time another host is faster, it is tried again. */
const ATTEMPTS = 20

export interface ServerTime {
  /** Has an event dated: answers its place. */
  readonly ask: Effect.Effect<EventStore.Revision, Fault>
  /** What it was dated, in milliseconds since 1970. */
  readonly timeOf: (asked: EventStore.Revision) => Effect.Effect<number, Fault>
}

export const make = (clients: Clients, newId: EventIds): ServerTime => {
  let last: EventStore.ExpectedRevision = "noStream"
  let isBounded = false

  const append = (stream: string, expected: EventStore.ExpectedRevision, type: string, data: string) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) =>
      clients.call((driver) => driver.append(stream, expected, [{ id: newId(now), type, data, metadata: "" }]))
    )

  const isOvertaken = ({ kind }: Fault) => kind === "wrongRevision"

  /** An answer that was lost leaves a place that is taken: it goes on from where the stream ends. */
  const ask = Effect.suspend(() => append(STREAM, last, CLOCK, "{}")).pipe(
    Effect.tapError((fault) =>
      Effect.sync(() => {
        if (isOvertaken(fault)) last = fault.actual ?? "noStream"
      })
    ),
    Effect.retry({ while: isOvertaken, times: ATTEMPTS }),
    Effect.map(({ revision }) => {
      last = revision
      return revision
    })
  )

  const bound = append(`$$${STREAM}`, "noStream", "$metadata", `{"$maxCount":${KEPT}}`).pipe(
    // Somebody said so before
    Effect.catchIf(isOvertaken, () => Effect.void)
  )

  const timeOf = Effect.fnUntraced(function* (asked: EventStore.Revision) {
    const [event] = yield* clients.call((driver) => driver.readStream(STREAM, "forwards", asked, 1))
    if (!isBounded) {
      yield* bound
      isBounded = true
    }
    if (event?.revision === asked && Number.isFinite(event.created)) return event.created
    return yield* new Fault({ kind: "noAnswer", message: "The event that was dated is gone" })
  })

  return { ask, timeOf }
}
