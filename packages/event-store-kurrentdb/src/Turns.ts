/**
 * What many ask of the server at once within one process, asked once: a crowd at one stream would otherwise fill the connection with
 * calls whose answers are old before they are sent, and hardly any of its appends would get through.
 */
import type { EventStore } from "@millrace/event-sourcing"
import { Clock, Deferred, Effect } from "effect"
import { type Appended, Fault } from "./Driver.ts"

/**
 * Everybody who asks while a question is on its way shares the next one, which is put when that is answered: so each answer is newer
 * than the asking.
 */
export const shared = <Key, A, E>(ask: (key: Key) => Effect.Effect<A, E>): ((key: Key) => Effect.Effect<A, E>) => {
  const waiting = new Map<Key, Deferred.Deferred<A, E>>()
  const asking = new Set<Key>()

  const put = (key: Key): Effect.Effect<void> =>
    Effect.suspend(() => {
      const answer = waiting.get(key)
      if (answer === undefined) {
        asking.delete(key)
        return Effect.void
      }
      waiting.delete(key)
      return Effect.exit(ask(key)).pipe(
        Effect.flatMap((exit) => Deferred.done(answer, exit)),
        Effect.andThen(put(key))
      )
    })

  return (key) =>
    Effect.suspend(() => {
      const answer = waiting.get(key) ?? Deferred.makeUnsafe<A, E>()
      waiting.set(key, answer)
      if (asking.has(key)) return Deferred.await(answer)
      asking.add(key)
      // Whoever was first may leave: the others wait for it as well
      return Effect.andThen(Effect.forkDetach(put(key)), Deferred.await(answer))
    })
}

/** Streams, and places in each, that are remembered. */
const STREAMS = 1_000
const PLACES = 16

/** Which event this process put where: what stands in a stream stands there for ever. */
class Known {
  readonly #places = new Map<string, Map<EventStore.ExpectedRevision, string>>()

  add(stream: string, expected: EventStore.ExpectedRevision, id: string): void {
    const places = this.#places.get(stream) ?? new Map()
    this.#places.delete(stream)
    this.#places.set(stream, places.set(expected, id))
    dropOldest(places, PLACES)
    dropOldest(this.#places, STREAMS)
  }

  isTaken(stream: string, expected: EventStore.ExpectedRevision, id: string): boolean {
    const there = this.#places.get(stream)?.get(expected)
    return there !== undefined && there !== id
  }
}

const dropOldest = <Key>(map: Map<Key, unknown>, most: number): void => {
  for (const oldest of map.keys()) {
    if (map.size <= most) return
    map.delete(oldest)
  }
}

/**
 * Appends to one stream go one after another, and those that would put an event where another is known to stand need not go: they only
 * ask where the stream ends. Nobody waits longer than `patience` milliseconds.
 */
export const make = (patience: number, last: (stream: string) => Effect.Effect<EventStore.ExpectedRevision, Fault>) => {
  const turns = new Map<string, Deferred.Deferred<void>>()
  const known = new Known()

  const take = (stream: string, send: Effect.Effect<Appended, Fault>): Effect.Effect<Appended, Fault> => {
    const over = Deferred.makeUnsafe<void>()
    turns.set(stream, over)
    return Effect.ensuring(
      send,
      Effect.suspend(() => {
        if (turns.get(stream) === over) turns.delete(stream)
        return Deferred.succeed(over, undefined)
      })
    )
  }

  /** `id` is that of the first event. */
  return (
    stream: string,
    expected: EventStore.ExpectedRevision,
    id: string,
    send: Effect.Effect<Appended, Fault>
  ): Effect.Effect<Appended, Fault> =>
    Effect.gen(function* () {
      const clock = yield* Clock.Clock
      const since = clock.currentTimeMillisUnsafe()
      for (;;) {
        if (known.isTaken(stream, expected, id)) {
          const actual = yield* last(stream)
          return yield* Effect.fail(new Fault({ kind: "wrongRevision", message: "Another append came first", actual }))
        }
        const ahead = turns.get(stream)
        if (ahead !== undefined && clock.currentTimeMillisUnsafe() - since <= patience) {
          yield* Deferred.await(ahead)
          continue
        }
        const appended = yield* take(stream, send)
        known.add(stream, expected, id)
        return appended
      }
    })
}
