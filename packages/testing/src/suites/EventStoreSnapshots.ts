/** The contract of event stores: snapshots. */
import assert from "node:assert/strict"
import type { StreamName } from "@millrace/event-sourcing"
import { Effect } from "effect"
import { followed, freshEvents, freshStream, ids, newId, type StoreContract } from "./EventStoreFixtures.ts"

const freshName = Effect.map(newId, (id): StreamName.StreamName => `suiteSnapshot.v1-${id}`)

export const snapshots: StoreContract = {
  "is the newest that was saved under its name": (store) =>
    Effect.gen(function* () {
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
    }),

  "is the newest of many saved at once": (store) =>
    Effect.gen(function* () {
      const name = yield* freshName
      const revisions = Array.from({ length: 50 }, (_, i) => (i * 37) % 50)
      yield* Effect.forEach(revisions, (revision) => store.saveSnapshot(name, { revision, data: `${revision}` }), {
        concurrency: "unbounded"
      })
      assert.deepEqual(yield* store.loadSnapshot(name), { revision: 49, data: "49" })
    }),

  "is no part of the log": (store) =>
    Effect.gen(function* () {
      const [name, stream] = [yield* freshName, yield* freshStream]
      const before = yield* store.head
      yield* store.saveSnapshot(name, { revision: 0, data: "{}" })
      const batch = yield* freshEvents(1)
      yield* store.append(stream, "noStream", batch)
      yield* store.saveSnapshot(name, { revision: 1, data: "{}" })
      assert.deepEqual(ids(yield* followed(store, before, [name, stream], 1)), ids(batch))
    })
}
