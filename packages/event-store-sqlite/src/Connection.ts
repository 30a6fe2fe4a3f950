/** One connection to one file: opened, migrated, its faults told in words. */
import { existsSync, statSync } from "node:fs"
import { dirname, resolve } from "node:path"
import Database from "better-sqlite3"
import { Fault, faultOf, faultOfCommit } from "./Fault.ts"
import { migrate, requireNewest, type Schema, versionOf } from "./Migrations.ts"

export interface ConnectionOptions {
  readonly filename: string
  /** For those who only look, beside a process that writes or after it. Nothing is created or migrated; every write fails. */
  readonly readOnly?: boolean
  /** Pages that the file may have; a write beyond fails as on a full disk. */
  readonly maxPages?: number
}

/** SQLite's own waiting blocks the event loop, so it is short: long enough for a transaction that is nearly done. Milliseconds. */
const BUSY_TIMEOUT = 5

/** Of the databases that this package makes; bytes. */
const SMALLEST_PAGE = 1_024

export class Connection<Statements> {
  /** What is asked of the file, prepared. */
  readonly sql: Statements
  readonly db: Database.Database
  readonly filename: string
  readonly readOnly: boolean
  readonly #begin: Database.Statement<[]>
  readonly #commit: Database.Statement<[]>

  /** Throws a {@link Fault}. `pragmas` are set before the file is migrated. */
  constructor(
    { filename, readOnly = false, maxPages }: ConnectionOptions,
    schema: Schema,
    pragmas: string,
    statements: (db: Database.Database) => Statements
  ) {
    // Absolute, so that no name is taken for SQLite's own (`:memory:`, `file:...`)
    this.filename = resolve(filename)
    this.readOnly = readOnly
    if (!existsSync(dirname(this.filename))) throw new Fault("missing", `The folder ${dirname(this.filename)} does not exist`)
    if (readOnly && !existsSync(this.filename)) throw new Fault("missing", `${this.filename} does not exist`)
    const isTorn = isCutShort(this.filename)
    let db: Database.Database | undefined
    try {
      db = new Database(this.filename, { readonly: readOnly, fileMustExist: readOnly, timeout: BUSY_TIMEOUT })
      // Before anything is changed: what is no database, or another program's, is left as it is
      versionOf(db, this.filename, schema)
      if (isTorn) throw new Fault("corrupt", `${this.filename} is corrupt: it was cut short; keep a copy of it, then restore a backup`)
      if (readOnly) requireNewest(db, this.filename, schema)
      else {
        db.exec(pragmas)
        requireDurable(db, this.filename)
        if (maxPages !== undefined) db.exec(`PRAGMA max_page_count = ${maxPages}`)
        migrate(db, this.filename, schema)
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

  /** Runs `body` in one durable transaction, or throws a {@link Fault} and leaves nothing of it, unless that is in doubt. */
  transact<A>(body: () => A): A {
    if (this.readOnly) throw new Fault("readOnly", `${this.filename} was opened read-only`)
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
 * Whether a file was cut short within its last page: SQLite would read the rest of it as zeros. While there is a write-ahead log it may
 * hold that page, and someone may be writing it.
 */
const isCutShort = (filename: string): boolean => {
  const size = (file: string) => statSync(file, { throwIfNoEntry: false })?.size ?? 0
  return size(filename) % SMALLEST_PAGE !== 0 && size(`${filename}-wal`) === 0
}

/** Refuses a connection that would answer before the disk has it, or that other processes cannot share. */
const requireDurable = (db: Database.Database, filename: string): void => {
  const ask = <A>(what: string) => db.prepare<[], A>(`PRAGMA ${what}`).pluck().get()
  if (ask<string>("journal_mode") !== "wal")
    throw new Fault("notOpenable", `${filename} cannot have a write-ahead log: is it on a network file system?`)
  if ((ask<number>("synchronous") ?? 0) < 2) throw new Fault("other", `${filename} is not synced at each commit`)
}
