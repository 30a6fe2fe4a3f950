/**
 * Copies both files of a store as they are at one instant, while other processes go on writing them.
 *
 * For that instant, well under a millisecond, both files are locked against writing, and a snapshot of each is begun. So the copy has
 * everything that was acknowledged before, and the two files fit together: they are what a power cut at that instant would leave, from
 * which a store recovers by itself. Copying one file after the other cannot do that: a state that is newer than its log has projections
 * that are ahead of the log, and one that is older lacks the keys to the newest events.
 */
import { chmodSync, closeSync, fsyncSync, openSync } from "node:fs"
import { EventStore } from "@millrace/event-sourcing"
import Database from "better-sqlite3"
import { Effect } from "effect"
import { Connection } from "./Connection.ts"
import { type Fault, faultOf } from "./Fault.ts"
import { open, patiently } from "./Patience.ts"
import * as SqliteCheck from "./SqliteCheck.ts"
import * as SqliteLog from "./SqliteLog.ts"
import * as SqliteStateStore from "./SqliteStateStore.ts"

export interface Files {
  readonly log: string
  readonly state: string
}

/** Pages that are copied before the event loop gets a turn: a few milliseconds. */
const PAGES = 1_024

const unavailable = (fault: Fault) => new EventStore.StoreUnavailable({ reason: fault.message })

/**
 * Copies both files of `from` to those of `to`, which must not exist yet, in folders that exist. Each copy is one file without
 * a write-ahead log, readable by its owner only, checked by SQLite, and synced; the caller has to sync its folder. The state is copied and
 * unlocked first, because an erasure waits for its readers.
 */
export const copy = Effect.fn("SqliteCopy.copy")(function* (from: Files, to: Files) {
  const [logLock, log] = yield* connect(from.log, SqliteLog)
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
  yield* transfer(state, to.state)
  yield* transfer(log, to.log)
}, Effect.scoped)

interface Kind {
  readonly SCHEMA: typeof SqliteLog.SCHEMA
  readonly PRAGMAS: string
}

/** One connection that locks, and one that reads. */
const connect = (filename: string, { SCHEMA, PRAGMAS }: Kind) => {
  const connection = (readOnly: boolean) =>
    open(filename, () => new Connection({ filename, readOnly }, SCHEMA, PRAGMAS, () => undefined), unavailable)
  return Effect.all([connection(false), connection(true)])
}

/** A transaction reads what was there at its first query. */
const begin = ({ db }: Connection<unknown>): void => {
  if (db.inTransaction) db.exec("ROLLBACK")
  db.exec("BEGIN; SELECT count(*) FROM sqlite_schema")
}

const transfer = ({ db, filename }: Connection<unknown>, to: string) =>
  Effect.tryPromise({
    try: async (signal) => {
      await db.backup(to, {
        progress: () => {
          signal.throwIfAborted()
          return PAGES
        }
      })
      db.exec("ROLLBACK")
      settle(to)
    },
    catch: (error) => unavailable(faultOf(error, isOfSource(error) ? filename : to))
  })

/** A failed read is a fault of the source; a failed write, such as on a full disk, is a fault of the copy. */
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
