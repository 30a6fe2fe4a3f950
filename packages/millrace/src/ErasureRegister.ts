/**
 * Who was erased, and when: a file of JSON lines that `accounts erase` adds to, kept apart from the store, so that a restored backup,
 * which still has their keys, can be told. It holds ids and times, nothing personal.
 */
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, readSync, writeSync } from "node:fs"
import { dirname, join } from "node:path"
import { Timestamp, Vault } from "@millrace/core"
import { SqliteStateStore } from "@millrace/event-store-sqlite"
import { Clock, Effect, Option, Schema } from "effect"
import * as DiskFiles from "./DiskFiles.ts"
import { CommandFailed } from "./Failure.ts"
import * as Setting from "./Setting.ts"
import * as StoreUrl from "./StoreUrl.ts"

export const register = Setting.optional({
  flag: "register",
  variable: "MILLRACE_ERASURES",
  description: "File where erasures are written down, best on another disk; erasures.jsonl beside the store, when left out",
  metavar: "file",
  parse: Setting.text,
  expected: "a file"
})

/** The register of a store, where no other was named. */
export const fileOf = ({ log }: StoreUrl.Files, given: Option.Option<string>): string =>
  Option.getOrElse(given, () => join(dirname(log), "erasures.jsonl"))

/** Where to write an erasure down: a store on other machines has no folder to put the register in. */
export const needed = (store: string, given: Option.Option<string>): Effect.Effect<string, CommandFailed> => {
  if (Option.isSome(given)) return Effect.succeed(given.value)
  return StoreUrl.isRemote(store)
    ? Effect.fail(new CommandFailed("name the file where erasures are written down, by --register or MILLRACE_ERASURES"))
    : Effect.map(StoreUrl.filesOf(store), (files) => fileOf(files, given))
}

const Entry = Schema.fromJsonString(Schema.Struct({ subject: Schema.String, at: Timestamp }))

/** Adds a subject; on the disk when it answers. */
export const add = (file: string, subject: string): Effect.Effect<void, CommandFailed> =>
  Effect.gen(function* () {
    const entry = Schema.encodeSync(Entry)({ subject, at: yield* Clock.currentTimeMillis })
    yield* DiskFiles.attempt(`${file}, the register of erasures, cannot be written`, () => {
      const isNew = !existsSync(file)
      const register = openSync(file, "a+", 0o600)
      try {
        // A line that was cut off stays one of its own, to be told
        writeSync(register, `${endsItsLine(file) ? "" : "\n"}${entry}\n`)
        fsyncSync(register)
      } finally {
        closeSync(register)
      }
      return isNew
    }).pipe(Effect.flatMap((isNew) => (isNew ? DiskFiles.sync(dirname(file)) : Effect.void)))
  })

const endsItsLine = (file: string): boolean => {
  const text = readFileSync(file)
  return text.length === 0 || text.at(-1) === 0x0a
}

const SQLITE = Buffer.from("SQLite format 3\0")

/** All subjects that a register names, or that a state database remembers as destroyed. */
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
          onNone: () => Effect.fail(new CommandFailed(`${file} is no register of erasures, nor a state database: see its line ${i + 1}`)),
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
