/** The events that this process wrote last. Followers in this process need not read them back. */
import { type EventStore, type Place, placeOf, positionOf } from "@millrace/event-sourcing"
import { type Append, PAGE } from "./PostgresLog.ts"

/** Events that are kept. */
const KEPT = 2_048

export class Recent {
  readonly #events = new Map<Place, EventStore.RecordedEvent>()

  /** Keeps the events of an append whose last event is at `last`: they stand there one after another. */
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

  /** A page of the events after a position up to `head`; undefined unless all of them were written here. */
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
