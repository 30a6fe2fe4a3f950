/**
 * The schema of a database file: its kind (`PRAGMA application_id`) and its version (`PRAGMA user_version`).
 * Migrations only go forward; a file that a newer release has written is refused.
 */
import type Database from "better-sqlite3"
import { Fault, faultOf } from "./Fault.ts"

export interface Schema {
  /** The kind of the file in error messages. */
  readonly name: string
  readonly applicationId: number
  /** The SQL of each version; the first makes version 1 of an empty file. Never changed once released. */
  readonly migrations: ReadonlyArray<string>
  /** By version: the SQL that makes temporary tables for what an older version lacks, for reading it as it is. */
  readonly standIns?: Readonly<Record<number, string>>
}

/** Returns the version of the file. Refuses a file of another kind or of a newer version. Changes nothing. */
export const versionOf = (db: Database.Database, filename: string, schema: Schema): number => {
  const ask = (sql: string) => db.prepare<[], number>(sql).pluck().get() ?? 0
  const applicationId = ask("PRAGMA application_id")
  const version = ask("PRAGMA user_version")
  const isEmpty = applicationId === 0 && version === 0 && ask("SELECT count(*) FROM sqlite_schema") === 0
  if (!isEmpty && applicationId !== schema.applicationId) throw new Fault(`${filename} is a database, but not ${schema.name} of Millrace`)
  const known = schema.migrations.length
  if (version > known)
    throw new Fault(`${filename} was written by a newer release: its schema is version ${version}, this release knows up to ${known}`)
  return version
}

/**
 * Migrates the file to the newest version, in one transaction: if the process is killed, the file stays as it was. `onOld` is called before
 * that if an older release wrote the file. Returns true for such a file; then the caller must set its pragmas again.
 *
 * A file of an older release is migrated only while no other process has it open, so no older release writes to a newer file.
 */
export const migrate = (
  db: Database.Database,
  filename: string,
  schema: Schema,
  onOld: (from: number, to: number) => void = () => {}
): boolean => {
  const newest = schema.migrations.length
  const found = versionOf(db, filename, schema)
  const isOld = found > 0 && found < newest
  if (isOld) beginAlone(db, filename, `${filename} is at version ${found} of ${schema.name}, and this release needs ${newest}`)
  else db.exec("BEGIN IMMEDIATE")
  // Another process may have migrated it since
  const version = versionOf(db, filename, schema)
  if (version > 0 && version < newest) onOld(version, newest)
  apply(db, schema.migrations.slice(version))
  // Writes even if there is nothing to migrate, because SQLite reports a read-only file only at the first write
  db.exec(`PRAGMA application_id = ${schema.applicationId}; PRAGMA user_version = ${newest}`)
  db.exec(version === newest ? "ROLLBACK" : "COMMIT")
  // SQLite gives up the exclusive lock at the next read
  if (isOld) db.exec("PRAGMA locking_mode = NORMAL; SELECT count(*) FROM sqlite_schema")
  return isOld
}

/** Runs migrations, which may edit the schema. */
const apply = (db: Database.Database, migrations: ReadonlyArray<string>): void => {
  db.unsafeMode(true)
  try {
    for (const sql of migrations) db.exec(sql)
  } finally {
    db.unsafeMode(false)
  }
}

/**
 * Begins a transaction that locks all other processes out. SQLite leaves the write-ahead log only if no other process has the file open,
 * and without it the lock also keeps readers out. Temporary data goes to files, so that a large index needs no more memory than a small one.
 */
const beginAlone = (db: Database.Database, filename: string, why: string): void => {
  try {
    db.exec("PRAGMA temp_store = FILE; PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE")
  } catch (error) {
    const fault = faultOf(error, filename)
    if (!fault.isLocked) throw fault
    throw new Fault(`${why}: stop every process that has it open, then start one of this release`, { isLocked: true, cause: error })
  }
}

/**
 * For a connection that must not write: makes temporary tables for what an older version lacks. Refuses a version that cannot be read like
 * that.
 */
export const readAsNewest = (db: Database.Database, filename: string, schema: Schema): void => {
  const version = versionOf(db, filename, schema)
  const newest = schema.migrations.length
  if (version === newest) return
  const standIns = schema.standIns?.[version]
  if (standIns === undefined)
    throw new Fault(`${filename} is at version ${version} of ${schema.name}, not ${newest}: open it once without readOnly to migrate it`)
  // One transaction, because an older release may be writing
  db.exec(`BEGIN; ${standIns}; COMMIT`)
}
