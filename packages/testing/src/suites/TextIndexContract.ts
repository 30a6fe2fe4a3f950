/** The contract of text indexes: searching, writing at a position, versions, and several clients. */
import assert from "node:assert/strict"
import { distinctWordsOf, EventIds, EventStore, type TextIndex } from "@millrace/event-sourcing"
import { Effect } from "effect"
import fc from "fast-check"
import { atOnce, type Contract, property } from "./Contract.ts"

type Service = TextIndex.TextIndex["Service"]

const freshName = Effect.map(EventIds, (ids) => `suite${ids(0).replaceAll("-", "")}`)

const freshIndex = (texts: Service) => Effect.flatMap(freshName, (name) => texts.open(name, 1))

const document = (id: string, text: string, more: Partial<TextIndex.Document> = {}): TextIndex.Document => ({
  id,
  text,
  keys: [],
  weight: 0,
  value: `of ${id}`,
  ...more
})

const at = (n: number) => EventStore.position(n === 0 ? "" : `${n}`.padStart(9, "0"))

const write = (after: number, put: ReadonlyArray<TextIndex.Document>, remove: ReadonlyArray<string> = []): TextIndex.Write => ({
  after: at(after),
  position: at(after + 1),
  put,
  remove
})

const idsOf = (documents: ReadonlyArray<TextIndex.Document>) => documents.map(({ id }) => id)

const isMatch = ({ text = "", match = "all", keys = [] }: TextIndex.Query, { keys: own, text: its }: TextIndex.Document): boolean => {
  const words = distinctWordsOf(text)
  const there = new Set(distinctWordsOf(its))
  const has = words.length === 0 || (match === "all" ? words.every((word) => there.has(word)) : words.some((word) => there.has(word)))
  return has && keys.every((key) => own.includes(key))
}

const byWeight = (a: TextIndex.Document, b: TextIndex.Document) =>
  b.weight - a.weight || Buffer.compare(Buffer.from(a.id), Buffer.from(b.id))

// Words that a query language could take for its own, and texts of several scripts
const WORDS = ["off", "and", "OR", "NOT", "near", "ÉTÉ", "été", "20", "%", '"', "'", ":", "*", "(", ")", "-", "скидка", "割引", "off!", "k"]
const textOf = fc.array(fc.constantFrom(...WORDS), { maxLength: 6 }).map((words) => words.join(" "))
const keysOf = fc.uniqueArray(fc.constantFrom("shop.example.com", "shop", "example", "a b", ":off", "'"), { maxLength: 3 })
const documents = fc.array(
  fc.record(
    {
      id: fc.constantFrom("a", "b", "B", "c/1", "c 1", "é", "'", "\u{1f600}", "\uffee"),
      text: textOf,
      keys: keysOf,
      weight: fc.constantFrom(-1, 0, 0.5, 2),
      value: fc.string({ unit: "grapheme" }).filter((text) => text.isWellFormed() && !text.includes("\0"))
    },
    { noNullPrototype: true }
  ),
  { maxLength: 12 }
)
const queries = fc.record({ text: textOf, match: fc.constantFrom("all", "any"), keys: keysOf }, { noNullPrototype: true })

