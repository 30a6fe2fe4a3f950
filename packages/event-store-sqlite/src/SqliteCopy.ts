/**
 * Copies both files of a store as of one instant, while other processes continue to write them.
 *
 * For that instant, well under a millisecond, both files are locked against writes, and a snapshot of each is begun. So the copy has every
 * write that was acknowledged before, and the two files match: they are what a loss of power at that instant would leave, and the store
 * recovers from that by itself. Copying one file after the other does not work: a newer state has projections that are ahead of the log,
 * and an older state lacks the keys of the newest events.
 */
import { chmodSync, closeSync, fsyncSync, openSync } from "node:fs"
import { EventStore } from "@millrace/event-sourcing"
import Database from "better-sqlite3"
import { Effect } from "effect"
import { Connection } from "./Connection.ts"
import { type Fault, faultOf } from "./Fault.ts"
import * as LogTables from "./LogTables.ts"
import { open, patiently } from "./Patience.ts"
import * as SqliteCheck from "./SqliteCheck.ts"
import * as SqliteStateStore from "./SqliteStateStore.ts"

export interface Files {
  readonly log: string
  readonly state: string
}

/** Pages that are copied in one turn of the event loop: a few milliseconds. */
const PAGES = 1_024

/** Gets the pages that are copied, and how many there are. */
export type OnProgress = (copied: number, total: number) => void

const unavailable = (fault: Fault) => new EventStore.StoreUnavailable({ reason: fault.message })

/**
 * Copies both files of `from` to those of `to`. The target files must not exist, their folders must. Each copy is one file without a
 * write-ahead log, readable by its owner only, checked by SQLite, and synced; the caller must sync the folder. The state is copied and
 * released first, because an erasure waits for the readers of the state. `onProgress` is told about the log, which is much the larger.
 */
export const copy = Effect.fn("SqliteCopy.copy")(function* (from: Files, to: Files, onProgress: OnProgress = () => {}) {
  const [logLock, log] = yield* connect(from.log, LogTables)
  const [stateLock, state] = yield* connect(from.state, SqliteStateStore)
  yield* patiently(
    from.log,
    () =>
      logLock.transact(() =>
        stateLock.transact(() => {
          begin(log)
          begin(state)
        })
      ),
    unavailable
  )
  yield* transfer(state, to.state, () => {})
  yield* transfer(log, to.log, onProgress)
}, Effect.scoped)

interface Kind {
  readonly SCHEMA: typeof LogTables.SCHEMA
  readonly PRAGMAS: string
}

/** Opens one connection that locks and one that reads. */
const connect = (filename: string, { SCHEMA, PRAGMAS }: Kind) => {
  const connection = (readOnly: boolean) =>
    open(filename, () => new Connection({ filename, readOnly }, SCHEMA, PRAGMAS, () => undefined), unavailable)
  return Effect.all([connection(false), connection(true)])
}

/** Begins a read transaction. Its snapshot is taken at the first query. */
const begin = ({ db }: Connection<unknown>): void => {
  if (db.inTransaction) db.exec("ROLLBACK")
  db.exec("BEGIN; SELECT count(*) FROM sqlite_schema")
}

const transfer = ({ db, filename }: Connection<unknown>, to: string, onProgress: OnProgress) =>
  Effect.tryPromise({
    try: async (signal) => {
      await db.backup(to, {
        progress: ({ remainingPages, totalPages }) => {
          signal.throwIfAborted()
          onProgress(totalPages - remainingPages, totalPages)
          return PAGES
        }
      })
      db.exec("ROLLBACK")
      settle(to)
    },
    catch: (error) => unavailable(faultOf(error, isOfSource(error) ? filename : to))
  })

/** Assigns a failed read to the source, and a failed write, such as on a full disk, to the copy. */
const isOfSource = (error: unknown): boolean => error instanceof Database.SqliteError && /^SQLITE_(CORRUPT|NOTADB)/.test(error.code)

/** Folds the write-ahead log into the file, checks the file, and syncs it. */
const settle = (filename: string): void => {
  const db = new Database(filename, { fileMustExist: true })
  try {
    db.exec("PRAGMA journal_mode = DELETE")
  } catch (error) {
    throw faultOf(error, filename)
  } finally {
    db.close()
  }
  SqliteCheck.requireWhole(filename)
  chmodSync(filename, 0o600)
  const file = openSync(filename, "r+")
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}
