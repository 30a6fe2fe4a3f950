/**
 * The schema of a database file: its kind (`PRAGMA application_id`) and its version (`PRAGMA user_version`).
 * Migrations only go forward; a file that a newer release has written is refused.
 */
import type Database from "better-sqlite3"
import { Fault } from "./Fault.ts"

export interface Schema {
  /** The kind of the file in error messages. */
  readonly name: string
  readonly applicationId: number
  /** The SQL of each version; the first makes version 1 of an empty file. Never changed once released. */
  readonly migrations: ReadonlyArray<string>
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

/** Migrates the file to the newest version, in one transaction. */
export const migrate = (db: Database.Database, filename: string, schema: Schema): void => {
  db.exec("BEGIN IMMEDIATE")
  const version = versionOf(db, filename, schema)
  const newest = schema.migrations.length
  for (const sql of schema.migrations.slice(version)) db.exec(sql)
  // Writes even if there is nothing to migrate, because SQLite reports a read-only file only at the first write
  db.exec(`PRAGMA application_id = ${schema.applicationId}; PRAGMA user_version = ${newest}`)
  db.exec(version === newest ? "ROLLBACK" : "COMMIT")
}

/** For a connection that must not write: refuses a file that is not at the newest version. */
export const requireNewest = (db: Database.Database, filename: string, schema: Schema): void => {
  const version = versionOf(db, filename, schema)
  const known = schema.migrations.length
  if (version < known)
    throw new Fault(`${filename} is at version ${version} of ${schema.name}, not ${known}: open it once without readOnly to migrate it`)
}
