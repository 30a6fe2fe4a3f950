/** Runs SQLite's own checks on a file of a store, compares the stream index of a log with its events, and reports the file's settings. Changes nothing. */
import { EventStore } from "@millrace/event-sourcing"
import Database from "better-sqlite3"
import type { Effect } from "effect"
import { Fault, faultOf } from "./Fault.ts"
import { SCHEMA } from "./LogTables.ts"
import { patiently } from "./Patience.ts"

export interface Checked {
  /** The version of SQLite. */
  readonly version: string
  /** `wal` for a file in use. */
  readonly journalMode: string
  /** Unused bytes of the file. */
  readonly freeBytes: number
  /** The problems that SQLite reports; empty for an intact file. */
  readonly problems: ReadonlyArray<string>
}

/** The most problems that are reported. One damaged page causes many. */
const MAX_PROBLEMS = 10

/** `quick` compares no index with its table. */
type Depth = "quick" | "full"

/** Entries without their event, and events without an entry. */
const INDEX_PROBLEMS = `SELECT format('stream_index has %d entries without their event', wrong) FROM (
    SELECT count(*) AS wrong FROM stream_index i
    LEFT JOIN events e ON e.position = i.position AND e.stream = i.stream AND e.revision = i.revision WHERE e.position IS NULL)
  WHERE wrong > 0
  UNION ALL SELECT format('stream_index has %d entries for %d events', entries, indexed) FROM (
    SELECT (SELECT count(*) FROM stream_index) AS entries,
    (SELECT count(*) FROM events WHERE position <= (SELECT position FROM stream_index_end)) AS indexed)
  WHERE entries <> indexed`

const look = (filename: string, depth: Depth): Checked => {
  let db: Database.Database | undefined
  try {
    db = new Database(filename, { readonly: true, fileMustExist: true })
    const ask = <A>(sql: string): A | undefined => db?.prepare<[], A>(sql).pluck().get()
    const told = db
      .prepare<[], string>(`PRAGMA ${depth === "quick" ? "quick_check" : "integrity_check"}(${MAX_PROBLEMS})`)
      .pluck()
      .all()
    const isLog =
      ask<number>("PRAGMA application_id") === SCHEMA.applicationId && ask<number>("PRAGMA user_version") === SCHEMA.migrations.length
    const isWhole = told.length === 1 && told[0] === "ok"
    const ofIndex = depth === "full" && isLog && isWhole ? db.prepare<[], string>(INDEX_PROBLEMS).pluck().all() : []
    return {
      version: ask<string>("SELECT sqlite_version()") ?? "",
      journalMode: ask<string>("PRAGMA journal_mode") ?? "",
      freeBytes: (ask<number>("PRAGMA freelist_count") ?? 0) * (ask<number>("PRAGMA page_size") ?? 0),
      problems: isWhole ? ofIndex : told
    }
  } catch (error) {
    throw faultOf(error, filename)
  } finally {
    db?.close()
  }
}

/** Fails if the file cannot be read at all. */
export const check = (filename: string, depth: Depth = "full"): Effect.Effect<Checked, EventStore.StoreUnavailable> =>
  patiently(
    filename,
    () => look(filename, depth),
    (fault) => new EventStore.StoreUnavailable({ reason: fault.message })
  )

/** Throws a {@link Fault} for a damaged file. */
export const requireWhole = (filename: string): void => {
  const [problem] = look(filename, "full").problems
  if (problem !== undefined) throw new Fault(`${filename} is not whole: ${problem}`)
}
