/** The contract of state stores: writes. */
import assert from "node:assert/strict"
import { StateStore } from "@millrace/event-sourcing"
import { Effect, Exit } from "effect"
import fc from "fast-check"
import { property } from "./Contract.ts"
import { type Changes, freshSpace, increment, pairs, put, remove, type StoreContract, textOf } from "./StateStoreFixtures.ts"

export const writing: StoreContract = {
  "answers the version of what it put; versions only ever grow": (store) =>
    Effect.gen(function* () {
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
    }),

  "takes place only where all is as expected": (store) =>
    Effect.gen(function* () {
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
        assert.deepEqual(pairs(yield* store.list(space)), [
          ["a", "1"],
          ["b", "2"]
        ])
      }
      yield* store.write([
        put(space, "a", "2", { expected: version }),
        remove(space, "b", { expected: later }),
        put(space, "c", "1", { expected: "absent" })
      ])
      assert.deepEqual(pairs(yield* store.list(space)), [
        ["a", "2"],
        ["c", "1"]
      ])
    }),

  "expects what was there before it, and makes its changes in order": (store) =>
    Effect.gen(function* () {
      const space = yield* freshSpace
      yield* store.write([put(space, "a", "1"), put(space, "a", "2"), put(space, "b", "1"), remove(space, "b")])
      assert.deepEqual(pairs(yield* store.list(space)), [["a", "2"]])
      yield* store.write([
        remove(space, "a"),
        put(space, "a", "3"),
        put(space, "c", "1", { expected: "absent" }),
        put(space, "c", "2", { expected: "absent" })
      ])
      assert.deepEqual(pairs(yield* store.list(space)), [
        ["a", "3"],
        ["c", "2"]
      ])
    }),

  "is won by one of many who expect nothing there": (store) =>
    Effect.gen(function* () {
      const space = yield* freshSpace
      const attempts = Array.from({ length: 32 }, (_, i) =>
        Effect.exit(store.write([put(space, "lease", `${i}`, { expected: "absent" }), put(space, `of ${i}`, "")]))
      )
      const exits = yield* Effect.all(attempts, { concurrency: "unbounded" })
      const winners = exits.flatMap((exit, i) => (Exit.isSuccess(exit) ? [i] : []))
      assert.equal(winners.length, 1)
      assert.deepEqual(pairs(yield* store.list(space)), [
        ["lease", `${winners[0]}`],
        [`of ${winners[0]}`, ""]
      ])
    }),

  "loses no increment of 100 at once": (store) =>
    Effect.gen(function* () {
      const space = yield* freshSpace
      yield* Effect.replicateEffect(increment(store, space, "n"), 100, { concurrency: "unbounded" })
      assert.equal(textOf(yield* store.get(space, "n")), "100")
    }),

  "that shreds, removes": (store) =>
    Effect.gen(function* () {
      const space = yield* freshSpace
      const version = yield* store.write([put(space, "a", "1"), put(space, "b", "2")])
      const refused = yield* Effect.flip(store.write([remove(space, "a", { expected: version + 1, shred: true })]))
      assert.deepEqual(refused, new StateStore.StateConflict({ space, key: "a" }))
      yield* store.write([remove(space, "a", { expected: version, shred: true }), put(space, "c", "3")])
      yield* store.write([remove(space, "a", { shred: true })])
      assert.deepEqual(pairs(yield* store.list(space)), [
        ["b", "2"],
        ["c", "3"]
      ])
    }),

  "does what a model of the store does, whatever the schedule": (store) =>
    property(
      fc.array(
        fc.array(
          fc.record({
            kind: fc.constantFrom("put", "put", "remove", "shred"),
            key: fc.constantFrom("a", "b", "c"),
            value: fc.string({ maxLength: 40 }),
            expected: fc.constantFrom("any", "right", "wrong", "absent")
          }),
          { minLength: 1, maxLength: 4 }
        ),
        { minLength: 1, maxLength: 12 }
      ),
      40,
      (schedule) =>
        Effect.gen(function* () {
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
              model = new Map(
                [...next].map(([key, entry]) => [key, Number.isNaN(entry.version) ? { ...entry, version: exit.value } : entry])
              )
            } else assert.deepEqual(exit, Exit.fail(new StateStore.StateConflict({ space, key: conflict })))
            const there = (yield* store.list(space)).map((entry) => [entry.key, { value: textOf(entry), version: entry.version }])
            assert.deepEqual(
              there,
              [...model].sort(([a], [b]) => (a < b ? -1 : 1))
            )
          }
        })
    )
}
