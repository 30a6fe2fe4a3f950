/**
 * A text index on PostgreSQL's full-text search, in tables beside the log. Words are stored as they are, without a dictionary or stop words
 * of the server.
 */
import { createHash } from "node:crypto"
import { distinctWordsOf, EventStore, TextIndex } from "@millrace/event-sourcing"
import { Effect, Layer } from "effect"
import { texts } from "./BinaryArrays.ts"
import type * as Connections from "./Connections.ts"
import type { Fault } from "./Fault.ts"
import { DEFAULT_SCHEMA, migrate } from "./Migrations.ts"
import * as Server from "./Server.ts"
import { TEXTS } from "./TextTables.ts"

const unavailable = (fault: Fault) => new TextIndex.TextIndexUnavailable({ reason: fault.message })

/** A key as a lexeme. No word begins with a colon. */
const lexemeOf = (key: string): string => `:${createHash("sha256").update(key).digest("hex").slice(0, 32)}`

const quoted = (lexeme: string): string => `'${lexeme}'`

type Row = Omit<TextIndex.Document, "keys"> & { readonly keys: Array<string> }

const documentOf = ({ id, text, keys, weight, value }: Row): TextIndex.Document => ({ id, text, keys, weight, value })

/** The query as a `tsquery`; undefined if it selects everything. */
const queryOf = ({ text = "", match = "all", keys = [] }: TextIndex.Query): string | undefined => {
  const words = distinctWordsOf(text).slice(0, TextIndex.MOST_WORDS)
  const parts = [
    ...(words.length === 0 ? [] : [`(${words.map(quoted).join(match === "all" ? " & " : " | ")})`]),
    ...keys.map((key) => quoted(lexemeOf(key)))
  ]
  return parts.length === 0 ? undefined : parts.join(" & ")
}

const statementsIn = (schema: string) => ({
  position: `SELECT position FROM ${schema}.text_indexes WHERE name = $1 AND version = $2`,
  /** The row is locked until the commit, so one process writes at a time. */
  locked: `SELECT position FROM ${schema}.text_indexes WHERE name = $1 AND version = $2 FOR UPDATE`,
  create: `INSERT INTO ${schema}.text_indexes VALUES ($1, $2, '') ON CONFLICT DO NOTHING`,
  move: `UPDATE ${schema}.text_indexes SET position = $3 WHERE name = $1 AND version = $2`,
  dropLowerDocuments: `DELETE FROM ${schema}.text_documents WHERE name = $1 AND version < $2`,
  dropLower: `DELETE FROM ${schema}.text_indexes WHERE name = $1 AND version < $2`,
  clear: `DELETE FROM ${schema}.text_documents WHERE name = $1 AND version = $2`,
  remove: `DELETE FROM ${schema}.text_documents WHERE name = $1 AND version = $2 AND id = ANY($3::text[])`,
  put: `INSERT INTO ${schema}.text_documents(name, version, id, text, keys, weight, value, words)
    SELECT $1, $2, d->>'id', d->>'text', ARRAY(SELECT jsonb_array_elements_text(d->'keys')), (d->>'weight')::double precision, d->>'value',
      array_to_tsvector(ARRAY(SELECT jsonb_array_elements_text(d->'words'))) FROM jsonb_array_elements($3::jsonb) d
    ON CONFLICT (name, version, id) DO UPDATE SET
      text = excluded.text, keys = excluded.keys, weight = excluded.weight, value = excluded.value, words = excluded.words`,
  get: `SELECT id, text, keys, weight, value FROM ${schema}.text_documents WHERE name = $1 AND version = $2 AND id = ANY($3::text[])`,
  byWeight: `SELECT id, text, keys, weight, value FROM ${schema}.text_documents WHERE name = $1 AND version = $2 AND words @@ $3::tsquery
    ORDER BY weight DESC, id LIMIT $4`,
  byRelevance: `SELECT id, text, keys, weight, value FROM ${schema}.text_documents WHERE name = $1 AND version = $2 AND words @@ $3::tsquery
    ORDER BY ts_rank(words, $5::tsquery) DESC, weight DESC, id LIMIT $4`,
  all: `SELECT id, text, keys, weight, value FROM ${schema}.text_documents WHERE name = $1 AND version = $2
    ORDER BY weight DESC, id LIMIT $3`
})

