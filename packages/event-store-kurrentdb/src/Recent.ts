/** The newest events of the log, in memory, for followers that are close to its end. */
import type { EventStore } from "@millrace/event-sourcing"
import { PAGE } from "./KurrentLog.ts"

/** The most events that are kept, and the most characters in them. */
const KEPT = 4_096
const KEPT_SIZE = 16_000_000

/** All events after some position, without gaps. */
export class Recent {
  #since: EventStore.Position | undefined
  #events: Array<EventStore.RecordedEvent> = []
  #size = 0

  begin(since: EventStore.Position): void {
    this.#since = since
    this.#events = []
    this.#size = 0
  }

  add(event: EventStore.RecordedEvent): void {
    this.#events.push(event)
    this.#size += event.data.length + event.metadata.length
    if (this.#events.length <= KEPT && this.#size <= KEPT_SIZE) return
    const dropped = this.#events.splice(0, Math.ceil(this.#events.length / 2))
    this.#since = dropped.at(-1)?.position
    this.#size = this.#events.reduce((sum, { data, metadata }) => sum + data.length + metadata.length, 0)
  }

  /** A page of the events after a position; empty if some of them are no longer kept, so that the caller reads the log. */
  after(position: EventStore.Position): ReadonlyArray<EventStore.RecordedEvent> {
    if (this.#since === undefined || position < this.#since) return []
    let low = 0
    let high = this.#events.length
    while (low < high) {
      const middle = (low + high) >> 1
      const there = this.#events[middle]
      if (there !== undefined && there.position > position) high = middle
      else low = middle + 1
    }
    return this.#events.slice(low, low + PAGE)
  }
}
