/** The failures of a database file, with messages that an operator can act on. */
import { dirname } from "node:path"
import Database from "better-sqlite3"

interface Details {
  /** A COMMIT failed in a way that may leave the whole transaction on disk, so that the next recovery of the file may restore it. */
  readonly inDoubt?: boolean
  /** Another process has the file locked. */
  readonly isLocked?: boolean
  readonly cause?: unknown
}

export class Fault extends Error {
  readonly inDoubt: boolean
  readonly isLocked: boolean

  constructor(message: string, { inDoubt = false, isLocked = false, cause }: Details = {}) {
    super(message, { cause })
    this.inDoubt = inDoubt
    this.isLocked = isLocked
  }
}

/** Converts an error of SQLite to a fault. Any other error is a bug, and is thrown again. */
export const faultOf = (error: unknown, filename: string, inDoubt = false): Fault => {
  if (error instanceof Fault) return error
  if (!(error instanceof Database.SqliteError)) throw error
  const kind = error.code.split("_")[1] ?? ""
  const message = `${explain(kind, filename)} (${error.code}: ${error.message})`
  return new Fault(message, { inDoubt, isLocked: kind === "BUSY" || kind === "LOCKED", cause: error })
}

/**
 * Converts the error of a failed COMMIT. If a write was refused, the frame that ends the transaction in the write-ahead log is incomplete,
 * so nothing was written. If a later step failed (the sync, the shared index), the transaction may still be readable.
 */
export const faultOfCommit = (error: unknown, filename: string): Fault => faultOf(error, filename, !isBeforeTheEnd(error))

const isBeforeTheEnd = (error: unknown): boolean =>
  error instanceof Database.SqliteError && /^SQLITE_(BUSY|LOCKED|READONLY|FULL|IOERR_WRITE|CONSTRAINT)/.test(error.code)

const explain = (kind: string, filename: string): string => {
  switch (kind) {
    case "BUSY":
    case "LOCKED":
      return `${filename} is locked by another process`
    case "READONLY":
      return `${filename} cannot be written: the file, its folder or its file system is read-only`
    case "FULL":
      return `No space is left for ${filename}`
    case "IOERR":
      return `The disk under ${filename} failed`
    case "CORRUPT":
      return `${filename} is corrupt: keep a copy of it and its -wal file, then restore a backup`
    case "CONSTRAINT":
      return `${filename} contradicts itself: keep a copy of it and its -wal file, audit it, then restore a backup`
    case "NOTADB":
      return `${filename} is not an SQLite database`
    case "CANTOPEN":
    case "PERM":
    case "AUTH":
      return `${filename} cannot be opened: is ${dirname(filename)} a folder that this user may write to?`
    default:
      return `${filename} failed`
  }
}
