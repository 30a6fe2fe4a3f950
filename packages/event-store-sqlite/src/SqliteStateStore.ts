/**
 * The state store beside an SQLite event log, in a file of its own, because its entries must be deletable.
 *
 * A shredded value remains in no file of the store. `secure_delete` overwrites it, and the write-ahead log is emptied. That alone is not
 * enough: when SQLite moves a row from one page to another, it can leave a copy in the unused part of the first page. So each value lies
 * entirely on overflow pages, which are never moved; a prefix of zeros fills the rest of the row.
 */
import { StateStore } from "@millrace/event-sourcing"
import type Database from "better-sqlite3"
import { Clock, Effect, Exit, Layer } from "effect"
import { Connection, type ConnectionOptions } from "./Connection.ts"
import { Fault } from "./Fault.ts"
import type { Schema } from "./Migrations.ts"
import { open, patiently } from "./Patience.ts"
import * as Transactions from "./Transactions.ts"

const PAGE_SIZE = 1_024
/** Bytes of a row on one overflow page. */
const OVERFLOW = PAGE_SIZE - 4
/** The least bytes of a row with overflow pages that lie on its own page, beside what does not fill an overflow page. */
const LOCAL = Math.floor(((PAGE_SIZE - 12) * 32) / 255) - 23

/** Zeros before a value, so that overflow pages hold the whole value: https://www.sqlite.org/fileformat2.html#payload_sizes */
const zerosBefore = (value: Uint8Array): number => LOCAL + Math.ceil(value.length / OVERFLOW) * OVERFLOW - value.length

export const SCHEMA: Schema = {
  name: "a state store",
  applicationId: 0x4d_69_6c_53,
  migrations: [
    `CREATE TABLE entries(
      space TEXT NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL, expires_at INTEGER, zeros BLOB NOT NULL, value BLOB NOT NULL,
      UNIQUE(space, key)) STRICT;
    CREATE INDEX entries_by_expiry ON entries(expires_at) WHERE expires_at IS NOT NULL;
    CREATE TABLE counter(version INTEGER NOT NULL) STRICT;
    INSERT INTO counter VALUES (0)`
  ]
}

export const PRAGMAS = `PRAGMA page_size = ${PAGE_SIZE}; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA fullfsync = ON;
  PRAGMA checkpoint_fullfsync = ON; PRAGMA secure_delete = ON; PRAGMA temp_store = MEMORY; PRAGMA wal_autocheckpoint = 4000;
  PRAGMA journal_size_limit = 4194304; PRAGMA cache_size = -16384`

/** The most expired entries that a transaction removes. */
const PURGE = 64

interface Row {
  readonly key: string
  readonly value: Buffer
  readonly version: number
  readonly expiresAt: number | null
}

const COLUMNS = "key, value, version, expires_at AS expiresAt"
const ALIVE = "(expires_at IS NULL OR expires_at > ?)"

const statements = (db: Database.Database) => ({
  get: db.prepare<[string, string, number], Row>(`SELECT ${COLUMNS} FROM entries WHERE space = ? AND key = ? AND ${ALIVE}`),
  version: db.prepare<[string, string, number], number>(`SELECT version FROM entries WHERE space = ? AND key = ? AND ${ALIVE}`).pluck(),
  list: db.prepare<[string, string, number, number], Row>(
    `SELECT ${COLUMNS} FROM entries WHERE space = ? AND key > ? AND ${ALIVE} ORDER BY key LIMIT ?`
  ),
  listFirst: db.prepare<[string, number, number], Row>(`SELECT ${COLUMNS} FROM entries WHERE space = ? AND ${ALIVE} ORDER BY key LIMIT ?`),
  bump: db.prepare<[], number>("UPDATE counter SET version = version + 1 RETURNING version").pluck(),
  put: db.prepare<[string, string, number, number | null, number, Uint8Array]>(
    `INSERT INTO entries(space, key, version, expires_at, zeros, value) VALUES (?, ?, ?, ?, zeroblob(?), ?) ON CONFLICT(space, key)
    DO UPDATE SET version = excluded.version, expires_at = excluded.expires_at, zeros = excluded.zeros, value = excluded.value`
  ),
  remove: db.prepare<[string, string]>("DELETE FROM entries WHERE space = ? AND key = ?"),
  purge: db.prepare<[number]>(
    `DELETE FROM entries WHERE rowid IN (SELECT rowid FROM entries WHERE expires_at <= ? ORDER BY expires_at LIMIT ${PURGE})`
  ),
  truncate: db.prepare<[], { readonly busy: 0 | 1 }>("PRAGMA wal_checkpoint(TRUNCATE)")
})

