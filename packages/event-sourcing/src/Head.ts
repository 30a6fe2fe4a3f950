/** The end of a growing log, and how a subscription follows it. */
import { Effect, Stream } from "effect"
import type { Batch, Position, RecordedEvent } from "./EventStore.ts"

export class Head {
  position: Position
  readonly #waiting = new Set<() => void>()

  constructor(position: Position) {
    this.position = position
  }

  advance(position: Position): void {
    if (position <= this.position) return
    this.position = position
    // A copy, because a resumed waiter may wait again before this loop ends
    for (const resume of [...this.#waiting]) resume()
  }

  /** Waits until something was written after `position`. */
  past(position: Position): Effect.Effect<void> {
    return Effect.callback((resume) => {
      if (this.position > position) return resume(Effect.void)
      const go = () => {
        this.#waiting.delete(go)
        resume(Effect.void)
      }
      this.#waiting.add(go)
      return Effect.sync(() => this.#waiting.delete(go))
    })
  }
}

/** Reads page after page. After an empty page, which is the end, it waits for the head to move. */
export const follow = <E>(
  after: Position,
  head: Head,
  page: (after: Position) => Effect.Effect<ReadonlyArray<RecordedEvent>, E>
): Stream.Stream<Batch, E> => {
  type Seen = { readonly position: Position; readonly live: boolean }
  const next = (seen: Seen): Effect.Effect<readonly [Batch, Seen], E> => {
    const newer = seen.live ? Effect.andThen(head.past(seen.position), page(seen.position)) : page(seen.position)
    return Effect.flatMap(newer, (events): Effect.Effect<readonly [Batch, Seen], E> => {
      const last = events.at(-1)
      if (last !== undefined)
        return Effect.succeed([
          { events, live: seen.live },
          { position: last.position, live: seen.live }
        ])
      if (seen.live) return next(seen)
      return Effect.succeed([
        { events, live: true },
        { position: seen.position, live: true }
      ])
    })
  }
  return Stream.unfold({ position: after, live: false } as Seen, next)
}
