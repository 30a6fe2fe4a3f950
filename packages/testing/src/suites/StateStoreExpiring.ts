/** The contract of state stores: entries that expire. The clock stands still at 0, unless a test moves it. */
import assert from "node:assert/strict"
import { StateStore } from "@millrace/event-sourcing"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { bytes, freshSpace, keysOf, listed, put, remove, type StoreContract } from "./StateStoreFixtures.ts"

export const expiring: StoreContract = {
  *"makes the entry absent from that time on"(store) {
    const space = yield* freshSpace
    const conflict = new StateStore.StateConflict({ space, key: "a" })
    const version = yield* store.write([put(space, "a", "1", { expiresAt: 1_000 }), put(space, "b", "1")])
    yield* TestClock.setTime(999)
    assert.deepEqual(yield* store.get(space, "a"), { key: "a", value: bytes("1"), version, expiresAt: 1_000 })
    assert.equal((yield* store.list(space)).length, 2)
    assert.deepEqual(yield* Effect.flip(store.write([put(space, "a", "2", { expected: "absent" })])), conflict)
    yield* TestClock.setTime(1_000)
    assert.equal(yield* store.get(space, "a"), undefined)
    assert.deepEqual(yield* listed(store, space), ["b", "1"])
    assert.deepEqual(yield* Effect.flip(store.write([put(space, "a", "2", { expected: version })])), conflict)
    assert.deepEqual(yield* Effect.flip(store.write([remove(space, "a", { expected: version })])), conflict)
    const later = yield* store.write([put(space, "a", "3", { expected: "absent" })])
    assert(later > version)
    assert.deepEqual(yield* store.get(space, "a"), { key: "a", value: bytes("3"), version: later, expiresAt: null })
  },

  *"is replaced or removed by the next put"(store) {
    const space = yield* freshSpace
    yield* store.write([put(space, "a", "1", { expiresAt: 1_000 }), put(space, "b", "1", { expiresAt: 1_000 }), put(space, "c", "1")])
    yield* store.write([put(space, "a", "2"), put(space, "b", "2", { expiresAt: 3_000 }), put(space, "c", "2", { expiresAt: 2_000 })])
    const listedAt = (time: number) => Effect.andThen(TestClock.setTime(time), listed(store, space))
    assert.deepEqual(yield* listedAt(1_999), ["a", "2", "b", "2", "c", "2"])
    assert.deepEqual(yield* listedAt(2_000), ["a", "2", "b", "2"])
    assert.deepEqual(yield* listedAt(3_000), ["a", "2"])
  },

  *"hides entries from a page without shortening it"(store) {
    const space = yield* freshSpace
    const keys = Array.from({ length: 200 }, (_, i) => `${i}`.padStart(3, "0"))
    const entry = (key: string) => put(space, key, key, Number(key) % 2 === 0 ? { expiresAt: 10 } : {})
    yield* store.write([entry("000"), ...keys.slice(1).map(entry)])
    yield* TestClock.setTime(10)
    const odd = keys.filter((key) => Number(key) % 2 === 1)
    assert.deepEqual(yield* keysOf(store, space, { limit: 10 }), odd.slice(0, 10))
    // Writes, so that a store that removes what has expired does so
    for (let i = 0; i < 20; i++) yield* store.write([put(space, "999", `${i}`)])
    assert.deepEqual(yield* keysOf(store, space), [...odd, "999"])
  },

  *"in the past hides the entry at once"(store) {
    const space = yield* freshSpace
    yield* TestClock.setTime(5_000)
    yield* store.write([put(space, "a", "1", { expiresAt: 4_000 })])
    assert.equal(yield* store.get(space, "a"), undefined)
  }
}
