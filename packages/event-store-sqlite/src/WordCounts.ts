/** In how many documents of an index each word is. Rare words say more, and are searched first. */
import { distinctWordsOf } from "@millrace/event-sourcing"
import type Database from "better-sqlite3"

/** Counts the documents. No word is empty. */
const DOCUMENTS = ""

export const createCounts = (table: string): string =>
  `CREATE TABLE IF NOT EXISTS ${table}(word TEXT PRIMARY KEY, documents INTEGER NOT NULL) STRICT, WITHOUT ROWID`

export class WordCounts {
  readonly #get: Database.Statement<[string], number>
  readonly #add: Database.Statement<[string, number]>
  readonly #forget: Database.Statement<[string]>
  /** Changes that are not written yet. */
  readonly #changes = new Map<string, number>()

  constructor(db: Database.Database, table: string) {
    this.#get = db.prepare<[string], number>(`SELECT documents FROM ${table} WHERE word = ?`).pluck()
    this.#add = db.prepare(`INSERT INTO ${table} VALUES (?, ?) ON CONFLICT(word) DO UPDATE SET documents = documents + excluded.documents`)
    this.#forget = db.prepare(`DELETE FROM ${table} WHERE word = ? AND documents <= 0`)
  }

  /** Replaces the text of a document; undefined where there is none. */
  replace(before: string | undefined, after: string | undefined): void {
    if (before === after) return
    for (const [text, by] of [
      [before, -1],
      [after, 1]
    ] as const)
      for (const word of text === undefined ? [] : [DOCUMENTS, ...distinctWordsOf(text)])
        this.#changes.set(word, (this.#changes.get(word) ?? 0) + by)
  }

  /** Writes the changes, in the caller's transaction. */
  write(): void {
    for (const [word, by] of this.#changes) {
      if (by !== 0) this.#add.run(word, by)
      if (by < 0) this.#forget.run(word)
    }
    this.forget()
  }

  /** Drops changes that were not written, since their transaction failed. */
  forget(): void {
    this.#changes.clear()
  }

  /** The words that any document has, the rarest first, with their documents. */
  rarestFirst(words: ReadonlyArray<string>): ReadonlyArray<readonly [word: string, documents: number]> {
    return words
      .map((word) => [word, this.#get.get(word) ?? 0] as const)
      .filter(([, documents]) => documents > 0)
      .sort(([, a], [, b]) => a - b)
  }

  get documents(): number {
    return this.#get.get(DOCUMENTS) ?? 0
  }
}
