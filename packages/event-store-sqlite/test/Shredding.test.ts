/** A shredded value is in no file of the store after any history of writes; before shredding it is in one. */
import { cpSync, mkdirSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import type { StateStore } from "@millrace/event-sourcing"
import { SqliteStateStore } from "@millrace/event-store-sqlite"
import Database from "better-sqlite3"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { property } from "../../testing/src/suites/Contract.ts"
import { temporaryFolder } from "./TemporaryFolder.ts"

/** The length of a match that cannot be a coincidence. The test searches for every fourth such piece. */
const CHUNK = 16

const filesOf = (folder: string) => readdirSync(folder).map((file) => readFileSync(join(folder, file)))

const isIn = (files: string | ReadonlyArray<Buffer>, value: Uint8Array): boolean => {
  if (typeof files === "string") return isIn(filesOf(files), value)
  for (let at = 0; at + CHUNK <= value.length; at += 4 * CHUNK) {
    const chunk = Buffer.from(value.subarray(at, at + CHUNK))
    if (files.some((bytes) => bytes.includes(chunk))) return true
  }
  return false
}

const put = (key: string, value: Uint8Array): StateStore.Change => ({ _tag: "put", space: "keys", key, value })

const shred = (key: string): StateStore.Change => ({ _tag: "remove", space: "keys", key, shred: true })

/** Seeded random bytes, in which no piece repeats. */
const noise = (seed: number) => {
  let state = seed
  return (length: number) =>
    new Uint8Array(length).map(() => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
      return state >>> 24
    })
}

describe("a value", () => {
  it("lies on overflow pages only, which are never moved, for any size and any length of its key", () =>
    property(
      fc.array(
        fc.record({
          length: fc.oneof(fc.nat(4), fc.nat(1_200), fc.constantFrom(1_019, 1_020, 1_021, 2_039, 2_040, 2_041, 9_999)),
          key: fc.oneof(fc.nat(80), fc.nat(1_500))
        }),
        {
          minLength: 1,
          maxLength: 60
        }
      ),
      25,
      function* (entries) {
        const filename = join(yield* temporaryFolder, "state.db")
        const store = yield* SqliteStateStore.make({ filename })
        const write = (lengths: ReadonlyArray<number>) => {
          const changes = entries.map(({ key }, i) => put(`${i} ${"k".repeat(key)}`, new Uint8Array(lengths[i] ?? 0).fill(0xf7)))
          const [first = put("", new Uint8Array()), ...rest] = changes
          return store.write([first, ...rest, shred("nothing")])
        }
        const lengths = entries.map(({ length }) => length)
        yield* write(lengths.toReversed())
        yield* write(lengths)
        const db = new Database(filename, { readonly: true })
        const pages = db.prepare<[], number>("SELECT pageno FROM dbstat WHERE pagetype <> 'overflow'").pluck().all()
        db.close()
        const bytes = readFileSync(filename)
        expect(pages.length).toBeGreaterThan(3)
        for (const page of pages) {
          const onPage = bytes.subarray((page - 1) * 1_024, page * 1_024)
          expect(onPage.includes(Buffer.of(0xf7, 0xf7))).toBe(false)
        }
      }
    ).pipe(Effect.runPromise))
})

