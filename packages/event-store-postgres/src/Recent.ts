/** The newest events of this process. Its followers need not read them from the server. */
import { type EventStore, type Place, placeOf, positionOf } from "@millrace/event-sourcing"
import { type Append, type Outcome, PAGE } from "./PostgresLog.ts"

/** The most events that are kept. */
const KEPT = 2_048

export class Recent {
  readonly #events = new Map<Place, EventStore.RecordedEvent>()
  #last: EventStore.Position | undefined

  /** The newest event that an append of this process has written, or has found written. */
  get last(): EventStore.Position | undefined {
    return this.#last
  }

  /** Keeps the events that a group of appends has written. */
  wrote(group: ReadonlyArray<Append>, outcomes: ReadonlyArray<Outcome>): void {
    for (const [i, append] of group.entries()) {
      const outcome = outcomes[i]
      if (outcome === undefined || "actual" in outcome) continue
      if (this.#last === undefined || outcome.position > this.#last) this.#last = outcome.position
      // A repeated append has the same ids as the stored events, but perhaps other data
      if (outcome.isNew) this.#keep(append, placeOf(outcome.position) - append.events.length)
    }
    for (const place of this.#events.keys()) {
      if (this.#events.size <= KEPT) break
      this.#events.delete(place)
    }
  }

  /** Keeps the events of an append, which are at the places after `place`. */
  #keep({ stream, before, events }: Append, place: Place): void {
    let revision = before
    for (const { id, type, data, metadata } of events) {
      const position = positionOf(++place)
      this.#events.set(place, { id, type, data, metadata, stream, revision: ++revision, position })
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
