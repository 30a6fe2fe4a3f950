/** A text index in memory. Its content is lost with the process, and is derived from the log again. */
import { Effect, Layer } from "effect"
import { type Position, start } from "./EventStore.ts"
import { type Document, type Index, isIndexName, MOST_WORDS, type Query, TextIndex, type Write } from "./TextIndex.ts"
import { distinctWordsOf } from "./TextWords.ts"

type Ids = ReadonlySet<string>

const NONE: Ids = new Set()

/** Smallest first, so that an intersection looks at few ids. */
const intersectionOf = (sets: ReadonlyArray<Ids>): ReadonlyArray<string> => {
  const [first = NONE, ...others] = sets.toSorted((a, b) => a.size - b.size)
  return [...first].filter((id) => others.every((other) => other.has(id)))
}

/** The ids of documents by what they have. */
class Postings {
  readonly #ids = new Map<string, Set<string>>()

  of(name: string): Ids {
    return this.#ids.get(name) ?? NONE
  }

  add(names: Iterable<string>, id: string): void {
    for (const name of names) {
      const ids = this.#ids.get(name)
      if (ids === undefined) this.#ids.set(name, new Set([id]))
      else ids.add(id)
    }
  }

  remove(names: Iterable<string>, id: string): void {
    for (const name of names) {
      const ids = this.#ids.get(name)
      if (ids?.delete(id) === true && ids.size === 0) this.#ids.delete(name)
    }
  }
}

class MemoryIndex {
  position: Position = start
  #documents = new Map<string, Document>()
  #words = new Postings()
  #keys = new Postings()

  get(ids: ReadonlyArray<string>): ReadonlyMap<string, Document> {
    return new Map(
      ids.flatMap((id) => {
        const document = this.#documents.get(id)
        return document === undefined ? [] : [[id, document] as const]
      })
    )
  }

  write({ after, position, put, remove }: Write): boolean {
    if (after !== this.position) return false
    for (const id of remove) this.#remove(id)
    for (const document of put) {
      this.#remove(document.id)
      this.#documents.set(document.id, { ...document, keys: [...document.keys] })
      this.#words.add(distinctWordsOf(document.text), document.id)
      this.#keys.add(document.keys, document.id)
    }
    this.position = position
    return true
  }

  search({ text = "", match = "all", keys = [], limit = 100 }: Query): ReadonlyArray<Document> {
    const words = distinctWordsOf(text).slice(0, MOST_WORDS)
    const relevances = new Map<string, number>()
    const ofKeys = keys.map((key) => this.#keys.of(key))
    const ofWords = words.map((word) => this.#words.of(word))
    if (words.length > 0 && match === "any") {
      for (const ids of ofWords) {
        // A rare word says more: its inverse document frequency
        const weight = 1 + Math.log(1 + this.#documents.size / ids.size)
        for (const id of ids) if (ofKeys.every((of) => of.has(id))) relevances.set(id, (relevances.get(id) ?? 0) + weight)
      }
    } else {
      const required = [...ofWords, ...ofKeys]
      for (const id of required.length === 0 ? this.#documents.keys() : intersectionOf(required)) relevances.set(id, 0)
    }
    const relevance = ({ id }: Document) => relevances.get(id) ?? 0
    return [...this.get([...relevances.keys()]).values()]
      .sort((a, b) => relevance(b) - relevance(a) || b.weight - a.weight || Buffer.compare(Buffer.from(a.id), Buffer.from(b.id)))
      .slice(0, limit)
  }

  clear(): void {
    this.position = start
    this.#documents = new Map()
    this.#words = new Postings()
    this.#keys = new Postings()
  }

  #remove(id: string): void {
    const document = this.#documents.get(id)
    if (document === undefined) return
    this.#documents.delete(id)
    this.#words.remove(distinctWordsOf(document.text), id)
    this.#keys.remove(document.keys, id)
  }
}

const indexOn = (index: MemoryIndex): Index => ({
  position: Effect.sync(() => index.position),
  get: (ids) => Effect.sync(() => index.get(ids)),
  write: (write) => Effect.sync(() => index.write(write)),
  search: (query) => Effect.sync(() => index.search(query)),
  clear: Effect.sync(() => index.clear())
})

export const make = Effect.sync(() => {
  const indexes = new Map<string, Map<number, MemoryIndex>>()
  return TextIndex.of({
    open: (name, version) =>
      Effect.suspend(() => {
        if (!isIndexName(name)) return Effect.die(new Error(`Not the name of an index: ${name}`))
        const versions = indexes.get(name) ?? new Map<number, MemoryIndex>()
        indexes.set(name, versions)
        for (const lower of versions.keys()) if (lower < version) versions.delete(lower)
        const index = versions.get(version) ?? new MemoryIndex()
        versions.set(version, index)
        return Effect.succeed(indexOn(index))
      })
  })
})

export const layer: Layer.Layer<TextIndex> = Layer.effect(TextIndex, make)
