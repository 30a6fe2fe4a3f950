/**
 * A text index in an SQLite file of its own, on FTS5. The file holds nothing but what is derived from the log. So it needs no backup, and
 * may be deleted while no host runs.
 */
import { createHash } from "node:crypto"
import { distinctWordsOf, EventStore, TextIndex, wordsOf } from "@millrace/event-sourcing"
import type Database from "better-sqlite3"
import { Effect, Layer, Scope, Semaphore } from "effect"
import { AnyWord } from "./AnyWord.ts"
import { Connection, type ConnectionOptions } from "./Connection.ts"
import type { Fault } from "./Fault.ts"
import type { Schema } from "./Migrations.ts"
import { open, patiently } from "./Patience.ts"
import { createCounts, WordCounts } from "./WordCounts.ts"

const SCHEMA: Schema = {
  name: "a text index",
  applicationId: 0x4d_69_6c_54,
  migrations: [
    "CREATE TABLE indexes(name TEXT NOT NULL, version INTEGER NOT NULL, position TEXT NOT NULL, PRIMARY KEY(name, version)) STRICT"
  ]
}

const PRAGMAS = `PRAGMA page_size = 4096; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY;
  PRAGMA journal_size_limit = 4194304; PRAGMA cache_size = -32768`

const unavailable = (fault: Fault) => new TextIndex.TextIndexUnavailable({ reason: fault.message })

/** A key as one token of FTS5. */
const tokenOf = (key: string): string => `k${createHash("sha256").update(key).digest("hex").slice(0, 32)}`

/** The tables of one version of an index. The words are tokens already, so the tokenizer splits only at spaces. */
const tablesOf = (name: string, version: number) => {
  const [documents, words, counts] = [`documents_${name}_${version}`, `words_${name}_${version}`, `counts_${name}_${version}`]
  return {
    documents,
    words,
    counts,
    create: `CREATE TABLE IF NOT EXISTS ${documents}(place INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, text TEXT NOT NULL,
        keys TEXT NOT NULL, weight REAL NOT NULL, value TEXT NOT NULL) STRICT;
      CREATE INDEX IF NOT EXISTS ${documents}_order ON ${documents}(place, weight, id);
      CREATE VIRTUAL TABLE IF NOT EXISTS ${words} USING fts5(words, keys, content = '', contentless_delete = 1, tokenize = 'ascii');
      ${createCounts(counts)}`,
    drop: `DROP TABLE IF EXISTS ${documents}; DROP TABLE IF EXISTS ${words}; DROP TABLE IF EXISTS ${counts}`
  }
}

type Tables = ReturnType<typeof tablesOf>

interface Row {
  readonly id: string
  readonly text: string
  readonly keys: string
  readonly weight: number
  readonly value: string
}

const documentOf = ({ id, text, keys, weight, value }: Row): TextIndex.Document => ({ id, text, keys: JSON.parse(keys), weight, value })

const COLUMNS = "d.id, d.text, d.keys, d.weight, d.value"

