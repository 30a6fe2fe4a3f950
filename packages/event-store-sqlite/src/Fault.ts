/** What can go wrong with a database file, in words that someone who runs it can act on. */
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
  /** A COMMIT failed in a way that may leave all of it on disk: the next recovery of the file can bring it back. */
  readonly inDoubt: boolean

  constructor(kind: Kind, message: string, { inDoubt = false, cause }: { readonly inDoubt?: boolean; readonly cause?: unknown } = {}) {
    super(message, { cause })
    this.kind = kind
    this.inDoubt = inDoubt
  }
}

/** What an error of SQLite means for this file. Anything else that was thrown is a bug, and thrown on. */
export const faultOf = (error: unknown, filename: string): Fault => {
  if (error instanceof Fault) return error
  if (!(error instanceof Database.SqliteError)) throw error
  const [kind, message] = explain(error, filename)
  return new Fault(kind, message, { cause: error })
}

/**
 * What a failed COMMIT means. A write that was refused cannot have completed the frame that marks the end of a transaction in the
 * write-ahead log. Whatever comes after that frame (its sync, the shared index) can fail and yet leave the transaction readable.
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
