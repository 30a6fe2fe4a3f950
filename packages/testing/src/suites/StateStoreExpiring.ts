/** The contract of state stores: entries that expire. The clock stands still at 0, unless a test moves it. */
import assert from "node:assert/strict"
import { StateStore } from "@millrace/event-sourcing"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { bytes, freshSpace, pairs, put, remove, type StoreContract } from "./StateStoreFixtures.ts"

export const expiring: StoreContract = {
  "makes the entry absent from its instant on": (store) =>
    Effect.gen(function* () {
      const space = yield* freshSpace
      const version = yield* store.write([put(space, "a", "1", { expiresAt: 1_000 }), put(space, "b", "1")])
      yield* TestClock.setTime(999)
      assert.deepEqual(yield* store.get(space, "a"), { key: "a", value: bytes("1"), version, expiresAt: 1_000 })
      assert.equal((yield* store.list(space)).length, 2)
      assert.deepEqual(
        yield* Effect.flip(store.write([put(space, "a", "2", { expected: "absent" })])),
        new StateStore.StateConflict({ space, key: "a" })
      )
      yield* TestClock.setTime(1_000)
      assert.equal(yield* store.get(space, "a"), undefined)
      assert.deepEqual(pairs(yield* store.list(space)), [["b", "1"]])
      assert.deepEqual(
        yield* Effect.flip(store.write([put(space, "a", "2", { expected: version })])),
        new StateStore.StateConflict({ space, key: "a" })
      )
      assert.deepEqual(
        yield* Effect.flip(store.write([remove(space, "a", { expected: version })])),
        new StateStore.StateConflict({ space, key: "a" })
      )
      const later = yield* store.write([put(space, "a", "3", { expected: "absent" })])
      assert(later > version)
      assert.deepEqual(yield* store.get(space, "a"), { key: "a", value: bytes("3"), version: later, expiresAt: null })
    }),

  "is replaced or lifted by the next put": (store) =>
    Effect.gen(function* () {
      const space = yield* freshSpace
      yield* store.write([put(space, "a", "1", { expiresAt: 1_000 }), put(space, "b", "1", { expiresAt: 1_000 }), put(space, "c", "1")])
      yield* store.write([put(space, "a", "2"), put(space, "b", "2", { expiresAt: 3_000 }), put(space, "c", "2", { expiresAt: 2_000 })])
      const there = (time: number) => Effect.andThen(TestClock.setTime(time), Effect.map(store.list(space), pairs))
      assert.deepEqual(yield* there(1_999), [
        ["a", "2"],
        ["b", "2"],
        ["c", "2"]
      ])
      assert.deepEqual(yield* there(2_000), [
        ["a", "2"],
        ["b", "2"]
      ])
      assert.deepEqual(yield* there(3_000), [["a", "2"]])
    }),

  "hides entries from a page without shortening it": (store) =>
    Effect.gen(function* () {
      const space = yield* freshSpace
      const keys = Array.from({ length: 200 }, (_, i) => `${i}`.padStart(3, "0"))
      const entry = (key: string) => put(space, key, key, Number(key) % 2 === 0 ? { expiresAt: 10 } : {})
      yield* store.write([entry("000"), ...keys.slice(1).map(entry)])
      yield* TestClock.setTime(10)
      const odd = keys.filter((key) => Number(key) % 2 === 1)
      assert.deepEqual(
        (yield* store.list(space, { limit: 10 })).map(({ key }) => key),
        odd.slice(0, 10)
      )
      // Writes, so that a store that removes what has expired does so
      for (let i = 0; i < 20; i++) yield* store.write([put(space, "999", `${i}`)])
      assert.deepEqual(
        (yield* store.list(space)).map(({ key }) => key),
        [...odd, "999"]
      )
    }),

  "of long ago hides the entry at once": (store) =>
    Effect.gen(function* () {
      const space = yield* freshSpace
      yield* TestClock.setTime(5_000)
      yield* store.write([put(space, "a", "1", { expiresAt: 4_000 })])
      assert.equal(yield* store.get(space, "a"), undefined)
    })
}
