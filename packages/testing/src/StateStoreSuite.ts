/**
 * What every state store keeps to, as tests that each implementation runs unchanged: nothing here assumes an empty store or one process,
 * nor that versions count by one.
 */
import assert from "node:assert/strict"
import { EventIds, StateStore } from "@millrace/event-sourcing"
import { Effect, Exit, Layer, type Scope } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { property, type Runner } from "./EventStoreSuite.ts"

export type Store = StateStore.StateStore["Service"]
type Changes = readonly [StateStore.Change, ...Array<StateStore.Change>]

const freshSpace = Effect.map(EventIds, (ids) => `suite ${ids(0)}`)

const bytes = (text: string): Uint8Array => new Uint8Array(Buffer.from(text))
const textOf = (entry: StateStore.Entry | undefined) => entry && Buffer.from(entry.value).toString()

const put = (space: string, key: string, text: string, more: { readonly expected?: number | "absent"; readonly expiresAt?: number } = {}) =>
  ({ _tag: "put", space, key, value: bytes(text), ...more }) as const satisfies StateStore.Change

const remove = (space: string, key: string, more: { readonly expected?: number; readonly shred?: boolean } = {}) =>
  ({ _tag: "remove", space, key, ...more }) as const satisfies StateStore.Change

const pairs = (entries: ReadonlyArray<StateStore.Entry>) => entries.map((entry) => [entry.key, textOf(entry)])

/** One more, kept in an entry, however many others add theirs. */
const increment = (store: Store, space: string, key: string): Effect.Effect<number, StateStore.StateUnavailable> =>
  Effect.flatMap(store.get(space, key), (entry) =>
    Effect.catchTag(
      store.write([put(space, key, String(Number(textOf(entry) ?? "0") + 1), { expected: entry?.version ?? "absent" })]),
      "StateConflict",
      () => Effect.andThen(Effect.yieldNow, increment(store, space, key))
    )
  )

