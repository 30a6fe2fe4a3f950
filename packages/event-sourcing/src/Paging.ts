/** Streams of events from a store that reads pages. */
import { Effect, Option, Stream } from "effect"
import type { Position, ReadStreamOptions, RecordedEvent, Revision } from "./EventStore.ts"

export interface Page {
  readonly events: ReadonlyArray<RecordedEvent>
  /** Whether this is the last page. A page without events always is. */
  readonly isLast: boolean
}

/** The place of a reader in a stream. */
export interface Place {
  readonly direction: "forwards" | "backwards"
  /** The next event to read. Undefined: the first event forwards, the last one backwards. */
  readonly from: Revision | undefined
  /** How many events are still wanted, at least 1. */
  readonly left: number
  readonly isFirstPage: boolean
}

/** The events of one stream, from pages of any size. */
export const ofStream = <E>(
  page: (place: Place) => Effect.Effect<Page, E>,
  { direction = "forwards", from, limit = Number.POSITIVE_INFINITY }: ReadStreamOptions = {}
): Stream.Stream<RecordedEvent, E> => {
  if (limit <= 0) return Stream.empty
  const first: Place = { direction, from, left: limit, isFirstPage: true }
  return Stream.paginate(first, (at) =>
    Effect.map(page(at), ({ events, isLast }) => {
      const last = events.at(-1)
      const next = last === undefined ? -1 : last.revision + (direction === "forwards" ? 1 : -1)
      const left = at.left - events.length
      const isEnd = isLast || next < 0 || left <= 0
      return [events, isEnd ? Option.none() : Option.some({ direction, from: next, left, isFirstPage: false })] as const
    })
  )
}

/** The events of the log after a position, including those appended during the read. */
export const ofLog = <E>(after: Position, page: (after: Position) => Effect.Effect<Page, E>): Stream.Stream<RecordedEvent, E> =>
  Stream.paginate(after, (seen) =>
    Effect.map(page(seen), ({ events, isLast }) => {
      const last = events.at(-1)
      return [events, last === undefined || isLast ? Option.none() : Option.some(last.position)] as const
    })
  )