export const searching: Contract<Service> = {
  *"finds what an oracle finds, after any writes"(texts) {
    const writes = fc.array(fc.record({ put: documents, remove: fc.array(fc.constantFrom("a", "b", "é", "none")) }), { maxLength: 4 })
    yield* property(fc.tuple(writes, fc.array(queries, { minLength: 1, maxLength: 6 })), 25, function* ([changes, asked]) {
      const index = yield* freshIndex(texts)
      const oracle = new Map<string, TextIndex.Document>()
      for (const [i, { put, remove }] of changes.entries()) {
        for (const id of remove) oracle.delete(id)
        for (const one of put) oracle.set(one.id, one)
        const last = [...new Map(put.map((one) => [one.id, one])).values()]
        assert.equal(yield* index.write(write(i, last, remove)), true)
      }
      const ids = [...oracle.keys(), "none"]
      assert.deepEqual(yield* index.get(ids), oracle)
      for (const query of asked) {
        const expected = [...oracle.values()].filter((one) => isMatch(query, one)).sort(byWeight)
        const found = yield* index.search(query)
        const isRanked = query.match === "any" && distinctWordsOf(query.text).length > 0
        assert.deepEqual(isRanked ? found.toSorted(byWeight) : found, expected)
        assert.deepEqual(yield* index.search({ ...query, limit: 2 }), found.slice(0, 2))
      }
    })
  },

  *"takes words in any case, with and without accents, and as a whole"(texts) {
    const index = yield* freshIndex(texts)
    yield* index.write(write(0, [document("1", "Économisez 20% sur les CHAUSSURES de l’été"), document("2", "割引クーポン")]))
    for (const text of ["economisez", "ÉTÉ", "ete chaussures", "20 %"]) assert.deepEqual(idsOf(yield* index.search({ text })), ["1"], text)
    for (const text of ["chaussure", "2", "éte chaussons"]) assert.deepEqual(idsOf(yield* index.search({ text })), [], text)
    assert.deepEqual(idsOf(yield* index.search({ text: "割引" })), ["2"])
  },

  *"for any word puts documents with more of the words first, and then those with more weight"(texts) {
    const index = yield* freshIndex(texts)
    const fill = Array.from({ length: 20 }, (_, i) => document(`fill ${i}`, "grey cotton hats sale"))
    const three = [
      document("two", "red wool socks sale"),
      document("three", "red wool shoes sale"),
      document("one", "red silk scarf sale"),
      document("heavy", "red silk scarf gift", { weight: 1 })
    ]
    yield* index.write(write(0, [...fill, ...three]))
    const found = idsOf(yield* index.search({ text: "Red wool shoes", match: "any", limit: 4 }))
    assert.deepEqual(found, ["three", "two", "heavy", "one"])
  },

  *"finds the words of a very long text and of a very long query"(texts) {
    const index = yield* freshIndex(texts)
    const words = Array.from({ length: 3_000 }, (_, i) => `w${i}`)
    yield* index.write(write(0, [document("1", words.join(" ")), document("2", `${"x".repeat(5_000)} end`)]))
    assert.deepEqual(idsOf(yield* index.search({ text: "w2999 w0" })), ["1"])
    assert.deepEqual(idsOf(yield* index.search({ text: words.slice(0, 500).join(" ") })), ["1"])
    assert.deepEqual(idsOf(yield* index.search({ text: "x".repeat(5_000) })), ["2"])
  }
}

export const writing: Contract<Service> = {
  *"moves the position with the documents, and changes nothing from another position"(texts) {
    const index = yield* freshIndex(texts)
    assert.equal(yield* index.position, at(0))
    assert.equal(yield* index.write(write(0, [document("1", "first")])), true)
    assert.equal(yield* index.position, at(1))
    for (const after of [0, 2]) assert.equal(yield* index.write(write(after, [document("2", "first")], ["1"])), false)
    assert.equal(yield* index.position, at(1))
    assert.deepEqual(idsOf(yield* index.search({ text: "first" })), ["1"])
  },

  *"replaces the words and keys of a document"(texts) {
    const index = yield* freshIndex(texts)
    yield* index.write(write(0, [document("1", "old words", { keys: ["old"] })]))
    yield* index.write(write(1, [document("1", "new words", { keys: ["new"], value: "new" })]))
    for (const query of [{ text: "old" }, { keys: ["old"] }]) assert.deepEqual(yield* index.search(query), [])
    for (const query of [{ text: "new words" }, { keys: ["new"] }, {}])
      assert.deepEqual(yield* index.search(query), [document("1", "new words", { keys: ["new"], value: "new" })])
  },

  *"is emptied by a clear"(texts) {
    const index = yield* freshIndex(texts)
    yield* index.write(write(0, [document("1", "first", { keys: ["k"] })]))
    yield* index.clear
    assert.equal(yield* index.position, at(0))
    for (const query of [{}, { text: "first" }, { keys: ["k"] }]) assert.deepEqual(yield* index.search(query), [])
    assert.equal(yield* index.write(write(0, [document("2", "first")])), true)
    assert.deepEqual(idsOf(yield* index.search({ text: "first" })), ["2"])
  },

  *"stays when the index is opened again, and goes with a higher version"(texts) {
    const [name, other] = [yield* freshName, yield* freshName]
    yield* (yield* texts.open(name, 1)).write(write(0, [document("1", "first")]))
    yield* (yield* texts.open(other, 1)).write(write(0, [document("2", "first")]))
    assert.deepEqual(idsOf(yield* (yield* texts.open(name, 1)).search({ text: "first" })), ["1"])
    const second = yield* texts.open(name, 2)
    assert.equal(yield* second.position, at(0))
    assert.deepEqual(yield* second.search({}), [])
    assert.deepEqual(idsOf(yield* (yield* texts.open(other, 1)).search({ text: "first" })), ["2"])
  }
}

export const peers: Contract<readonly [Service, Service]> = {
  *"write each position once between them"([one, two]) {
    const name = yield* freshName
    const indexes = [yield* one.open(name, 1), yield* two.open(name, 1)]
    for (let n = 0; n < 20; n++) {
      const put = [document(`${n}`, "first")]
      const written = yield* Effect.forEach([...indexes, ...indexes], (index) => index.write(write(n, put)), atOnce)
      assert.deepEqual(written.filter(Boolean), [true])
      for (const index of indexes) {
        assert.equal(yield* index.position, at(n + 1))
        assert.equal((yield* index.search({ text: "first" })).length, n + 1)
      }
    }
  }
}
