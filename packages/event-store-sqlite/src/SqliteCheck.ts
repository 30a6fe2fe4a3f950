/** Runs SQLite's own checks on a file of a store, and reports its settings. Changes nothing. */
import { EventStore } from "@millrace/event-sourcing"
import Database from "better-sqlite3"
import type { Effect } from "effect"
import { Fault, faultOf } from "./Fault.ts"
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

/** `quick` does not compare indexes with their tables. */
type Depth = "quick" | "full"

const look = (filename: string, depth: Depth): Checked => {
  let db: Database.Database | undefined
  try {
    db = new Database(filename, { readonly: true, fileMustExist: true })
    const ask = <A>(sql: string): A | undefined => db?.prepare<[], A>(sql).pluck().get()
    const told = db
      .prepare<[], string>(`PRAGMA ${depth === "quick" ? "quick_check" : "integrity_check"}(${MAX_PROBLEMS})`)
      .pluck()
      .all()
    return {
      version: ask<string>("SELECT sqlite_version()") ?? "",
      journalMode: ask<string>("PRAGMA journal_mode") ?? "",
      freeBytes: (ask<number>("PRAGMA freelist_count") ?? 0) * (ask<number>("PRAGMA page_size") ?? 0),
      problems: told.filter((line) => line !== "ok")
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
