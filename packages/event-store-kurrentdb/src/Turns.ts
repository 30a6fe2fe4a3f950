/**
 * Orders the appends of many writers to one stream within one process. Sent all at once, most of them would expect an outdated revision,
 * and hardly any would succeed. So the writers append in turn, and share the reads of the stream's end.
 */
import type { EventStore } from "@millrace/event-sourcing"
import { Clock, Deferred, Effect } from "effect"
import { type Appended, Fault } from "./Driver.ts"

/**
 * Shares requests by key. Callers that ask while a request is under way share the next one, which starts when the first has ended. So each
 * result is newer than the call that asked for it.
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

  // Uninterruptible, or an interruption before the request begins would leave all later callers waiting for ever
  return (key) =>
    Effect.uninterruptibleMask((restore) => {
      const answer = waiting.get(key) ?? Deferred.makeUnsafe<A, E>()
      waiting.set(key, answer)
      const answered = restore(Deferred.await(answer))
      if (asking.has(key)) return answered
      asking.add(key)
      // Detached, because the first caller may be interrupted while others wait for the same result
      return Effect.andThen(Effect.forkDetach(put(key)), answered)
    })
}

/** Streams that are remembered, and revisions of each stream. */
const STREAMS = 1_000
const REVISIONS = 16

/** The first event that this process appended after each revision. Events never move, so an entry stays true. */
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

/** Sends an append when its turn comes. `id`: the id of its first event. */
export type InTurn = (
  stream: string,
  expected: EventStore.ExpectedRevision,
  id: string,
  send: Effect.Effect<Appended, Fault>
) => Effect.Effect<Appended, Fault>

/**
 * Sends the appends to one stream one after another. If this process has appended another event at the expected revision, the append is
 * not sent: it fails with `wrongRevision` and the result of `last`. A turn is waited for at most `patience` milliseconds.
 */
export const make = (patience: number, last: (stream: string) => Effect.Effect<EventStore.ExpectedRevision, Fault>): InTurn => {
  const turns = new Map<string, Deferred.Deferred<void>>()
  const known = new Known()

  /** An interruption at any moment passes the turn on. */
  const take = (stream: string, send: Effect.Effect<Appended, Fault>): Effect.Effect<Appended, Fault> =>
    Effect.acquireUseRelease(
      Effect.sync(() => {
        const over = Deferred.makeUnsafe<void>()
        turns.set(stream, over)
        return over
      }),
      () => send,
      (over) =>
        Effect.sync(() => {
          if (turns.get(stream) === over) turns.delete(stream)
          Deferred.doneUnsafe(over, Effect.void)
        })
    )

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
