/** One connection to one file: opens and migrates it, and describes its faults. */
import { existsSync, statSync } from "node:fs"
import { dirname, resolve } from "node:path"
import Database from "better-sqlite3"
import { Fault, faultOf, faultOfCommit } from "./Fault.ts"
import { migrate, readAsNewest, type Schema, versionOf } from "./Migrations.ts"

export interface ConnectionOptions {
  readonly filename: string
  /** Opens the file for reading only. Another process may write to it. Nothing is created or migrated, and every write fails. */
  readonly readOnly?: boolean
  /** Called before the file of an older release is migrated. */
  readonly onMigration?: (from: number, to: number) => void
  /** The most pages of the file. A write beyond them fails as on a full disk. */
  readonly maxPages?: number
}

/** Milliseconds that SQLite waits for a lock. This blocks the event loop, so it is short: enough for a transaction that is nearly done. */
const BUSY_TIMEOUT = 5

/** Page size of the databases that this package creates, in bytes. */
const SMALLEST_PAGE = 1_024

export class Connection<Statements> {
  /** The prepared statements. */
  readonly sql: Statements
  readonly db: Database.Database
  readonly filename: string
  readonly readOnly: boolean
  readonly #begin: Database.Statement<[]>
  readonly #commit: Database.Statement<[]>

  /** Throws a {@link Fault}. `pragmas` are set before the file is migrated. */
  constructor(
    { filename, readOnly = false, onMigration = () => {}, maxPages }: ConnectionOptions,
    schema: Schema,
    pragmas: string,
    statements: (db: Database.Database) => Statements
  ) {
    // Absolute, because SQLite treats some relative names specially (`:memory:`, `file:...`)
    this.filename = resolve(filename)
    this.readOnly = readOnly
    if (!existsSync(dirname(this.filename))) throw new Fault(`The folder ${dirname(this.filename)} does not exist`)
    if (readOnly && !existsSync(this.filename)) throw new Fault(`${this.filename} does not exist`)
    const isTorn = isCutShort(this.filename)
    let db: Database.Database | undefined
    try {
      db = new Database(this.filename, { readonly: readOnly, fileMustExist: readOnly, timeout: BUSY_TIMEOUT })
      // Checked before any change, so a file that is not a database or belongs to another program stays untouched
      versionOf(db, this.filename, schema)
      if (isTorn) throw new Fault(`${this.filename} is corrupt: it was cut short; keep a copy of it, then restore a backup`)
      if (readOnly) readAsNewest(db, this.filename, schema)
      else {
        db.exec(pragmas)
        requireDurable(db, this.filename)
        if (maxPages !== undefined) db.exec(`PRAGMA max_page_count = ${maxPages}`)
        if (migrate(db, this.filename, schema, onMigration)) db.exec(pragmas)
      }
      this.db = db
      this.#begin = db.prepare("BEGIN IMMEDIATE")
      this.#commit = db.prepare("COMMIT")
      this.sql = statements(db)
    } catch (error) {
      db?.close()
      throw faultOf(error, this.filename)
    }
  }

  /** Runs `body` in one durable transaction. If it throws a {@link Fault}, nothing was written, unless the fault is in doubt. */
  transact<A>(body: () => A): A {
    if (this.readOnly) throw new Fault(`${this.filename} was opened read-only`)
    try {
      this.#begin.run()
      const result = body()
      this.#tryCommit()
      return result
    } catch (error) {
      if (this.db.inTransaction) this.db.exec("ROLLBACK")
      throw faultOf(error, this.filename)
    }
  }

  #tryCommit(): void {
    try {
      this.#commit.run()
    } catch (error) {
      throw faultOfCommit(error, this.filename)
    }
  }

  close(): void {
    this.db.close()
  }
}

/**
 * Whether a file ends within its last page. SQLite would read the rest of the page as zeros. The page may still be intact if the
 * write-ahead log holds it or another process is writing it.
 */
const isCutShort = (filename: string): boolean => {
  const size = (file: string) => statSync(file, { throwIfNoEntry: false })?.size ?? 0
  return size(filename) % SMALLEST_PAGE !== 0 && size(`${filename}-wal`) === 0
}

/** Refuses a connection whose commits are not synced, or whose file other processes cannot share. */
const requireDurable = (db: Database.Database, filename: string): void => {
  const ask = <A>(what: string) => db.prepare<[], A>(`PRAGMA ${what}`).pluck().get()
  if (ask<string>("journal_mode") !== "wal") throw new Fault(`${filename} cannot have a write-ahead log: is it on a network file system?`)
  if ((ask<number>("synchronous") ?? 0) < 2) throw new Fault(`${filename} is not synced at each commit`)
}
