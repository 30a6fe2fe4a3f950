/** What this process wrote last, which need not be read back by those who follow the log here. */
import type { EventStore } from "@millrace/event-sourcing"
import { type Append, PAGE, type Place, positionOf } from "./PostgresLog.ts"

/** Events that are kept. */
const KEPT = 2_048

export class Recent {
  readonly #events = new Map<Place, EventStore.RecordedEvent>()

  /** An append, whose last event the log has at `last`: its events stand there one after another. */
  wrote({ stream, before, events }: Append, last: Place): void {
    for (const [i, event] of events.entries()) {
      const place = last - events.length + 1 + i
      this.#events.set(place, { ...event, stream, revision: before + 1 + i, position: positionOf(place) })
    }
    for (const place of this.#events.keys()) {
      if (this.#events.size <= KEPT) break
      this.#events.delete(place)
    }
  }

  /** What stands after a place up to `head`, or the beginning of it; undefined unless all of it was written here. */
  between(after: Place, head: Place): ReadonlyArray<EventStore.RecordedEvent> | undefined {
    const events = []
    for (let place = after + 1; place <= head && events.length < PAGE; place++) {
      const event = this.#events.get(place)
      if (event === undefined) return undefined
      events.push(event)
    }
    return events.length === 0 ? undefined : events
  }
}