const statementsOf = (db: Database.Database, { documents, words }: Tables) => ({
  get: db.prepare<[string], Row>(`SELECT ${COLUMNS} FROM ${documents} d WHERE id = ?`),
  text: db.prepare<[string], string>(`SELECT text FROM ${documents} WHERE id = ?`).pluck(),
  put: db
    .prepare<[string, string, string, number, string], number>(
      `INSERT INTO ${documents}(id, text, keys, weight, value) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT(id) DO UPDATE SET text = excluded.text, keys = excluded.keys, weight = excluded.weight, value = excluded.value
      RETURNING place`
    )
    .pluck(),
  putWords: db.prepare<[number, string, string]>(`INSERT OR REPLACE INTO ${words}(rowid, words, keys) VALUES (?, ?, ?)`),
  remove: db.prepare<[string], number>(`DELETE FROM ${documents} WHERE id = ? RETURNING place`).pluck(),
  removeWords: db.prepare<[number]>(`DELETE FROM ${words} WHERE rowid = ?`),
  // Only the best are read whole: what orders all others is in an index
  byWeight: db.prepare<[string, number], Row>(
    `SELECT ${COLUMNS} FROM (SELECT o.place AS place FROM ${words} w CROSS JOIN ${documents} o INDEXED BY ${documents}_order
      ON o.place = w.rowid WHERE ${words} MATCH ? ORDER BY o.weight DESC, o.id LIMIT ?) best
    CROSS JOIN ${documents} d ON d.place = best.place ORDER BY d.weight DESC, d.id`
  ),
  byRelevance: db.prepare<[string, number], Row>(
    `SELECT ${COLUMNS} FROM (SELECT o.place AS place, w.score AS score
      FROM (SELECT rowid AS place, bm25(${words}, 1, 0) AS score FROM ${words} WHERE ${words} MATCH ?) w
      CROSS JOIN ${documents} o INDEXED BY ${documents}_order ON o.place = w.place ORDER BY w.score, o.weight DESC, o.id LIMIT ?) best
    CROSS JOIN ${documents} d ON d.place = best.place ORDER BY best.score, d.weight DESC, d.id`
  ),
  /** Of places with scores, as JSON. */
  byScore: db.prepare<[string, number], Row>(
    `SELECT ${COLUMNS} FROM (SELECT o.place AS place, w.value ->> 1 AS score FROM json_each(?) w
      CROSS JOIN ${documents} o INDEXED BY ${documents}_order ON o.place = w.value ->> 0 ORDER BY score DESC, o.weight DESC, o.id LIMIT ?) best
    CROSS JOIN ${documents} d ON d.place = best.place ORDER BY best.score DESC, d.weight DESC, d.id`
  ),
  all: db.prepare<[number], Row>(`SELECT ${COLUMNS} FROM ${documents} d ORDER BY d.weight DESC, d.id LIMIT ?`)
})

const wordsIn = ({ text = "" }: TextIndex.Query): ReadonlyArray<string> => distinctWordsOf(text).slice(0, TextIndex.MOST_WORDS)

/** The query in the language of FTS5; undefined if it selects everything. */
const matchOf = (query: TextIndex.Query): string | undefined => {
  const { keys = [], match = "all" } = query
  const words = wordsIn(query)
  const parts = [
    ...(words.length === 0 ? [] : [`words : (${words.map((word) => `"${word}"`).join(match === "all" ? " AND " : " OR ")})`]),
    ...keys.map((key) => `keys : ${tokenOf(key)}`)
  ]
  return parts.length === 0 ? undefined : parts.join(" AND ")
}

/** One index of an open file. */
class SqliteIndex {
  readonly #connection: Connection<Statements>
  readonly #tables: Tables
  readonly #key: readonly [name: string, version: number]
  readonly #sql: ReturnType<typeof statementsOf>
  readonly #counts: WordCounts
  readonly #anyWord: AnyWord

  /** Creates the tables, and drops those of lower versions. */
  constructor(connection: Connection<Statements>, name: string, version: number) {
    this.#connection = connection
    this.#key = [name, version]
    this.#tables = tablesOf(name, version)
    if (connection.sql.position.get(name, version) === undefined)
      connection.transact(() => {
        for (const lower of connection.sql.lower.all(name, version)) {
          connection.db.exec(tablesOf(name, lower).drop)
          connection.sql.forget.run(name, lower)
        }
        connection.db.exec(this.#tables.create)
        connection.sql.move.run(name, version, EventStore.start)
      })
    this.#sql = statementsOf(connection.db, this.#tables)
    this.#counts = new WordCounts(connection.db, this.#tables.counts)
    this.#anyWord = new AnyWord(connection.db, this.#tables.words, this.#counts)
  }

  get position(): EventStore.Position {
    return EventStore.position(this.#connection.sql.position.get(...this.#key) ?? "")
  }

  get(ids: ReadonlyArray<string>): ReadonlyMap<string, TextIndex.Document> {
    return new Map(
      ids.flatMap((id) => {
        const row = this.#sql.get.get(id)
        return row === undefined ? [] : [[id, documentOf(row)] as const]
      })
    )
  }

  write({ after, position, put, remove }: TextIndex.Write): boolean {
    return this.#connection.transact(() => {
      if (this.position !== after) return false
      this.#counts.forget()
      for (const id of remove) {
        this.#counts.replace(this.#sql.text.get(id), undefined)
        const place = this.#sql.remove.get(id)
        if (place !== undefined) this.#sql.removeWords.run(place)
      }
      for (const { id, text, keys, weight, value } of put) {
        this.#counts.replace(this.#sql.text.get(id), text)
        const place = this.#sql.put.get(id, text, JSON.stringify(keys), weight, value) ?? 0
        this.#sql.putWords.run(place, wordsOf(text).join(" "), keys.map(tokenOf).join(" "))
      }
      this.#counts.write()
      this.#connection.sql.move.run(...this.#key, position)
      return true
    })
  }