describe("a shredded value", () => {
  it("is in no file, after any schedule of puts, replacements and removals of any size", () =>
    property(
      fc.record({
        seed: fc.integer({ min: 1 }),
        steps: fc.array(
          fc.record({
            kind: fc.constantFrom("put", "put", "replace", "remove", "shred"),
            key: fc.nat(1_000),
            size: fc.oneof(fc.integer({ min: CHUNK, max: 120 }), fc.integer({ min: CHUNK, max: 3_000 }))
          }),
          {
            minLength: 60,
            maxLength: 250
          }
        )
      }),
      10,
      function* ({ seed, steps }) {
        const folder = yield* temporaryFolder
        const store = yield* SqliteStateStore.make({ filename: join(folder, "state.db") })
        const fresh = noise(seed)
        const live = new Map<string, Array<Uint8Array>>()
        const gone: Array<Uint8Array> = []
        const shredOne = (key: string) =>
          Effect.gen(function* () {
            const values = live.get(key) ?? []
            expect(isIn(folder, values.at(-1) ?? new Uint8Array())).toBe(true)
            yield* store.write([shred(key)])
            live.delete(key)
            gone.push(...values)
            for (const value of values) expect(isIn(folder, value)).toBe(false)
          })
        for (const { kind, key: place, size } of steps) {
          const keys = [...live.keys()]
          const key = keys[place % keys.length]
          if (kind === "put" || key === undefined) {
            const name = Buffer.from(fresh(6)).toString("hex")
            const value = fresh(size)
            live.set(name, [value])
            yield* store.write([put(name, value)])
          } else if (kind === "replace") {
            const value = fresh(size)
            live.get(key)?.push(value)
            yield* store.write([put(key, value)])
          } else if (kind === "remove") {
            // Removed without shredding: gone after the next shredding
            yield* store.write([{ _tag: "remove", space: "keys", key }])
            gone.push(...(live.get(key) ?? []))
            live.delete(key)
          } else yield* shredOne(key)
        }
        yield* store.write([shred("nothing")])
        const files = filesOf(folder)
        for (const value of gone) expect(isIn(files, value)).toBe(false)
      }
    ).pipe(Effect.runPromise))

  it("is in no file, among thousands of values that were moved when the tree was balanced", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const store = yield* SqliteStateStore.make({ filename: join(folder, "state.db") })
      const fresh = noise(3)
      const value = () => fresh(CHUNK + 16 * Math.floor((fresh(1)[0] ?? 0) / 8))
      const live = new Map<string, Uint8Array>()
      const gone: Array<Uint8Array> = []
      for (let round = 0; round < 60; round++) {
        const added = Array.from({ length: 50 }, () => [Buffer.from(fresh(6)).toString("hex"), value()] as const)
        const removed = [...live].filter(() => (fresh(1)[0] ?? 0) < 60)
        const [first, ...rest] = [...added.map(([key, one]) => put(key, one)), ...removed.map(([key]) => shred(key))]
        if (first !== undefined) yield* store.write([first, ...rest])
        for (const [key, one] of added) live.set(key, one)
        for (const [key, one] of removed) {
          live.delete(key)
          gone.push(one)
        }
      }
      expect(gone.length).toBeGreaterThan(2_000)
      const files = filesOf(folder)
      const left = gone.filter((one) => isIn(files, one)).length
      expect(left).toBe(0)
      for (const one of [...live.values()].slice(0, 20)) expect(isIn(files, one)).toBe(true)
    }).pipe(Effect.scoped, Effect.runPromise))

  it("is in no file when another process has the store open and has read it", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const filename = join(folder, "state.db")
      const [a, b] = [yield* SqliteStateStore.make({ filename }), yield* SqliteStateStore.make({ filename })]
      const value = noise(7)(64)
      yield* a.write([put("one", value)])
      expect((yield* b.get("keys", "one"))?.value).toEqual(value)
      expect(isIn(folder, value)).toBe(true)
      yield* b.write([shred("one")])
      expect(isIn(folder, value)).toBe(false)
    }).pipe(Effect.scoped, Effect.runPromise))

  it("is reported as shredded only once no other process reads it", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const filename = join(folder, "state.db")
      const store = yield* SqliteStateStore.make({ filename })
      const value = noise(8)(64)
      yield* store.write([put("one", value), put("two", noise(9)(64))])
      const reader = yield* Effect.acquireRelease(
        Effect.sync(() => new Database(filename)),
        (db) => Effect.sync(() => db.close())
      )
      reader.exec("BEGIN; SELECT count(*) FROM entries")
      const push = yield* Effect.forkScoped(Effect.forever(Effect.andThen(TestClock.adjust(50), Effect.yieldNow)))
      const error = yield* Effect.flip(store.write([shred("one")]))
      expect(error._tag === "StateUnavailable" && error.reason).toContain("Removed values are still in")
      expect(yield* store.get("keys", "one")).toBeUndefined()
      expect(isIn(folder, value)).toBe(true)
      reader.exec("COMMIT")
      // Shredding a removed entry also works, so a refused shredding can be retried
      yield* store.write([shred("one")])
      expect(isIn(folder, value)).toBe(false)
      yield* Fiber.interrupt(push)
    }).pipe(Effect.scoped, Effect.provide(TestClock.layer()), Effect.runPromise))

  it("is gone when the store is opened again after the process died before shredding it", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const crashed = join(folder, "crashed")
      mkdirSync(crashed)
      const store = yield* SqliteStateStore.make({ filename: join(folder, "state.db") })
      const value = noise(10)(64)
      yield* store.write([put("one", value)])
      yield* store.write([{ _tag: "remove", space: "keys", key: "one" }])
      for (const file of ["state.db", "state.db-wal"]) cpSync(join(folder, file), join(crashed, file))
      expect(isIn(crashed, value)).toBe(true)
      yield* SqliteStateStore.make({ filename: join(crashed, "state.db") })
      expect(isIn(crashed, value)).toBe(false)
    }).pipe(Effect.scoped, Effect.runPromise))
})

describe("an expired entry", () => {
  it("is removed by later writes", () =>
    Effect.gen(function* () {
      const filename = join(yield* temporaryFolder, "state.db")
      const store = yield* SqliteStateStore.make({ filename })
      for (let i = 0; i < 100; i++)
        yield* store.write([
          { _tag: "put", space: "replies", key: `${i}`, value: new Uint8Array(9), ...(i % 2 === 0 ? { expiresAt: i } : {}) }
        ])
      yield* TestClock.setTime(50)
      for (let i = 0; i < 3; i++) yield* store.write([put("other", new Uint8Array(1))])
      const db = yield* Effect.acquireRelease(
        Effect.sync(() => new Database(filename)),
        (db) => Effect.sync(() => db.close())
      )
      expect(db.prepare("SELECT count(*) FROM entries WHERE expires_at <= 50").pluck().get()).toBe(0)
      expect((yield* store.list("replies")).length).toBe(74)
    }).pipe(Effect.scoped, Effect.provide(TestClock.layer()), Effect.runPromise))
})
