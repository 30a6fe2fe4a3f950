/** Where everything is kept: `sqlite:./data/millrace.db`, or `memory:` for as long as a server runs. */
import { existsSync, mkdirSync } from "node:fs"
import { dirname, join, resolve } from "node:path"
import { Effect, Layer, Redacted } from "effect"
import { generateMasterKey, MasterKey } from "@millrace/core"
import { EventStore, MemoryEventStore, MemoryStateStore, StateStore } from "@millrace/event-sourcing"
import { SqliteEventStore, SqliteStateStore } from "@millrace/event-store-sqlite"
import { CommandFailed } from "./Failure.ts"
import * as MasterKeyFile from "./MasterKeyFile.ts"

export const DEFAULT = "sqlite:./data/millrace.db"

export interface StoreOptions {
  readonly url: string
  /** `MILLRACE_MASTER_KEY`, where it is set. */
  readonly masterKey: Redacted.Redacted<string> | undefined
  /** `create` makes what is not there; `open` takes only what is. */
  readonly mode: "create" | "open"
}

/** The log, what is beside it, and the key to both. */
export type Stores = EventStore.EventStore | StateStore.StateStore | MasterKey

export const layer = ({ url, masterKey, mode }: StoreOptions) =>
  Layer.unwrap(
    Effect.gen(function* () {
      if (url === "memory:") {
        if (mode === "open") return yield* Effect.fail(new CommandFailed("memory: lasts as long as a server; name the store it should work on"))
        const key = masterKey ?? (yield* generateMasterKey)
        return Layer.mergeAll(MemoryEventStore.layer, MemoryStateStore.layer, MasterKey.layer(key))
      }
      const filename = yield* fileOf(url)
      if (mode === "create") yield* makeFolder(dirname(filename))
      else if (!existsSync(filename)) return yield* Effect.fail(new CommandFailed(`there is no store at ${filename}`))
      const state = stateFileOf(filename)
      const isNew = !existsSync(filename) && !existsSync(state)
      // The key first: a store without its key is lost, a key without its store is not
      return Layer.mergeAll(SqliteEventStore.layer({ filename }), SqliteStateStore.layer({ filename: state })).pipe(
        Layer.provideMerge(MasterKeyFile.layer({ given: masterKey, file: join(dirname(filename), "master.key"), isNew }))
      )
    })
  )

/** Only the log, for whoever only reads it. */
export const logLayer = (url: string) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const filename = yield* fileOf(url)
      if (!existsSync(filename)) return yield* Effect.fail(new CommandFailed(`there is no store at ${filename}`))
      return SqliteEventStore.layer({ filename, readOnly: true })
    })
  )

const fileOf = (url: string): Effect.Effect<string, CommandFailed> => {
  const path = url.startsWith("sqlite:") ? url.slice("sqlite:".length).replace(/^\/\/(?=\/)/u, "") : ""
  return path === ""
    ? Effect.fail(new CommandFailed(`unknown store ${JSON.stringify(url)}: sqlite:PATH, such as ${DEFAULT}, or memory: for serve`))
    : Effect.succeed(resolve(path))
}

const stateFileOf = (filename: string): string => filename.replace(/(?<end>\.[^./]*)?$/u, ".state$<end>")

const makeFolder = (folder: string): Effect.Effect<void, CommandFailed> =>
  Effect.try({
    try: () => void mkdirSync(folder, { recursive: true }),
    catch: (error) => new CommandFailed(`the folder ${folder} cannot be made: ${error instanceof Error ? error.message : String(error)}`)
  })