  search(query: TextIndex.Query): ReadonlyArray<TextIndex.Document> {
    const { limit = 100, match } = query
    const expression = matchOf(query)
    if (expression === undefined) return this.#sql.all.all(limit).map(documentOf)
    const isRanked = match === "any" && expression.startsWith("words")
    // Few documents have a key, so all of them are ranked
    if (isRanked && (query.keys ?? []).length === 0)
      return this.#sql.byScore.all(JSON.stringify(this.#anyWord.search(wordsIn(query), limit)), limit).map(documentOf)
    return this.#sql[isRanked ? "byRelevance" : "byWeight"].all(expression, limit).map(documentOf)
  }

  clear(): void {
    this.#connection.transact(() => {
      this.#connection.db.exec(
        `DELETE FROM ${this.#tables.documents}; DELETE FROM ${this.#tables.counts}; INSERT INTO ${this.#tables.words}(${this.#tables.words}) VALUES ('delete-all')`
      )
      this.#connection.sql.move.run(...this.#key, EventStore.start)
    })
  }
}

const statements = (db: Database.Database) => ({
  position: db.prepare<[string, number], string>("SELECT position FROM indexes WHERE name = ? AND version = ?").pluck(),
  lower: db.prepare<[string, number], number>("SELECT version FROM indexes WHERE name = ? AND version < ?").pluck(),
  forget: db.prepare<[string, number]>("DELETE FROM indexes WHERE name = ? AND version = ?"),
  move: db.prepare<[string, number, string]>(
    "INSERT INTO indexes VALUES (?, ?, ?) ON CONFLICT(name, version) DO UPDATE SET position = excluded.position"
  )
})

type Statements = ReturnType<typeof statements>

/** The file is opened, or created, when the first index is. */
export const make = Effect.fnUntraced(function* (options: ConnectionOptions) {
  const { filename } = options
  const scope = yield* Effect.scope
  const patient = <A>(look: () => A) => patiently(filename, look, unavailable)
  const opening = yield* Semaphore.make(1)
  let connection: Connection<Statements> | undefined
  const connected = opening.withPermit(
    Effect.gen(function* () {
      connection ??= yield* open(filename, () => new Connection(options, SCHEMA, PRAGMAS, statements), unavailable)
      return connection
    }).pipe(Scope.provide(scope))
  )
  const indexOn = (index: SqliteIndex): TextIndex.Index => ({
    position: patient(() => index.position),
    get: (ids) => patient(() => index.get(ids)),
    write: (write) => patient(() => index.write(write)),
    search: (query) => patient(() => index.search(query)),
    clear: patient(() => index.clear())
  })
  return TextIndex.TextIndex.of({
    open: (name, version) =>
      TextIndex.isIndexName(name) && Number.isSafeInteger(version) && version > 0
        ? Effect.flatMap(connected, (file) =>
            Effect.map(
              patient(() => new SqliteIndex(file, name, version)),
              indexOn
            )
          )
        : Effect.die(new Error(`Not an index: ${name}, version ${version}`))
  })
})

export const layer = (options: ConnectionOptions): Layer.Layer<TextIndex.TextIndex> => Layer.effect(TextIndex.TextIndex, make(options))
