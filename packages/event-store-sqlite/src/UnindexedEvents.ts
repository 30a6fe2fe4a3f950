/** The places of the newest events, which the table `stream_index` does not have yet. A few thousand, in memory. */
import type { EventStore, Place } from "@millrace/event-sourcing"

interface Run {
  readonly first: EventStore.Revision
  /** By revision, from the first. A revision that the file lacks is a hole. */
  readonly places: Array<Place>
}

export class UnindexedEvents {
  /** The last event of the index. */
  readonly after: Place
  /** The newest event. */
  #last: Place
  #repeated: Place | undefined
  readonly #runs = new Map<number, Run>()

  constructor(after: Place) {
    this.after = after
    this.#last = after
  }

  get last(): Place {
    return this.#last
  }

  /** An event whose stream already had its revision, which only another program can write. */
  get repeated(): Place | undefined {
    return this.#repeated
  }

  /** Adds an event after the last one. */
  add(stream: number, revision: EventStore.Revision, place: Place): void {
    const run = this.#runs.get(stream)
    if (run === undefined) this.#runs.set(stream, { first: revision, places: [place] })
    else {
      const at = revision - run.first
      if (at < run.places.length) this.#repeated ??= place
      else run.places[at] = place
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
