/** The contract of state stores: reading and listing entries. */
import assert from "node:assert/strict"
import type { StateStore } from "@millrace/event-sourcing"
import fc from "fast-check"
import { property } from "./Contract.ts"
import { bytes, freshSpace, keysOf, listed, put, remove, type StoreContract, textOf } from "./StateStoreFixtures.ts"

export const entries: StoreContract = {
  *"are read by space and key as they were put"(store) {
    const [one, two] = [yield* freshSpace, yield* freshSpace]
    assert.equal(yield* store.get(one, "a"), undefined)
    const version = yield* store.write([put(one, "a", "1"), put(two, "a", "2"), put(one, "b", "3")])
    assert.deepEqual(yield* store.get(one, "a"), { key: "a", value: bytes("1"), version, expiresAt: null })
    assert.deepEqual(yield* store.get(two, "a"), { key: "a", value: bytes("2"), version, expiresAt: null })
    assert.equal(yield* store.get(two, "b"), undefined)
    yield* store.write([put(one, "a", "4"), remove(one, "b")])
    assert.equal(textOf(yield* store.get(one, "a")), "4")
    assert.equal(yield* store.get(one, "b"), undefined)
    assert.equal(textOf(yield* store.get(two, "a")), "2")
    yield* store.write([remove(one, "never there")])
  },

  *"keep a copy of any bytes"(store) {
    yield* property(fc.array(fc.uint8Array({ maxLength: 3_000 }), { minLength: 1, maxLength: 8 }), 25, function* (values) {
      const space = yield* freshSpace
      const buffers = values.map((value) => Buffer.from(value))
      const [first, ...rest] = buffers.map((value, i): StateStore.Change => ({ _tag: "put", space, key: `${i}`, value }))
      assert(first !== undefined)
      yield* store.write([first, ...rest])
      for (const buffer of buffers) buffer.fill(0)
      for (const [i, value] of values.entries()) {
        const read = yield* store.get(space, `${i}`)
        assert.deepEqual(read?.value, new Uint8Array(value))
        read?.value.fill(0)
        assert.deepEqual((yield* store.get(space, `${i}`))?.value, new Uint8Array(value))
      }
    })
  },

  *"keep empty values and values of a megabyte"(store) {
    const space = yield* freshSpace
    const big = new Uint8Array(1_048_576).map((_, i) => (i * 31) % 251)
    yield* store.write([
      { _tag: "put", space, key: "none", value: new Uint8Array() },
      { _tag: "put", space, key: "big", value: big }
    ])
    assert.deepEqual((yield* store.get(space, "none"))?.value, new Uint8Array())
    assert.deepEqual((yield* store.get(space, "big"))?.value, big)
  },

  *"are listed in pages by key, in the order of code points"(store) {
    const [space, other] = [yield* freshSpace, yield* freshSpace]
    const keys = [
      ...["", " ", "%", "'", "10", "2", "A", "Z", "_", "a", "a ", "aa", "b"],
      ...["e\u0301", "é", "\ue000", "\uffff", "\u{1f600}", "\u{10ffff}"]
    ]
    for (const key of keys.toReversed()) yield* store.write([put(space, key, `of ${key}`), put(other, key, "no")])
    const from = (first: number, end?: number) => keys.slice(first, end).flatMap((key) => [key, `of ${key}`])
    assert.deepEqual(yield* listed(store, space), from(0))
    for (const [i, after] of keys.entries()) {
      assert.deepEqual(yield* listed(store, space, { after }), from(i + 1))
      assert.deepEqual(yield* listed(store, space, { after, limit: 3 }), from(i + 1, i + 4))
    }
    assert.deepEqual(yield* listed(store, space, { limit: 0 }), [])
    assert.deepEqual(yield* listed(store, space, { limit: 2 }), from(0, 2))
    assert.deepEqual(yield* listed(store, space, { after: "a!" }), from(keys.indexOf("aa")))
    assert.deepEqual(yield* store.list(yield* freshSpace), [])
  },

  *"are listed up to a thousand at a time"(store) {
    const space = yield* freshSpace
    const keys = Array.from({ length: 1_003 }, (_, i) => `${i}`.padStart(4, "0"))
    yield* store.write([put(space, "0000", "x"), ...keys.slice(1).map((key) => put(space, key, "x"))])
    assert.deepEqual(yield* keysOf(store, space), keys.slice(0, 1_000))
    assert.deepEqual(yield* keysOf(store, space, { after: "0999" }), keys.slice(1_000))
  }
}
