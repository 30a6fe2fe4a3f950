/** The places of the newest events, which the table `stream_index` does not have yet. A few thousand, in memory. */
import type { EventStore, Place } from "@millrace/event-sourcing"
import { Fault } from "./Fault.ts"

interface Run {
  readonly first: EventStore.Revision
  /** By revision, from the first. A revision that the file lacks is a hole. */
  readonly places: Array<Place>
}

export class UnindexedEvents {
  /** The last event of the index. */
  readonly after: Place
  readonly #filename: string
  /** The newest event. */
  #last: Place
  readonly #runs = new Map<number, Run>()

  constructor(filename: string, after: Place) {
    this.#filename = filename
    this.after = after
    this.#last = after
  }

  get last(): Place {
    return this.#last
  }

  /** Adds an event after the last one. Throws a {@link Fault} if the stream has its revision already. */
  add(stream: number, revision: EventStore.Revision, place: Place): void {
    const run = this.#runs.get(stream)
    if (run === undefined) this.#runs.set(stream, { first: revision, places: [place] })
    else {
      const at = revision - run.first
      if (at < run.places.length) throw new Fault(`${this.#filename} is corrupt: event ${place} repeats revision ${revision} of its stream`)
      run.places[at] = place
    }
    this.#last = place
  }

  /** The first revision of the stream here; Infinity if there is none. */
  firstOf(stream: number): EventStore.Revision {
    return this.#runs.get(stream)?.first ?? Infinity
  }

  /** The last revision of the stream, if it is here. */
  lastOf(stream: number): EventStore.Revision | undefined {
    const run = this.#runs.get(stream)
    return run && run.first + run.places.length - 1
  }

  /** The places of the revisions from `low` to `high` that are here, in order. */
  placesOf(stream: number, low: EventStore.Revision, high: EventStore.Revision): ReadonlyArray<Place> {
    const run = this.#runs.get(stream)
    return run?.places.slice(Math.max(0, low - run.first), Math.max(0, high + 1 - run.first)) ?? []
  }
}
