/**
 * Many writers of one stream within one process. Sent all at once, they would fill the connection with calls that are out of date before
 * they are sent, and hardly any append would succeed. So they append in turn, and ask together where the stream ends.
 */
import type { EventStore } from "@millrace/event-sourcing"
import { Clock, Deferred, Effect } from "effect"
import { type Appended, Fault } from "./Driver.ts"

/**
 * Shares questions. All who ask while a question is on its way share the next one, which is sent when that is answered: so each answer is
 * newer than its question.
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
      // Detached: the first to ask may be interrupted while others wait for the same answer
      return Effect.andThen(Effect.forkDetach(put(key)), Deferred.await(answer))
    })
}

/** Streams that are remembered, and revisions of each. */
const STREAMS = 1_000
const REVISIONS = 16

/** Which event this process appended after which revision. An event never moves, so this never becomes wrong. */
class Known {
  readonly #streams = new Map<string, Map<EventStore.ExpectedRevision, string>>()

  add(stream: string, expected: EventStore.ExpectedRevision, id: string): void {
    const events = this.#streams.get(stream) ?? new Map<EventStore.ExpectedRevision, string>()
    this.#streams.delete(stream)
    this.#streams.set(stream, events.set(expected, id))
    dropOldest(events, REVISIONS)
    dropOldest(this.#streams, STREAMS)
  }

  isTaken(stream: string, expected: EventStore.ExpectedRevision, id: string): boolean {
    const there = this.#streams.get(stream)?.get(expected)
    return there !== undefined && there !== id
  }
}

const dropOldest = <Key>(map: Map<Key, unknown>, most: number): void => {
  for (const oldest of map.keys()) {
    if (map.size <= most) return
    map.delete(oldest)
  }
}

/** Appends in turn. `id` is that of the first event. */
export type InTurn = (
  stream: string,
  expected: EventStore.ExpectedRevision,
  id: string,
  send: Effect.Effect<Appended, Fault>
) => Effect.Effect<Appended, Fault>

/**
 * Sends the appends to one stream one after another. An append after a revision that is known to be followed by another event is not sent:
 * it fails with `wrongRevision` and what `last` answers. Nobody waits for a turn longer than `patience` milliseconds.
 */
export const make = (patience: number, last: (stream: string) => Effect.Effect<EventStore.ExpectedRevision, Fault>): InTurn => {
  const turns = new Map<string, Deferred.Deferred<void>>()
  const known = new Known()

  const take = (stream: string, send: Effect.Effect<Appended, Fault>): Effect.Effect<Appended, Fault> => {
    const over = Deferred.makeUnsafe<void>()
    turns.set(stream, over)
    const pass = Effect.sync(() => {
      if (turns.get(stream) === over) turns.delete(stream)
      Deferred.doneUnsafe(over, Effect.void)
    })
    return Effect.ensuring(send, pass)
  }

  return (stream, expected, id, send) =>
    Effect.flatMap(Clock.currentTimeMillis, (since) => {
      const attempt: Effect.Effect<Appended, Fault> = Effect.flatMap(Clock.currentTimeMillis, (now) => {
        if (known.isTaken(stream, expected, id))
          return Effect.flatMap(last(stream), (actual) =>
            Effect.fail(new Fault({ kind: "wrongRevision", message: "Another append came first", actual }))
          )
        const ahead = turns.get(stream)
        if (ahead !== undefined && now - since <= patience) return Effect.andThen(Deferred.await(ahead), attempt)
        return Effect.tap(take(stream, send), () => Effect.sync(() => known.add(stream, expected, id)))
      })
      return attempt
    })
}
