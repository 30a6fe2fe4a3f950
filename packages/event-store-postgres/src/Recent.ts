/** The newest events of this process. Its followers need not read them from the server. */
import { type EventStore, type Place, placeOf, positionOf } from "@millrace/event-sourcing"
import { type Append, PAGE } from "./PostgresLog.ts"

/** The most events that are kept. */
const KEPT = 2_048

export class Recent {
  readonly #events = new Map<Place, EventStore.RecordedEvent>()

  /** Keeps the events of an append, which have consecutive positions up to `last`. */
  wrote({ stream, before, events }: Append, last: EventStore.Position): void {
    for (const [i, event] of events.entries()) {
      const place = placeOf(last) - events.length + 1 + i
      this.#events.set(place, { ...event, stream, revision: before + 1 + i, position: positionOf(place) })
    }
    for (const place of this.#events.keys()) {
      if (this.#events.size <= KEPT) break
      this.#events.delete(place)
    }
  }

  /** A page of the events after a position up to `head`; undefined unless this process wrote all of them. */
  between(after: EventStore.Position, head: EventStore.Position): ReadonlyArray<EventStore.RecordedEvent> | undefined {
    const events = []
    const last = placeOf(head)
    for (let place = placeOf(after) + 1; place <= last && events.length < PAGE; place++) {
      const event = this.#events.get(place)
      if (event === undefined) return undefined
      events.push(event)
    }
    return events.length === 0 ? undefined : events
  }
}