const unavailable = (fault: Fault) => new StateStore.StateUnavailable({ reason: fault.message })

const entry = ({ key, value, version, expiresAt }: Row): StateStore.Entry => ({
  key,
  value: new Uint8Array(value.buffer, value.byteOffset, value.byteLength),
  version,
  expiresAt
})

const sizeOf = (changes: ReadonlyArray<StateStore.Change>): number => {
  let size = 0
  for (const change of changes) size += PAGE_SIZE + (change._tag === "put" ? change.value.length : 0)
  return size
}

export const make = Effect.fnUntraced(function* (options: ConnectionOptions) {
  const clock = yield* Clock.Clock
  const connection = yield* open(options.filename, () => new Connection(options, SCHEMA, PRAGMAS, statements), unavailable)
  const { sql } = connection
  const read = <A>(look: () => A) => patiently(options.filename, look, unavailable)
  const now = () => clock.currentTimeMillisUnsafe()
  const transactions = yield* Transactions.make(options.filename, (body) =>
    connection.transact(() => {
      body()
      sql.purge.run(now())
    })
  )

  const isAsExpected = ({ space, key, expected }: StateStore.Change) =>
    expected === undefined || (sql.version.get(space, key, now()) ?? "absent") === expected

  const apply = (changes: ReadonlyArray<StateStore.Change>): Exit.Exit<number, StateStore.StateConflict> => {
    const conflict = changes.find((change) => !isAsExpected(change))
    if (conflict !== undefined) return Exit.fail(new StateStore.StateConflict({ space: conflict.space, key: conflict.key }))
    const version = sql.bump.get() ?? 0
    for (const change of changes) {
      if (change._tag === "remove") sql.remove.run(change.space, change.key)
      else if (change._tag === "put")
        sql.put.run(change.space, change.key, version, change.expiresAt ?? null, zerosBefore(change.value), change.value)
    }
    return Exit.succeed(version)
  }

  /** Empties the write-ahead log, which otherwise keeps removed values until it is overwritten. */
  const truncate = read(() => {
    if (sql.truncate.get()?.busy !== 0)
      throw new Fault(`Removed values are still in ${connection.filename}-wal, because another process is using it`, { isLocked: true })
  })

  // A process may have died between removing and shredding. If another process is using the file, that process finishes the work
  if (!connection.readOnly) yield* Effect.ignore(Effect.try({ try: () => sql.truncate.get(), catch: () => undefined }))

  return StateStore.StateStore.of({
    get: (space, key) =>
      read(() => {
        const row = sql.get.get(space, key, now())
        return row === undefined ? undefined : entry(row)
      }),
    list: (space, { after, limit = 1_000 } = {}) =>
      read(() => (after === undefined ? sql.listFirst.all(space, now(), limit) : sql.list.all(space, after, now(), limit)).map(entry)),
    write: (changes) => {
      const written = transactions.run<number, StateStore.StateConflict | StateStore.StateUnavailable>(
        sizeOf(changes),
        () => apply(changes),
        unavailable
      )
      const isShred = changes.some((change) => change._tag === "remove" && change.shred === true)
      return isShred ? Effect.uninterruptible(Effect.tap(written, truncate)) : written
    }
  })
})

export const layer = (options: ConnectionOptions): Layer.Layer<StateStore.StateStore, StateStore.StateUnavailable> =>
  Layer.effect(StateStore.StateStore, make(options))
