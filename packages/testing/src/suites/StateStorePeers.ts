/** The contract of state stores: two clients of one store, as two processes have them. */
import assert from "node:assert/strict"
import { Effect, type Scope } from "effect"
import type { Contract } from "./Contract.ts"
import { freshSpace, increment, put, remove, type Store, textOf } from "./StateStoreFixtures.ts"

export const peers: Contract<(a: Store, b: Store) => Effect.Effect<unknown, unknown, Scope.Scope>> = {
  "see each other's writes at once, under versions that grow": (a, b) =>
    Effect.gen(function* () {
      const space = yield* freshSpace
      let last = 0
      for (let i = 0; i < 20; i++) {
        const [writer, other] = i % 2 === 0 ? [a, b] : [b, a]
        const version = yield* writer.write([put(space, "a", `${i}`, { expected: i === 0 ? "absent" : last })])
        assert(version > last)
        last = version
        assert.equal(textOf(yield* other.get(space, "a")), `${i}`)
      }
    }),

  "lose no increment of both": (a, b) =>
    Effect.gen(function* () {
      const space = yield* freshSpace
      const all = Array.from({ length: 60 }, (_, i) => increment(i % 2 === 0 ? a : b, space, "n"))
      yield* Effect.all(all, { concurrency: "unbounded" })
      assert.equal(textOf(yield* a.get(space, "n")), "60")
    }),

  "shred what the other has put and read": (a, b) =>
    Effect.gen(function* () {
      const space = yield* freshSpace
      yield* a.write([put(space, "key", "secret")])
      assert.equal(textOf(yield* b.get(space, "key")), "secret")
      yield* b.write([remove(space, "key", { shred: true })])
      assert.equal(yield* a.get(space, "key"), undefined)
    })
}
