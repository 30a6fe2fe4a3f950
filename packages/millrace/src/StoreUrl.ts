/**
 * Where everything is kept: `sqlite:./data/millrace.db`, `postgres://user@host/database`, `kurrentdb://node1,node2,node3` with a state
 * elsewhere, or `memory:` for as long as a server runs.
 */
import { closeSync, existsSync, mkdirSync, openSync, statSync } from "node:fs"
import { dirname, join, resolve } from "node:path"
import { generateMasterKey, MasterKey } from "@millrace/core"
import { EventStore, MemoryEventStore, MemoryStateStore, type StateStore } from "@millrace/event-sourcing"
import { KurrentDbEventStore } from "@millrace/event-store-kurrentdb"
import { PostgresEventStore, PostgresStateStore, PostgresStores } from "@millrace/event-store-postgres"
import { SqliteEventStore, SqliteStateStore } from "@millrace/event-store-sqlite"
import { Effect, Layer, type Redacted } from "effect"
import { CommandFailed } from "./Failure.ts"
import * as MasterKeyFile from "./MasterKeyFile.ts"
import * as StateUrl from "./StateUrl.ts"

export const DEFAULT = "sqlite:./data/millrace.db"

/** A store that keeps nothing. */
export const MEMORY = "memory:"

/** A store that several hosts share. */
export const isPostgres = (url: string): boolean => /^postgres(?:ql)?:\/\//u.test(url)

/** A log by either name of its database; the state is elsewhere. */
export const isKurrentDb = (url: string): boolean => /^(?:kurrentdb|esdb)(?:\+discover)?:\/\//u.test(url)

/** What is kept on other machines has no folder of its own on this one. */
export const isRemote = (url: string): boolean => isPostgres(url) || isKurrentDb(url)

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
      if (url === MEMORY && mode === "create") return memoryLayer(masterKey)
      if (isKurrentDb(url)) {
        const state = yield* StateUrl.needed
        if (masterKey === undefined) return yield* Effect.fail(new CommandFailed(NO_KEY))
        return Layer.mergeAll(stateLayer(state, mode).pipe(Layer.provideMerge(nodesLayer(url))), MasterKey.layer(masterKey))
      }
      yield* StateUrl.refused
      if (isPostgres(url)) {
        if (masterKey === undefined) return yield* Effect.fail(new CommandFailed(NO_KEY))
        return Layer.mergeAll(PostgresStores.layer({ url }), MasterKey.layer(masterKey))
      }
      const files = yield* filesOf(url)
      const isNew = yield* isMissing(files)
      if (isNew && mode === "open") return yield* Effect.fail(noStore(files.log))
      if (isNew) yield* prepare(files.state)
      // The key first: a store without its key is lost, a key without its store is not
      return SqliteStateStore.layer({ filename: files.state }).pipe(
        Layer.provideMerge(SqliteEventStore.layer({ filename: files.log })),
        Layer.provideMerge(MasterKeyFile.layer({ given: masterKey, file: files.masterKey, isNew }))
      )
    })
  )

/** Nothing outlives it. */
export const memoryLayer = (masterKey?: Redacted.Redacted<string>) =>
  Layer.unwrap(
    Effect.map(masterKey === undefined ? generateMasterKey : Effect.succeed(masterKey), (key) =>
      Layer.mergeAll(MemoryEventStore.layer, MemoryStateStore.layer, MasterKey.layer(key))
    )
  )

/** Nodes that answer: without them nothing begins. */
const nodesLayer = (connection: string) =>
  Layer.effectDiscard(
    Effect.mapError(
      EventStore.EventStore.use(({ head }) => head),
      ({ reason }) => new EventStore.StoreUnavailable({ reason: `KurrentDB does not answer: ${reason}` })
    )
  ).pipe(Layer.provideMerge(KurrentDbEventStore.layer({ connection })))

const stateLayer = (state: StateUrl.StateUrl, mode: StoreOptions["mode"]) =>
  Layer.unwrap(
    Effect.gen(function* () {
      if (state._tag === "Postgres") return PostgresStateStore.layer({ url: state.url })
      const { filename } = state
      if (!existsSync(filename)) {
        // A state that is begun anew beside a log loses what was sealed, and what had been seen already, without a word
        const head = yield* EventStore.EventStore.use(({ head }) => head)
        if (mode === "open" || head !== EventStore.start) return yield* Effect.fail(noState(filename))
        yield* prepare(filename)
      }
      return SqliteStateStore.layer({ filename })
    })
  )

const noState = (filename: string) =>
  new CommandFailed(
    `there is no state at ${filename}, which has the keys to what the log holds sealed: put it back, or an empty file to do without`
  )

