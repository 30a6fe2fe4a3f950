/**
 * The register of erasures: a file of JSON lines, one for each erased account, with its id and the time. `accounts erase` adds to it and
 * `restore` reads it, since a backup still has the keys of accounts that were erased after it.
 */
import { appendFileSync, closeSync, existsSync, openSync, readFileSync, readSync } from "node:fs"
import { dirname, join } from "node:path"
import { Timestamp, Vault } from "@millrace/core"
import { SqliteStateStore } from "@millrace/event-store-sqlite"
import { Clock, Effect, Option, Schema } from "effect"
import * as DiskFiles from "./DiskFiles.ts"
import { CommandFailed, fail } from "./Failure.ts"
import * as Setting from "./Setting.ts"
import * as SettingNames from "./SettingNames.ts"
import * as StoreUrl from "./StoreUrl.ts"

export const register = Setting.optional(
  "register",
  "File for the register of erasures, best on another disk (default: erasures.jsonl beside the store)",
  Setting.file,
  "MILLRACE_ERASURES"
)

/** The register of a store: the given file, else the default. */
export const fileOf = ({ log }: StoreUrl.Files, given: Option.Option<string>): string =>
  Option.getOrElse(given, () => join(dirname(log), "erasures.jsonl"))

/** The register to write to. A store on other machines has no folder for a default. */
export const needed = (store: string, given: Option.Option<string>): Effect.Effect<string, CommandFailed> => {
  if (Option.isSome(given)) return Effect.succeed(given.value)
  return StoreUrl.isRemote(store)
    ? Effect.flatMap(SettingNames.Current, ({ erasures }) => fail(`name the file where erasures are written down, by ${erasures}`))
    : Effect.map(StoreUrl.filesOf(store), (files) => fileOf(files, given))
}

const Entry = Schema.fromJsonString(Schema.Struct({ subject: Schema.String, at: Timestamp }))

/** Adds a subject and syncs the file to the disk. */
export const add = (file: string, subject: string): Effect.Effect<void, CommandFailed> =>
  Effect.gen(function* () {
    const entry = Schema.encodeSync(Entry)({ subject, at: yield* Clock.currentTimeMillis })
    yield* DiskFiles.attempt(`${file}, the register of erasures, cannot be written`, () => {
      const isNew = !existsSync(file)
      // A line that was cut off stays on its own, so that `read` reports it
      appendFileSync(file, `${isNew || endsItsLine(file) ? "" : "\n"}${entry}\n`, { mode: 0o600, flush: true })
      return isNew
    }).pipe(Effect.flatMap((isNew) => (isNew ? DiskFiles.sync(dirname(file)) : Effect.void)))
  })

const endsItsLine = (file: string): boolean => {
  const text = readFileSync(file)
  return text.length === 0 || text.at(-1) === 0x0a
}

const SQLITE = Buffer.from("SQLite format 3\0")

/** The subjects in a register, or those that a state database marks as destroyed. */
export const read = (file: string): Effect.Effect<ReadonlyArray<string>, CommandFailed> =>
  Effect.gen(function* () {
    const start = yield* DiskFiles.attempt(`${file} cannot be read`, () => firstBytes(file))
    if (start.equals(SQLITE)) {
      const state = SqliteStateStore.layer({ filename: file, readOnly: true })
      return yield* Effect.mapError(
        Effect.map(Effect.provide(Vault.census, state), ({ destroyed }) => destroyed),
        ({ reason }) => new CommandFailed(reason)
      )
    }
    const text = yield* DiskFiles.attempt(`${file} cannot be read`, () => readFileSync(file, "utf8"))
    return yield* Effect.forEach(
      [...text.split("\n").entries()].filter(([, line]) => line !== ""),
      ([i, line]) =>
        Option.match(Schema.decodeUnknownOption(Entry)(line), {
          onNone: () => fail(`${file} is no register of erasures, nor a state database: see its line ${i + 1}`),
          onSome: ({ subject }) => Effect.succeed(subject)
        })
    )
  })

const firstBytes = (file: string): Buffer => {
  const bytes = Buffer.alloc(SQLITE.length)
  const handle = openSync(file, "r")
  try {
    return bytes.subarray(0, readSync(handle, bytes))
  } finally {
    closeSync(handle)
  }
}
