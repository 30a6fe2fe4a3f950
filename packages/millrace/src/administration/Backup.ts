/** A copy of a whole store in files, while a server works on it. */
import { Audit, type Head } from "@millrace/audit"
import { SqliteCopy, SqliteEventStore } from "@millrace/event-store-sqlite"
import { Clock, Effect, Redacted } from "effect"
import * as BackupFolder from "../BackupFolder.ts"
import * as DiskFiles from "../DiskFiles.ts"
import type { Failure } from "../Failure.ts"
import * as Progress from "../Progress.ts"
import type { Files } from "../StoreUrl.ts"
import { VERSION } from "../Version.ts"

export interface BackupOptions {
  /** A folder that does not exist yet, or is empty. */
  readonly to: string
  /** Milliseconds after which the keys must be deleted, and are not restored any more. */
  readonly keysLifetime: number
  /** Included in the backup: with it, anyone who has the backup can read everything in it. */
  readonly masterKey: Redacted.Redacted<string> | undefined
}

/** A backup that was made. */
export interface Backup {
  readonly backup: string
  /** Whether an audit of the copy found nothing. */
  readonly ok: boolean
  readonly problems: number
  readonly madeAt: Date
  readonly events: number
  readonly bytes: number
  readonly blobs: number
  readonly masterKey: boolean
  readonly deleteKeysBy: Date
  readonly head: Head
}

export const make = (files: Files, { keysLifetime, masterKey, to }: BackupOptions): Effect.Effect<Backup, Failure> =>
  Effect.gen(function* () {
    const { paths, finish } = yield* BackupFolder.begin(to)
    const madeAt = yield* Clock.currentTimeMillis
    yield* Progress.counting("Copying the store", "pages", (advance) => SqliteCopy.copy(files, paths, advance))
    // After the log, which names them: a blob that was removed meanwhile was meant to go
    const blobs = yield* Progress.bytes("Copying the blobs", (advance) => BackupFolder.copyBlobs(files.blobs, paths.blobs, advance))
    const withMasterKey = masterKey !== undefined
    if (withMasterKey) yield* DiskFiles.write(paths.masterKey, `${Redacted.value(masterKey)}\n`)
    // A log with problems is copied all the same
    const { found, head } = yield* Effect.provide(
      Progress.watch("Auditing the copy")(Audit.run()),
      SqliteEventStore.layer({ filename: paths.log, readOnly: true })
    )
    const log = yield* Progress.bytes("Hashing the log", (advance) => DiskFiles.contentOf(paths.log, advance))
    const state = yield* Progress.bytes("Hashing the state", (advance) => DiskFiles.contentOf(paths.state, advance))
    const deleteBy = madeAt + keysLifetime
    const keys = { path: "keys/millrace.state.db", ...state, masterKey: withMasterKey, deleteBy } as const
    const made = { format: 1, millrace: VERSION, madeAt, head, problems: found } as const
    const folder = yield* finish({ ...made, log: { path: "log/millrace.db", ...log }, keys, blobs })
    return {
      backup: folder,
      ok: found === 0,
      problems: found,
      madeAt: new Date(madeAt),
      events: head.events,
      bytes: log.bytes + state.bytes + blobs.bytes,
      blobs: blobs.count,
      masterKey: withMasterKey,
      deleteKeysBy: new Date(deleteBy),
      head
    }
  }).pipe(Effect.scoped)