const NO_KEY =
  "a store on PostgreSQL or KurrentDB needs MILLRACE_MASTER_KEY, the same for every host: 64 hexadecimal digits, such as openssl rand -hex 32 gives"

/** Only the log, for whoever only reads it. */
export const logLayer = (url: string) =>
  Layer.unwrap(
    Effect.gen(function* () {
      if (isPostgres(url)) return PostgresEventStore.layer({ url, readOnly: true })
      if (isKurrentDb(url)) return nodesLayer(url)
      const { log } = yield* filesOf(url)
      if (!existsSync(log)) return yield* Effect.fail(noStore(log))
      return SqliteEventStore.layer({ filename: log, readOnly: true })
    })
  )

/** A position as events of a store show it; its leading zeros may be left out. Undefined for what is none. */
export const positionOf = (text: string, url: string = DEFAULT): EventStore.Position | undefined => {
  if (isPostgres(url)) return PostgresEventStore.parsePosition(text)
  return isKurrentDb(url) ? KurrentDbEventStore.parsePosition(text) : SqliteEventStore.parsePosition(text)
}

/** A store's files, by their absolute paths; the blobs are a folder. */
export interface Files {
  readonly log: string
  readonly state: string
  readonly masterKey: string
  readonly blobs: string
}

const URL = /^sqlite:(?:\/\/(?=\/))?(?!\/\/)(?<path>.+)$/u

/** Where the files of a store are, or would be. */
export const filesOf = (url: string): Effect.Effect<Files, CommandFailed> => {
  if (isPostgres(url))
    return Effect.fail(new CommandFailed("this is for a store in files; PostgreSQL has means of its own, see docs/postgresql.md"))
  if (isKurrentDb(url))
    return Effect.fail(new CommandFailed("this is for a store in files; KurrentDB has means of its own, see docs/kurrentdb.md"))
  if (url === MEMORY) return Effect.fail(new CommandFailed("memory: lasts as long as the server that keeps it: name another store"))
  const path = URL.exec(url)?.groups?.["path"]
  if (path === undefined || path.startsWith(":")) {
    return Effect.fail(
      new CommandFailed(
        `unknown store ${JSON.stringify(url)}: sqlite:PATH, such as ${DEFAULT}, postgres://USER@HOST/DATABASE, kurrentdb://HOST, or memory: for serve`
      )
    )
  }
  const log = resolve(path)
  return Effect.succeed({
    log,
    state: log.replace(/(?<end>\.[^./]*)?$/u, ".state$<end>"),
    masterKey: join(dirname(log), "master.key"),
    blobs: join(dirname(log), "blobs")
  })
}

/** The files of a store that is there, whole. */
export const existing = (url: string): Effect.Effect<Files, CommandFailed> =>
  Effect.gen(function* () {
    const files = yield* filesOf(url)
    return (yield* isMissing(files)) ? yield* Effect.fail(noStore(files.log)) : files
  })

const noStore = (log: string) => new CommandFailed(`there is no store at ${log}`)

/**
 * Whether there is nothing yet. Half a store is something else: with its other half begun anew, what was sealed, or had been seen
 * already, would be lost without a word.
 */
const isMissing = ({ log, state }: Files): Effect.Effect<boolean, CommandFailed> => {
  const stateFile = statSync(state, { throwIfNoEntry: false })
  if (statSync(log, { throwIfNoEntry: false })?.isDirectory() === true)
    return Effect.fail(new CommandFailed(`${log} is a folder: name a file in it`))
  if (existsSync(log)) {
    return stateFile === undefined
      ? Effect.fail(
          new CommandFailed(`${state} is missing, and with it the keys to what is sealed: put it back, or an empty file to do without`)
        )
      : Effect.succeed(false)
  }
  return stateFile !== undefined && stateFile.size > 0
    ? Effect.fail(new CommandFailed(`${log} is missing, but ${state} is there, which belongs to it: put it back`))
    : Effect.succeed(true)
}

/** The folder, and an empty state: whatever stops the making of the rest, it can go on from there. */
const prepare = (state: string): Effect.Effect<void, CommandFailed> =>
  Effect.try({
    try: () => {
      makeFolder(dirname(state))
      closeSync(openSync(state, "a"))
    },
    catch: (error) =>
      new CommandFailed(`a store cannot be made in ${dirname(state)}: ${error instanceof Error ? error.message : String(error)}`)
  })

/** With those above it. One by one: told to do it alone, Node never comes back where a folder cannot be made, as under `/proc`. */
export const makeFolder = (folder: string): void => {
  if (existsSync(folder)) return
  makeFolder(dirname(folder))
  try {
    mkdirSync(folder)
  } catch (error) {
    // Another process may have been first
    if (!existsSync(folder)) throw error
  }
}
