/** The events of one transaction of this process, still in memory. Followers right before them need not read them from the store. */
import type { Mutable } from "effect/Types"
import type * as EventStore from "./EventStore.ts"
import { type Place, positionOf } from "./LogPlace.ts"
import * as StreamName from "./StreamName.ts"

interface Append {
  readonly stream: StreamName.StreamName
  /** The revision of its first event. */
  readonly revision: EventStore.Revision
  readonly events: ReadonlyArray<EventStore.EventData>
}

export class WrittenEvents {
  /** The place before the first event. */
  readonly after: Place
  readonly #appends: Array<Append> = []
  #count = 0
  #events: ReadonlyArray<EventStore.RecordedEvent> | undefined
  readonly #kinds = new Kinds()

  constructor(after: Place) {
    this.after = after
  }

  /** Adds events at the places after the last one. Only before the first read. */
  add(stream: StreamName.StreamName, revision: EventStore.Revision, events: ReadonlyArray<EventStore.EventData>): void {
    this.#appends.push({ stream, revision, events })
    this.#count += events.length
    this.#kinds.note(stream, events)
  }

  /** How many events there are. */
  get size(): number {
    return this.#count
  }

  /** The position of the last event. */
  get end(): EventStore.Position {
    return positionOf(this.after + this.#count)
  }

  /** The events as the store has them. Made once, for all followers. */
  get events(): ReadonlyArray<EventStore.RecordedEvent> {
    this.#events ??= recorded(this.after, this.#appends)
    return this.#events
  }

  /** False only if no event matches the selection. */
  mayMatch({ categories, types }: EventStore.Selection): boolean {
    return meets(this.#kinds.types, types) && meets(this.#kinds.categories, categories)
  }
}

const recorded = (after: Place, appends: ReadonlyArray<Append>): ReadonlyArray<EventStore.RecordedEvent> => {
  const all: Array<EventStore.RecordedEvent> = []
  let place = after
  for (const { events, revision: first, stream } of appends) {
    let revision = first
    for (const { id, type, data, metadata, decided } of events) {
      const event: Mutable<EventStore.RecordedEvent> = {
        id,
        type,
        data,
        metadata,
        stream,
        revision: revision++,
        position: positionOf(++place)
      }
      if (decided !== undefined) event.decided = decided
      all.push(event)
    }
  }
  return all
}

/**
 * The types and the categories that occur: few, however many the events. They are noted while the events are added, because a thousand
 * appends later the events are not in the processor's cache any more.
 */
class Kinds {
  readonly types = new Set<string>()
  readonly categories = new Set<string>()
  /** Those of the last event. Most events are of the kind of the one before. */
  #type: string | undefined
  #isOfCategory = (_: StreamName.StreamName) => false

  note(stream: StreamName.StreamName, events: ReadonlyArray<EventStore.EventData>): void {
    if (!this.#isOfCategory(stream)) {
      const category = StreamName.category(stream)
      this.categories.add(category)
      this.#isOfCategory = StreamName.isOf(category)
    }
    for (const { type } of events) {
      if (type === this.#type) continue
      this.types.add(type)
      this.#type = type
    }
  }
}

const meets = (there: ReadonlySet<string>, wanted: ReadonlyArray<string> | undefined): boolean =>
  wanted === undefined || wanted.some((one) => there.has(one))
