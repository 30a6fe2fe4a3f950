/** Events for tests, and functions that append them without a store. */
import { type EventStore, type StreamName, uuidv7 } from "@millrace/event-sourcing"
import { Effect, Stream } from "effect"
import type pg from "pg"

const newId = uuidv7(new Uint8Array(9))

let events = 0

export const event = (): EventStore.EventData => ({ id: newId(0), type: "Happened", data: `{"n":${events++}}`, metadata: "{}" })

export type Store = EventStore.EventStore["Service"]

/** Appends the first event of a stream with the store's own statement, in the current transaction of `db`. */
export const appendByHand = (db: pg.Client, schema: string, stream: StreamName.StreamName, one = event()) =>
  Effect.promise(() =>
    db.query(`SELECT * FROM ${schema}.append($1::text[], '{-1}', '{true}', '{1}', '{1}', $2::uuid[], '{Happened}', $3::text[], '{"{}"}')`, [
      [stream],
      [one.id],
      [one.data]
    ])
  )

export const run = (db: pg.Client, sql: string) => Effect.promise(() => db.query(sql))

export const idsOf = (all: ReadonlyArray<EventStore.EventData>) => all.map(({ id }) => id)

export const readAll = (store: Store, after: EventStore.Position) => Stream.runCollect(store.readAll(after))

/**
 * Appends `count` events one after another to a stream that has `from` events. An append that is in doubt or failed is sent again until it
 * is known to be written. Returns the ids in order; `trouble` gets each failure.
 */
export const persist = Effect.fnUntraced(function* (
  store: Store,
  stream: StreamName.StreamName,
  from: number,
  count: number,
  trouble: () => void = () => {}
) {
  const written: Array<string> = []
  let expected: EventStore.ExpectedRevision = from === 0 ? "noStream" : from - 1
  while (written.length < count) {
    const one = event()
    const again = Effect.gen(function* () {
      trouble()
      yield* Effect.sleep(10)
      return yield* send
    })
    const send: Effect.Effect<EventStore.Appended, EventStore.WrongRevision | EventStore.AppendTooLarge> = Effect.catchTags(
      store.append(stream, expected, [one]),
      { AppendInDoubt: () => again, StoreUnavailable: () => again }
    )
    expected = (yield* send).revision
    written.push(one.id)
  }
  return written
})

/** Repeats a check until it is true; dies after ten seconds. */
export const until = <E>(what: string, ask: Effect.Effect<boolean, E>): Effect.Effect<void, E> => {
  const again: Effect.Effect<void, E> = Effect.flatMap(ask, (is) => (is ? Effect.void : Effect.andThen(Effect.sleep(5), again)))
  return Effect.timeoutOrElse(again, { duration: "10 seconds", orElse: () => Effect.die(new Error(`Not within ten seconds: ${what}`)) })
}
