/** The contract of event stores: what is written is read back byte for byte. */
import assert from "node:assert/strict"
import { StreamName } from "@millrace/event-sourcing"
import { Effect } from "effect"
import fc from "fast-check"
import { nth, property } from "./Contract.ts"
import {
  type Batch,
  contents,
  type EventData,
  followed,
  freshEvent,
  freshEvents,
  freshStream,
  ids,
  newId,
  readAllOf,
  readLog,
  type StoreContract
} from "./EventStoreFixtures.ts"

export const content: StoreContract = {
  "is every byte of data and metadata": (store) =>
    Effect.gen(function* () {
      const texts = [
        `{"b":1,"a":{"z":[],"y":{}}}`,
        `{"2":"key order","10":0,"1":0}`,
        `{"float":1.0,"big":1e21,"more":1E+2,"minus":-0,"long":12345678901234567890.123456789,"twice":1,"twice":2}`,
        `{ "white" : [ 1 ,\t2 ] }`,
        `{"escaped":"\\u0000 \\ud800 \\udc00\\ud83d \\/ \\u00e9 \\n"}`,
        `{"plain":"é e\u0301 \u{1f469}\u200d\u{1f680} \u2028 \ufeff \uffff \u{10ffff} '; -- \\\\"}`,
        JSON.stringify({ lone: "\ud800", nul: "\u0000", long: "\u{1f600}x".repeat(20_000) })
      ]
      for (const text of texts) {
        const stream = yield* freshStream
        const event = yield* freshEvent
        const type = `Type of ${text.slice(0, 9)} \u{1f600}`
        const batch: Batch = [
          { ...event, type, data: text, metadata: text },
          { ...(yield* freshEvent), data: "null" },
          { ...(yield* freshEvent), data: `"text"` }
        ]
        yield* store.append(stream, "noStream", batch)
        assert.deepEqual(contents(yield* readAllOf(store, stream)), batch)
      }
    }),

  "is any JSON, byte for byte, in a stream as in the log": (store) =>
    property(
      fc.array(fc.tuple(fc.json(), fc.dictionary(fc.string({ unit: "binary" }), fc.jsonValue())), { minLength: 1, maxLength: 8 }),
      25,
      (all) =>
        Effect.gen(function* () {
          const stream = yield* freshStream
          const events = yield* Effect.forEach(all, ([data, metadata]) =>
            Effect.map(freshEvent, (event): EventData => ({ ...event, data, metadata: JSON.stringify(metadata) }))
          )
          const before = yield* store.head
          yield* store.append(stream, "noStream", [nth(events, 0), ...events.slice(1)])
          const read = yield* readAllOf(store, stream)
          assert.deepEqual(contents(read), events)
          assert.deepEqual(yield* readLog(store, before, stream, (seen) => seen.length >= events.length), read)
        })
    ),

  "stays apart by stream, however much the names are alike": (store) =>
    Effect.gen(function* () {
      const unique = yield* newId
      const ends = [
        "it's",
        `"quoted"`,
        "a'; DROP TABLE events; --",
        "%",
        "_",
        "$1",
        "?",
        ":name",
        "\\",
        "\\'",
        "../..",
        "a--b-",
        "*",
        "{}",
        "[0]",
        "x",
        "X",
        "x ",
        " x",
        "é",
        "e\u0301",
        "ß",
        "ss",
        "ı",
        "i",
        "\u{1f469}\u200d\u{1f680}",
        "\u{1f469}",
        "\u200f\u05d0",
        "\uffff",
        "\u{10ffff}"
      ]
      const names = ends.map((end): StreamName.StreamName => `suite-${unique}${end}`)
      const room = StreamName.MAX_LENGTH - `suite-${unique}`.length
      for (const letter of ["y", "\u20ac"]) {
        names.push(
          `suite-${unique}${letter.repeat(room)}`,
          `suite-${unique}${letter.repeat(room - 1)}`,
          `suite-${unique}${letter.repeat(room - 1)}z`
        )
      }
      names.push(`Suite-${unique}x`, `suite'"é-${unique}x`)
      const before = yield* store.head
      const batches = yield* Effect.forEach(names, () => freshEvents(2))
      yield* Effect.forEach(names, (stream, i) => store.append(stream, "noStream", nth(batches, i)), { concurrency: "unbounded" })
      for (const [i, stream] of names.entries()) {
        assert.deepEqual(ids(yield* readAllOf(store, stream)), ids(nth(batches, i)))
        assert.equal(yield* store.lastRevision(stream), 1)
      }
      const log = yield* followed(store, before, names, names.length * 2)
      for (const { id, stream } of log) assert(nth(batches, names.indexOf(stream)).some((event) => event.id === id))
    })
}