const indexIn = (
  connections: Connections.Connections,
  sql: ReturnType<typeof statementsIn>,
  key: readonly [name: string, version: number]
): TextIndex.Index => {
  const position = Effect.map(connections.read<{ readonly position: string }>(sql.position, ...key), ([row]) =>
    EventStore.position(row?.position ?? "")
  )
  const write = ({ after, position, put, remove }: TextIndex.Write) =>
    connections.transact(async (run) => {
      // Another process may have opened a higher version meanwhile, which removed this one
      await run(sql.create, ...key)
      const [row] = await run(sql.locked, ...key)
      if (row?.["position"] !== after) return false
      if (remove.length > 0) await run(sql.remove, ...key, texts(remove))
      const documents = put.map((document) => ({
        ...document,
        words: [...new Set([...distinctWordsOf(document.text), ...document.keys.map(lexemeOf)])]
      }))
      if (put.length > 0) await run(sql.put, ...key, JSON.stringify(documents))
      await run(sql.move, ...key, position)
      return true
    })
  const search = (query: TextIndex.Query) => {
    const { limit = 100, match } = query
    const expression = queryOf(query)
    if (expression === undefined) return connections.read<Row>(sql.all, ...key, limit)
    const ranking = match === "any" ? queryOf({ text: query.text ?? "", match }) : undefined
    return ranking === undefined
      ? connections.read<Row>(sql.byWeight, ...key, expression, limit)
      : connections.read<Row>(sql.byRelevance, ...key, expression, limit, ranking)
  }
  const clear = connections.transact(async (run) => {
    await run(sql.locked, ...key)
    await run(sql.clear, ...key)
    await run(sql.move, ...key, EventStore.start)
  })
  return {
    position: Effect.mapError(position, unavailable),
    get: (ids) =>
      connections.read<Row>(sql.get, ...key, texts(ids)).pipe(
        Effect.map((rows) => new Map(rows.map((row) => [row.id, documentOf(row)]))),
        Effect.mapError(unavailable)
      ),
    write: (given) => Effect.mapError(write(given), unavailable),
    search: (query) =>
      Effect.suspend(() => search(query)).pipe(
        Effect.map((rows) => rows.map(documentOf)),
        Effect.mapError(unavailable)
      ),
    clear: Effect.mapError(clear, unavailable)
  }
}

/**
 * Makes the indexes on connections to a checked server; stores may share them. The tables are created when the first index is opened, so a
 * host that may not create them still has its stores.
 */
export const makeOn = (connections: Connections.Connections, { schema = DEFAULT_SCHEMA, readOnly = false }: Server.StoreOptions) => {
  const sql = statementsIn(schema)
  const tables = migrate(connections, schema, TEXTS, !readOnly)
  const prepare = (name: string, version: number) =>
    connections.transact(async (run) => {
      await run(sql.create, name, version)
      await run(sql.dropLower, name, version)
      await run(sql.dropLowerDocuments, name, version)
    })
  return TextIndex.TextIndex.of({
    open: (name, version) =>
      TextIndex.isIndexName(name) && Number.isSafeInteger(version) && version > 0
        ? Effect.andThen(tables, prepare(name, version)).pipe(
            Effect.as(indexIn(connections, sql, [name, version])),
            Effect.mapError(unavailable)
          )
        : Effect.die(new Error(`Not an index: ${name}, version ${version}`))
  })
}

export const make = (options: Server.StoreOptions) =>
  Effect.mapError(
    Effect.map(Server.connect(options), (connections) => makeOn(connections, options)),
    unavailable
  )

export const layer = (options: Server.StoreOptions): Layer.Layer<TextIndex.TextIndex, TextIndex.TextIndexUnavailable> =>
  Layer.effect(TextIndex.TextIndex, make(options))
