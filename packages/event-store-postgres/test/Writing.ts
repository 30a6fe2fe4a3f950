/** What tests write, and how they write by hand where a store would be too quick for them. */
import { type EventStore, type StreamName, uuidv7 } from "@millrace/event-sourcing"
import { Effect, Stream } from "effect"
import type pg from "pg"

const newId = uuidv7(new Uint8Array(9))

let events = 0

export const event = (): EventStore.EventData => ({ id: newId(0), type: "Happened", data: `{"n":${events++}}`, metadata: "{}" })

export type Store = EventStore.EventStore["Service"]

/** Appends a single event to the beginning of a stream, by the statement of the store, in whatever transaction `db` is. */
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
 * Appends `count` events one after another to a stream, which has `from` so far, each until it is known to be written: what is in doubt is sent again as it was,
 * what the store could not take is sent again later. Answers the ids, in order; `trouble` hears of each time.
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

/** Asks until it is so; ten seconds are more than anything should take. */
export const until = <E>(what: string, ask: Effect.Effect<boolean, E>): Effect.Effect<void, E> => {
  const again: Effect.Effect<void, E> = Effect.flatMap(ask, (is) => (is ? Effect.void : Effect.andThen(Effect.sleep(5), again)))
  return Effect.timeoutOrElse(again, { duration: "10 seconds", orElse: () => Effect.die(new Error(`Not within ten seconds: ${what}`)) })
}
