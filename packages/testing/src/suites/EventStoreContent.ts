/** The contract of event stores: what is written is read back byte for byte. */
import assert from "node:assert/strict"
import { StreamName } from "@millrace/event-sourcing"
import { Effect } from "effect"
import fc from "fast-check"
import { atOnce, nth, property } from "./Contract.ts"
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
  *"keeps every byte of data and metadata"(store) {
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
  },

  *"keeps any JSON byte for byte, in the stream and in the log"(store) {
    yield* property(
      fc.array(fc.tuple(fc.json(), fc.dictionary(fc.string({ unit: "binary" }), fc.jsonValue())), { minLength: 1, maxLength: 8 }),
      25,
      function* (all) {
        const stream = yield* freshStream
        const events = yield* Effect.forEach(all, ([data, metadata]) =>
          Effect.map(freshEvent, (event): EventData => ({ ...event, data, metadata: JSON.stringify(metadata) }))
        )
        const before = yield* store.head
        yield* store.append(stream, "noStream", [nth(events, 0), ...events.slice(1)])
        const read = yield* readAllOf(store, stream)
        assert.deepEqual(contents(read), events)
        assert.deepEqual(yield* readLog(store, before, stream, (seen) => seen.length >= events.length), read)
      }
    )
  },

  *"separates streams with similar names"(store) {
    const unique = yield* newId
    // The characters one by one, and names that differ in little
    const ends = [
      ...[..."%_?\\*xXéßıi\u{1f469}\uffff\u{10ffff}"],
      ...["it's", `"quoted"`, "a'; DROP TABLE events; --", "$1", ":name", "\\'", "../..", "a--b-", "{}", "[0]", "x ", " x"],
      ...["e\u0301", "ss", "\u{1f469}\u200d\u{1f680}", "\u200f\u05d0"]
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
    yield* Effect.forEach(names, (stream, i) => store.append(stream, "noStream", nth(batches, i)), atOnce)
    for (const [i, stream] of names.entries()) {
      assert.deepEqual(ids(yield* readAllOf(store, stream)), ids(nth(batches, i)))
      assert.equal(yield* store.lastRevision(stream), 1)
    }
    const log = yield* followed(store, before, names, names.length * 2)
    for (const { id, stream } of log) assert(nth(batches, names.indexOf(stream)).some((event) => event.id === id))
  }
}

const freshName = Effect.map(newId, (id): StreamName.StreamName => `suiteSnapshot.v1-${id}`)

export const snapshots: StoreContract = {
  *"loads the newest snapshot of a name"(store) {
    const [one, two] = [yield* freshName, yield* freshName]
    assert.equal(yield* store.loadSnapshot(one), undefined)
    const save = (name: StreamName.StreamName, revision: number, data: string) => store.saveSnapshot(name, { revision, data })
    yield* save(one, 4, `{"n":4}`)
    assert.deepEqual(yield* store.loadSnapshot(one), { revision: 4, data: `{"n":4}` })
    yield* save(one, 3, `{"n":3}`)
    assert.deepEqual(yield* store.loadSnapshot(one), { revision: 4, data: `{"n":4}` })
    yield* save(one, 4, `{"n":"mended"}`)
    assert.deepEqual(yield* store.loadSnapshot(one), { revision: 4, data: `{"n":"mended"}` })
    yield* save(two, 1, `{"n":1}`)
    yield* save(one, 1_000_000, `{"n":1.0,"text":"${"\u{1f600}".repeat(20_000)}"}`)
    assert.deepEqual(yield* store.loadSnapshot(one), { revision: 1_000_000, data: `{"n":1.0,"text":"${"\u{1f600}".repeat(20_000)}"}` })
    assert.deepEqual(yield* store.loadSnapshot(two), { revision: 1, data: `{"n":1}` })
  },

  *"loads the newest of many snapshots that were saved at once"(store) {
    const name = yield* freshName
    const revisions = Array.from({ length: 50 }, (_, i) => (i * 37) % 50)
    yield* Effect.forEach(revisions, (revision) => store.saveSnapshot(name, { revision, data: `${revision}` }), atOnce)
    assert.deepEqual(yield* store.loadSnapshot(name), { revision: 49, data: "49" })
  },

  *"keeps snapshots out of the log"(store) {
    const [name, stream] = [yield* freshName, yield* freshStream]
    const before = yield* store.head
    yield* store.saveSnapshot(name, { revision: 0, data: "{}" })
    const batch = yield* freshEvents(1)
    yield* store.append(stream, "noStream", batch)
    yield* store.saveSnapshot(name, { revision: 1, data: "{}" })
    assert.deepEqual(ids(yield* followed(store, before, [name, stream], 1)), ids(batch))
  }
}
