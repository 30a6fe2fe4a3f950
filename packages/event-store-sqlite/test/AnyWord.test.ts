/** Searches for any of some words, among more documents than are looked at, and the counts of words that they rest on. */
import { join } from "node:path"
import { distinctWordsOf, EventStore, type TextIndex } from "@millrace/event-sourcing"
import { SqliteTextIndex } from "@millrace/event-store-sqlite"
import Database from "better-sqlite3"
import { Effect } from "effect"
import fc from "fast-check"
import { expect, test } from "vitest"
import { temporaryFolder } from "./TemporaryFolder.ts"

const document = (id: string, text: string, weight = 0): TextIndex.Document => ({ id, text, keys: [], weight, value: "" })
const idsOf = (found: ReadonlyArray<TextIndex.Document>) => found.map(({ id }) => id)

/** An index of a new file, which writes at the position where it is. */
const opened = Effect.gen(function* () {
  const filename = join(yield* temporaryFolder, "search.db")
  const index = yield* (yield* SqliteTextIndex.make({ filename })).open("test", 1)
  let at = 0
  const write = (put: ReadonlyArray<TextIndex.Document>, remove: ReadonlyArray<string> = []) =>
    Effect.gen(function* () {
      const after = yield* index.position
      at++
      expect(yield* index.write({ after, position: EventStore.position(String(at).padStart(6, "0")), put, remove })).toBe(true)
    })
  return { filename, index, write }
})

const run = <A, E>(body: Effect.Effect<A, E, import("effect").Scope.Scope>) => Effect.runPromise(Effect.scoped(body))

test("rare words choose the documents and common ones order them, however many there are", () =>
  run(
    Effect.gen(function* () {
      const { index, write } = yield* opened
      const all = Array.from({ length: 6_000 }, (_, i) =>
        document(
          `d${i}`,
          ["sale", i % 2 === 0 ? "even" : "", i % 100 === 7 ? "seventh" : "", i % 15 === 0 ? "fifteenth" : "", `rare${i % 1_000}`].join(
            " "
          ),
          i
        )
      )
      yield* write(all)
      const search = (text: string, limit: number) => Effect.map(index.search({ text, match: "any", limit }), idsOf)
      // Six documents have the rare word, and the newer is the heavier
      const rare = [5_008, 4_008, 3_008, 2_008, 1_008, 8].map((i) => `d${i}`)
      expect(yield* search("sale even rare8", 6)).toEqual(rare)
      expect((yield* search("rare8", 100)).toSorted()).toEqual(rare.toSorted())
      // Half of the 400 documents with the rare word have the common one, too, and come first
      expect(yield* search("fifteenth even sale", 200)).toEqual(Array.from({ length: 200 }, (_, i) => `d${5_970 - 30 * i}`))
      // Both rare words, then one of them; where they are too few, what has all of the common words
      expect((yield* search("seventh rare107 sale", 66)).slice(0, 6).toSorted()).toEqual(
        [107, 1_107, 2_107, 3_107, 4_107, 5_107].map((i) => `d${i}`).toSorted()
      )
      const filled = yield* search("sale even rare8 none", 10)
      expect(filled.slice(0, 6)).toEqual(rare)
      expect(filled.slice(6)).toEqual(["d5998", "d5996", "d5994", "d5992"])
      // Common words alone
      expect(yield* search("even sale", 3)).toEqual(["d5998", "d5996", "d5994"])
      expect(yield* search("sale", 3)).toEqual(["d5999", "d5998", "d5997"])
      expect(yield* search("none", 3)).toEqual([])
    })
  ))

const word = fc.constantFrom("a", "b", "É", "e")
const change = fc.record({
  put: fc.uniqueArray(fc.record({ id: fc.constantFrom("1", "2", "3"), words: fc.array(word, { maxLength: 4 }) }), {
    selector: ({ id }) => id
  }),
  remove: fc.array(fc.constantFrom("1", "2", "3", "4"), { maxLength: 2 })
})

test("the counts are those of the documents, after any writes", () =>
  fc.assert(
    fc.asyncProperty(fc.array(change, { maxLength: 6 }), fc.boolean(), (changes, clears) =>
      run(
        Effect.gen(function* () {
          const { filename, index, write } = yield* opened
          const texts = new Map<string, string>()
          for (const { put, remove } of changes) {
            for (const id of remove) texts.delete(id)
            for (const { id, words } of put) texts.set(id, words.join(" "))
            yield* write(
              put.map(({ id, words }) => document(id, words.join(" "))),
              remove
            )
          }
          if (clears) {
            yield* index.clear
            texts.clear()
          }
          const counts = new Map<string, number>()
          for (const text of texts.values())
            for (const each of ["", ...distinctWordsOf(text)]) counts.set(each, (counts.get(each) ?? 0) + 1)
          const db = new Database(filename, { readonly: true })
          const stored = db.prepare<[], [string, number]>("SELECT word, documents FROM counts_test_1").raw().all()
          db.close()
          expect(new Map(stored)).toEqual(counts)
        })
      )
    ),
    { numRuns: 25 }
  ))
