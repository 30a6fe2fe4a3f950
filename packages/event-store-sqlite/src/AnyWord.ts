/**
 * The search for documents with any of some words. FTS5's own ranking looks at every document with any of them, so one word that is in half
 * of all documents makes a search slow. Here documents are found by their rare words; common words order them.
 */
import type Database from "better-sqlite3"
import type { WordCounts } from "./WordCounts.ts"

/** Documents that are looked at because of one or several rare words, or of common words where rare ones find too few. */
const MOST_CANDIDATES = 2_000

type Place = number
type Scores = Map<Place, number>
type Counted = ReturnType<WordCounts["rarestFirst"]>

const quoted = (words: ReadonlyArray<string>, by: "AND" | "OR"): string => words.map((word) => `"${word}"`).join(` ${by} `)

/** How much a word says: 1, and its inverse document frequency. */
const weightOf = (documents: number, all: number): number => 1 + Math.log(1 + all / documents)

export class AnyWord {
  readonly #counts: WordCounts
  readonly #places: Database.Statement<[string], Place>
  /** Those that were written last, at most so many. */
  readonly #newest: Database.Statement<[string, number], Place>

  constructor(db: Database.Database, table: string, counts: WordCounts) {
    this.#counts = counts
    this.#places = db.prepare<[string], Place>(`SELECT rowid FROM ${table} WHERE ${table} MATCH ?`).pluck()
    this.#newest = db
      .prepare<[string, number], Place>(`SELECT rowid FROM ${table} WHERE ${table} MATCH ? ORDER BY rowid DESC LIMIT ?`)
      .pluck()
  }

  /**
   * The places of the best documents with their scores: the sum of the weights of their words. At least `limit` where so many have any of the
   * words, and all that are as good as the last of them. Of documents that have common words alone, only the newest are looked at.
   */
  search(given: ReadonlyArray<string>, limit: number): ReadonlyArray<readonly [Place, number]> {
    const all = this.#counts.documents
    const counted = this.#counts.rarestFirst(given)
    const rare = rareOf(counted)
    const common = counted.slice(rare.length)
    const scores: Scores = new Map()
    for (const [word, documents] of rare) this.#add(scores, `words : "${word}"`, weightOf(documents, all))
    const ofRare = quoted(
      rare.map(([word]) => word),
      "OR"
    )
    if (rare.length > 0)
      for (const [word, documents] of common) this.#add(scores, `words : ("${word}" AND (${ofRare}))`, weightOf(documents, all))
    if (scores.size < limit) this.#fill(scores, common, all)
    return best(scores, limit)
  }

  #add(scores: Scores, match: string, weight: number): void {
    for (const place of this.#places.all(match)) scores.set(place, (scores.get(place) ?? 0) + weight)
  }

  /** Adds documents without a rare word: those that have all the common ones, and those that have the rarest of these. */
  #fill(scores: Scores, common: Counted, all: number): void {
    const [rarest] = common
    if (rarest === undefined) return
    const words = common.map(([word]) => word)
    const sum = common.reduce((sum, [, documents]) => sum + weightOf(documents, all), 0)
    for (const [match, weight] of [
      [quoted(words, "AND"), sum],
      [quoted([rarest[0]], "AND"), weightOf(rarest[1], all)]
    ] as const)
      for (const place of this.#newest.all(`words : (${match})`, MOST_CANDIDATES)) if (!scores.has(place)) scores.set(place, weight)
  }
}

/** As many of the rarest words as have no more candidates together than are looked at. */
const rareOf = (counted: Counted): Counted => {
  let candidates = 0
  const beyond = counted.findIndex(([, documents]) => {
    candidates += documents
    return candidates > MOST_CANDIDATES
  })
  return beyond === -1 ? counted : counted.slice(0, beyond)
}

const best = (scores: Scores, limit: number): ReadonlyArray<readonly [Place, number]> => {
  const entries = [...scores]
  const least = entries.map(([, score]) => score).sort((a, b) => b - a)[limit - 1] ?? 0
  return entries.filter(([, score]) => score >= least)
}