/** Declares the tests of one store. `makeLayer` is built anew for each; what is beneath may hold anything outside of spaces `suite ...`. */
export const stateStoreSuite = (
  name: string,
  makeLayer: () => Layer.Layer<StateStore.StateStore, unknown>,
  { describe, it }: Runner
): void => {
  type Body = (store: Store) => Effect.Effect<unknown, unknown, Scope.Scope>
  const run = <E>(body: Body, layer: Layer.Layer<StateStore.StateStore, E>) =>
    Effect.runPromise(StateStore.StateStore.use(body).pipe(Effect.scoped, Effect.asVoid, Effect.provide(layer)))
  const test = (title: string, body: Body) => it(title, () => run(body, makeLayer()))
  /** Where the clock stands still, at 0, unless the test moves it. */
  const timed = (title: string, body: Body) => it(title, () => run(body, Layer.provideMerge(makeLayer(), TestClock.layer())))

  describe(`${name}: entries`, () => {
    test("are read as they were put, by space and key", (store) =>
      Effect.gen(function* () {
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
      }))

    test("keep any bytes, and their own copy of them", (store) =>
      property(fc.array(fc.uint8Array({ maxLength: 3_000 }), { minLength: 1, maxLength: 8 }), 25, (values) =>
        Effect.gen(function* () {
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
      ))

    test("keep values of nothing and of a megabyte", (store) =>
      Effect.gen(function* () {
        const space = yield* freshSpace
        const big = new Uint8Array(1_048_576).map((_, i) => (i * 31) % 251)
        yield* store.write([
          { _tag: "put", space, key: "none", value: new Uint8Array() },
          { _tag: "put", space, key: "big", value: big }
        ])
        assert.deepEqual((yield* store.get(space, "none"))?.value, new Uint8Array())
        assert.deepEqual((yield* store.get(space, "big"))?.value, big)
      }))

    test("are listed by key, in the order of code points, page after page", (store) =>
      Effect.gen(function* () {
        const [space, other] = [yield* freshSpace, yield* freshSpace]
        const keys = [
          "",
          " ",
          "%",
          "'",
          "10",
          "2",
          "A",
          "Z",
          "_",
          "a",
          "a ",
          "aa",
          "b",
          "e\u0301",
          "é",
          "\ue000",
          "\uffff",
          "\u{1f600}",
          "\u{10ffff}"
        ]
        for (const key of keys.toReversed()) yield* store.write([put(space, key, `of ${key}`), put(other, key, "no")])
        const all = keys.map((key) => [key, `of ${key}`])
        assert.deepEqual(pairs(yield* store.list(space)), all)
        for (const [i, after] of keys.entries()) {
          assert.deepEqual(pairs(yield* store.list(space, { after })), all.slice(i + 1))
          assert.deepEqual(pairs(yield* store.list(space, { after, limit: 3 })), all.slice(i + 1, i + 4))
        }
        assert.deepEqual(pairs(yield* store.list(space, { limit: 0 })), [])
        assert.deepEqual(pairs(yield* store.list(space, { limit: 2 })), all.slice(0, 2))
        assert.deepEqual(pairs(yield* store.list(space, { after: "a!" })), all.slice(keys.indexOf("aa")))
        assert.deepEqual(yield* store.list(yield* freshSpace), [])
      }))

    test("are listed a thousand at a time", (store) =>
      Effect.gen(function* () {
        const space = yield* freshSpace
        const keys = Array.from({ length: 1_003 }, (_, i) => `${i}`.padStart(4, "0"))
        yield* store.write([put(space, "0000", "x"), ...keys.slice(1).map((key) => put(space, key, "x"))])
        const first = yield* store.list(space)
        assert.deepEqual(
          first.map(({ key }) => key),
          keys.slice(0, 1_000)
        )
        assert.deepEqual(
          (yield* store.list(space, { after: "0999" })).map(({ key }) => key),
          keys.slice(1_000)
        )
      }))
  })

  describe(`${name}: a write`, () => {
    test("answers the version of what it put; versions only ever grow", (store) =>
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
      }))

    test("takes place only where all is as expected", (store) =>
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
      }))

    test("expects what was there before it, and makes its changes in order", (store) =>
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
      }))

    test("is won by one of many who expect nothing there", (store) =>
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
      }))

    test("loses no increment of 100 at once", (store) =>
      Effect.gen(function* () {
        const space = yield* freshSpace
        yield* Effect.replicateEffect(increment(store, space, "n"), 100, { concurrency: "unbounded" })
        assert.equal(textOf(yield* store.get(space, "n")), "100")
      }))

    test("that shreds, removes", (store) =>
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
      }))

    test("does what a model of the store does, whatever the schedule", (store) =>
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
      ))
  })

  describe(`${name}: an expiry`, () => {
    timed("makes the entry absent from its instant on", (store) =>
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
      })
    )

    timed("is replaced or lifted by the next put", (store) =>
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
      })
    )

    timed("hides entries from a page without shortening it", (store) =>
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
      })
    )

    timed("of long ago hides the entry at once", (store) =>
      Effect.gen(function* () {
        const space = yield* freshSpace
        yield* TestClock.setTime(5_000)
        yield* store.write([put(space, "a", "1", { expiresAt: 4_000 })])
        assert.equal(yield* store.get(space, "a"), undefined)
      })
    )
  })
}

/** Declares the tests of two clients of one store, as two processes would have it. `makePeers` opens them, anew for each test. */
export const stateStorePeersSuite = (
  name: string,
  makePeers: Effect.Effect<readonly [Store, Store], unknown, Scope.Scope>,
  { describe, it }: Runner
): void => {
  const test = (title: string, body: (a: Store, b: Store) => Effect.Effect<unknown, unknown, Scope.Scope>) =>
    it(title, () => Effect.runPromise(Effect.asVoid(Effect.scoped(Effect.flatMap(makePeers, ([a, b]) => body(a, b))))))

  describe(`${name}: two on one store`, () => {
    test("see each other's writes at once, under versions that grow", (a, b) =>
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
      }))

    test("lose no increment of both", (a, b) =>
      Effect.gen(function* () {
        const space = yield* freshSpace
        const all = Array.from({ length: 60 }, (_, i) => increment(i % 2 === 0 ? a : b, space, "n"))
        yield* Effect.all(all, { concurrency: "unbounded" })
        assert.equal(textOf(yield* a.get(space, "n")), "60")
      }))

    test("shred what the other has put and read", (a, b) =>
      Effect.gen(function* () {
        const space = yield* freshSpace
        yield* a.write([put(space, "key", "secret")])
        assert.equal(textOf(yield* b.get(space, "key")), "secret")
        yield* b.write([remove(space, "key", { shred: true })])
        assert.equal(yield* a.get(space, "key"), undefined)
      }))
  })
}
