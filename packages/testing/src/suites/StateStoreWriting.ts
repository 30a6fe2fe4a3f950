/** The contract of state stores: writes, of one client and of two. */
import assert from "node:assert/strict"
import { StateStore } from "@millrace/event-sourcing"
import { Effect, Exit } from "effect"
import fc from "fast-check"
import { atOnce, type Contract, property } from "./Contract.ts"
import {
  type Changes,
  check,
  freshSpace,
  increment,
  listed,
  put,
  remove,
  type Store,
  type StoreContract,
  textOf
} from "./StateStoreFixtures.ts"

const step = fc.record({
  kind: fc.constantFrom("put", "put", "remove", "shred", "check"),
  key: fc.constantFrom("a", "b", "c"),
  value: fc.string({ maxLength: 40 }),
  expected: fc.constantFrom("any", "right", "wrong", "absent")
})

export const writing: StoreContract = {
  *"returns the version of its entries, and versions always grow"(store) {
    const [one, two] = [yield* freshSpace, yield* freshSpace]
    const versions: Array<number> = []
    const write = (...changes: Changes) => Effect.tap(store.write(changes), (version) => Effect.sync(() => versions.push(version)))
    yield* write(put(one, "a", "1"), put(two, "b", "1"))
    assert.equal((yield* store.get(two, "b"))?.version, versions[0])
    yield* write(put(one, "a", "2"))
    yield* write(remove(one, "a"))
    yield* write(put(one, "a", "3"))
    assert.equal((yield* store.get(one, "a"))?.version, versions[3])
    yield* write(remove(one, "a"), remove(two, "b", { shred: true }))
    yield* write(put(two, "b", "4"))
    assert.equal((yield* store.get(two, "b"))?.version, versions[5])
    assert(versions.every((version, i) => i === 0 || version > (versions[i - 1] ?? version)))
  },

  *"changes nothing unless all entries have the expected version"(store) {
    const space = yield* freshSpace
    const version = yield* store.write([put(space, "a", "1"), put(space, "b", "1")])
    const later = yield* store.write([put(space, "b", "2", { expected: version })])
    const refused: ReadonlyArray<readonly [string, Changes]> = [
      ["a", [put(space, "a", "x", { expected: "absent" })]],
      ["a", [put(space, "a", "x", { expected: later })]],
      ["b", [put(space, "a", "x"), put(space, "b", "x", { expected: version })]],
      ["b", [put(space, "a", "x"), put(space, "c", "x"), remove(space, "b", { expected: version })]],
      ["c", [remove(space, "a"), put(space, "c", "x", { expected: version })]],
      ["c", [put(space, "b", "x", { expected: later }), remove(space, "c", { expected: later })]],
      ["a", [put(space, "c", "x", { expected: "absent" }), put(space, "a", "x", { expected: "absent" })]]
    ]
    for (const [key, changes] of refused) {
      assert.deepEqual(yield* Effect.flip(store.write(changes)), new StateStore.StateConflict({ space, key }))
      assert.deepEqual(yield* listed(store, space), ["a", "1", "b", "2"])
    }
    yield* store.write([
      put(space, "a", "2", { expected: version }),
      remove(space, "b", { expected: later }),
      put(space, "c", "1", { expected: "absent" })
    ])
    assert.deepEqual(yield* listed(store, space), ["a", "2", "c", "1"])
  },

  *"checks entries without changing them"(store) {
    const space = yield* freshSpace
    const version = yield* store.write([put(space, "a", "1")])
    const later = yield* store.write([check(space, "a", version), check(space, "b", "absent"), put(space, "c", "1")])
    assert.equal((yield* store.get(space, "a"))?.version, version)
    yield* store.write([check(space, "a", version)])
    const refused: ReadonlyArray<readonly [string, Changes]> = [
      ["a", [put(space, "d", "x"), check(space, "a", later)]],
      ["a", [check(space, "a", "absent"), put(space, "d", "x")]],
      ["b", [put(space, "d", "x"), check(space, "b", version)]]
    ]
    for (const [key, changes] of refused)
      assert.deepEqual(yield* Effect.flip(store.write(changes)), new StateStore.StateConflict({ space, key }))
    yield* store.write([remove(space, "a")])
    assert.deepEqual(
      yield* Effect.flip(store.write([check(space, "a", version), put(space, "d", "x")])),
      new StateStore.StateConflict({ space, key: "a" })
    )
    assert.deepEqual(yield* listed(store, space), ["c", "1"])
    // What a write itself changes does not count for its checks
    yield* store.write([put(space, "a", "2"), check(space, "a", "absent")])
    assert.deepEqual(yield* listed(store, space), ["a", "2", "c", "1"])
  },

  *"expects the versions from before it, and makes its changes in order"(store) {
    const space = yield* freshSpace
    yield* store.write([put(space, "a", "1"), put(space, "a", "2"), put(space, "b", "1"), remove(space, "b")])
    assert.deepEqual(yield* listed(store, space), ["a", "2"])
    yield* store.write([
      remove(space, "a"),
      put(space, "a", "3"),
      put(space, "c", "1", { expected: "absent" }),
      put(space, "c", "2", { expected: "absent" })
    ])
    assert.deepEqual(yield* listed(store, space), ["a", "3", "c", "2"])
  },

  *"succeeds for one of many writers that expect the entry to be absent"(store) {
    const space = yield* freshSpace
    const attempts = Array.from({ length: 32 }, (_, i) =>
      Effect.exit(store.write([put(space, "lease", `${i}`, { expected: "absent" }), put(space, `of ${i}`, "")]))
    )
    const exits = yield* Effect.all(attempts, atOnce)
    const winners = exits.flatMap((exit, i) => (Exit.isSuccess(exit) ? [i] : []))
    assert.equal(winners.length, 1)
    assert.deepEqual(yield* listed(store, space), ["lease", `${winners[0]}`, `of ${winners[0]}`, ""])
  },

  *"loses none of 100 increments at once"(store) {
    const space = yield* freshSpace
    yield* Effect.replicateEffect(increment(store, space, "n"), 100, atOnce)
    assert.equal(textOf(yield* store.get(space, "n")), "100")
  },

  *"removes entries that it shreds"(store) {
    const space = yield* freshSpace
    const version = yield* store.write([put(space, "a", "1"), put(space, "b", "2")])
    const refused = yield* Effect.flip(store.write([remove(space, "a", { expected: version + 1, shred: true })]))
    assert.deepEqual(refused, new StateStore.StateConflict({ space, key: "a" }))
    yield* store.write([remove(space, "a", { expected: version, shred: true }), put(space, "c", "3")])
    yield* store.write([remove(space, "a", { shred: true })])
    assert.deepEqual(yield* listed(store, space), ["b", "2", "c", "3"])
  },

  *"behaves as a model of the store under any schedule"(store) {
    yield* property(fc.array(fc.array(step, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 12 }), 40, function* (schedule) {
      const space = yield* freshSpace
      let model = new Map<string, { readonly value: string; readonly version: number }>()
      for (const steps of schedule) {
        const next = new Map(model)
        let conflict: string | undefined
        const changes = steps.map(({ kind, key, value, expected: how }): StateStore.Change => {
          const there = model.get(key)
          const isAbsence = how === "absent" || (how === "right" && there === undefined)
          const version = how === "wrong" ? (there?.version ?? 0) + 1_000_000 : there?.version
          const isRight = how === "any" || how === "right" || (how === "absent" && there === undefined)
          if (kind === "put") {
            next.set(key, { value, version: Number.NaN })
            if (!isRight) conflict ??= key
            if (how === "any") return put(space, key, value)
            return put(space, key, value, { expected: isAbsence ? "absent" : (version ?? "absent") })
          }
          if (kind === "check") {
            if (!isRight) conflict ??= key
            return check(space, key, isAbsence ? "absent" : (version ?? "absent"))
          }
          next.delete(key)
          if (how === "wrong") conflict ??= key
          const shred = kind === "shred"
          return remove(space, key, how === "any" || isAbsence || version === undefined ? { shred } : { shred, expected: version })
        })
        const [first, ...rest] = changes
        assert(first !== undefined)
        const exit = yield* Effect.exit(store.write([first, ...rest]))
        if (conflict === undefined) {
          assert(Exit.isSuccess(exit), String(exit))
          model = new Map([...next].map(([key, entry]) => [key, Number.isNaN(entry.version) ? { ...entry, version: exit.value } : entry]))
        } else assert.deepEqual(exit, Exit.fail(new StateStore.StateConflict({ space, key: conflict })))
        const there = (yield* store.list(space)).map((entry) => [entry.key, { value: textOf(entry), version: entry.version }])
        assert.deepEqual(
          there,
          [...model].sort(([a], [b]) => (a < b ? -1 : 1))
        )
      }
    })
  }
}

/** Two clients of one store, as two processes have them. */
export const peers: Contract<readonly [Store, Store]> = {
  *"see each other's writes at once, with growing versions"([a, b]) {
    const space = yield* freshSpace
    let last = 0
    for (let i = 0; i < 20; i++) {
      const [writer, other] = i % 2 === 0 ? [a, b] : [b, a]
      const version = yield* writer.write([put(space, "a", `${i}`, { expected: i === 0 ? "absent" : last })])
      assert(version > last)
      last = version
      assert.equal(textOf(yield* other.get(space, "a")), `${i}`)
    }
  },

  *"lose no increment of either"([a, b]) {
    const space = yield* freshSpace
    const all = Array.from({ length: 60 }, (_, i) => increment(i % 2 === 0 ? a : b, space, "n"))
    yield* Effect.all(all, atOnce)
    assert.equal(textOf(yield* a.get(space, "n")), "60")
  },

  *"shred entries that the other put and read"([a, b]) {
    const space = yield* freshSpace
    yield* a.write([put(space, "key", "secret")])
    assert.equal(textOf(yield* b.get(space, "key")), "secret")
    yield* b.write([remove(space, "key", { shred: true })])
    assert.equal(yield* a.get(space, "key"), undefined)
  }
}
