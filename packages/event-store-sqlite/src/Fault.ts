/** The failures of a database file, in words that an operator can act on. */
import { dirname } from "node:path"
import Database from "better-sqlite3"

export type Kind =
  | "locked"
  | "readOnly"
  | "full"
  | "disk"
  | "corrupt"
  | "notADatabase"
  | "notOpenable"
  | "missing"
  | "foreign"
  | "newerSchema"
  | "olderSchema"
  | "closed"
  | "other"

export class Fault extends Error {
  readonly kind: Kind
  /** A COMMIT failed in a way that may leave all of the transaction on disk: the next recovery of the file can bring it back. */
  readonly inDoubt: boolean

  constructor(kind: Kind, message: string, { inDoubt = false, cause }: { readonly inDoubt?: boolean; readonly cause?: unknown } = {}) {
    super(message, { cause })
    this.kind = kind
    this.inDoubt = inDoubt
  }
}

/** The fault that an error of SQLite means. Any other error is a bug, and is thrown again. */
export const faultOf = (error: unknown, filename: string): Fault => {
  if (error instanceof Fault) return error
  if (!(error instanceof Database.SqliteError)) throw error
  const [kind, message] = explain(error, filename)
  return new Fault(kind, message, { cause: error })
}

/**
 * The fault that a failed COMMIT means. If a write was refused, the frame that ends the transaction in the write-ahead log is incomplete,
 * so nothing was written. A step after that frame (its sync, the shared index) can fail and still leave the transaction readable.
 */
export const faultOfCommit = (error: unknown, filename: string): Fault => {
  const fault = faultOf(error, filename)
  return new Fault(fault.kind, fault.message, { inDoubt: !isBeforeTheEnd(error), cause: error })
}

const isBeforeTheEnd = (error: unknown): boolean =>
  error instanceof Database.SqliteError && /^SQLITE_(BUSY|LOCKED|READONLY|FULL|IOERR_WRITE|CONSTRAINT)/.test(error.code)

const explain = ({ code, message }: { readonly code: string; readonly message: string }, filename: string): readonly [Kind, string] => {
  const told = `(${code}: ${message})`
  switch (code.split("_")[1]) {
    case "BUSY":
    case "LOCKED":
      return ["locked", `${filename} is locked by another process ${told}`]
    case "READONLY":
      return ["readOnly", `${filename} cannot be written: the file, its folder or its file system is read-only ${told}`]
    case "FULL":
      return ["full", `No space is left for ${filename} ${told}`]
    case "IOERR":
      return ["disk", `The disk under ${filename} failed ${told}`]
    case "CORRUPT":
      return ["corrupt", `${filename} is corrupt: keep a copy of it and its -wal file, then restore a backup ${told}`]
    case "NOTADB":
      return ["notADatabase", `${filename} is not an SQLite database ${told}`]
    case "CANTOPEN":
    case "PERM":
    case "AUTH":
      return ["notOpenable", `${filename} cannot be opened: is ${dirname(filename)} a folder that this user may write to? ${told}`]
    default:
      return ["other", `${filename} failed ${told}`]
  }
}
