/**
 * The address of a store: `sqlite:./data/millrace.db`, `postgres://user@host/database`, `kurrentdb://node1,node2,node3` with a state
 * elsewhere, or `memory:` for as long as a server runs.
 */
import { closeSync, existsSync, mkdirSync, openSync, statSync } from "node:fs"
import { dirname, join, resolve } from "node:path"
import { generateMasterKey, type MalformedMasterKey, MasterKey } from "@millrace/core"
import { EventStore, MemoryEventStore, MemoryStateStore, MemoryTextIndex, type StateStore, type TextIndex } from "@millrace/event-sourcing"
import { KurrentDbEventStore } from "@millrace/event-store-kurrentdb"
import { PostgresEventStore, PostgresStateStore, PostgresStores, PostgresTextIndex } from "@millrace/event-store-postgres"
import { SqliteEventStore, SqliteStateStore, SqliteTextIndex } from "@millrace/event-store-sqlite"
import { Effect, Layer, type Redacted } from "effect"
import { CommandFailed, fail, textOf } from "./Failure.ts"
import * as MasterKeyFile from "./MasterKeyFile.ts"
import * as SettingNames from "./SettingNames.ts"
import * as StateUrl from "./StateUrl.ts"

export const DEFAULT = "sqlite:./data/millrace.db"

/** A store in memory. */
export const MEMORY = "memory:"

/** Stands for stores that a host of the library gives as a layer. */
export const GIVEN = "layer:"

/** A store that several hosts share. */
export const isPostgres = (url: string): boolean => /^postgres(?:ql)?:\/\//u.test(url)

/** A log on KurrentDB, by its new or its old name. */
export const isKurrentDb = (url: string): boolean => /^(?:kurrentdb|esdb)(?:\+discover)?:\/\//u.test(url)

/** A store on other machines, which has no folder on this one. */
export const isRemote = (url: string): boolean => isPostgres(url) || isKurrentDb(url) || url === GIVEN

/**
 * Where small documents of jobs are stored unless a setting says so. On a store in files, or in memory, no release that cannot read them in
 * events has the log open: the log was migrated, and the older release refuses it.
 */
export const documentsOf = (url: string): "state" | "events" => (isRemote(url) ? "state" : "events")

export interface StoreOptions {
  readonly url: string
  /** `create` makes a missing store; `open` fails. */
  readonly mode: "create" | "open"
}

/** The log, the state and the master key. Stores by their address have text indexes, too; those given as layers need none. */
export type Stores = EventStore.EventStore | StateStore.StateStore | MasterKey

/** What {@link layer} provides. */
export type Opened = Stores | TextIndex.TextIndex

export const layer = ({ url, mode }: StoreOptions) =>
  Layer.unwrap(
    Effect.gen(function* () {
      if (url === MEMORY && mode === "create") return memoryLayer(yield* MasterKeyFile.byEnvironment)
      if (isKurrentDb(url)) {
        const state = yield* StateUrl.needed
        return Layer.mergeAll(stateLayer(state, mode).pipe(Layer.provideMerge(nodesLayer(url))), MasterKey.layer(yield* sharedKey))
      }
      yield* StateUrl.refused
      if (isPostgres(url)) return Layer.mergeAll(PostgresStores.layer({ url }), MasterKey.layer(yield* sharedKey))
      const files = yield* filesOf(url)
      const isNew = yield* isMissing(files)
      if (isNew && mode === "open") return yield* Effect.fail(noStore(files.log))
      if (isNew) yield* prepare(files.state)
      // The key is made first: a store without its key is lost, a key without a store is harmless
      return Layer.merge(SqliteStateStore.layer({ filename: files.state }), SqliteTextIndex.layer({ filename: files.search })).pipe(
        Layer.provideMerge(SqliteEventStore.layer({ filename: files.log })),
        Layer.provideMerge(MasterKeyFile.layer(yield* MasterKeyFile.byEnvironment, files.masterKey, isNew))
      )
    })
  )

/** Both stores in memory, with a new master key unless one is given. */
export const memoryLayer = (masterKey?: Redacted.Redacted<string>): Layer.Layer<Opened, MalformedMasterKey> =>
  Layer.unwrap(
    Effect.map(masterKey === undefined ? generateMasterKey : Effect.succeed(masterKey), (key) =>
      Layer.mergeAll(MemoryEventStore.layer, MemoryStateStore.layer, MemoryTextIndex.layer, MasterKey.layer(key))
    )
  )

/** The event store on KurrentDB; fails at once where no node answers. */
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
      if (state._tag === "Postgres")
        return Layer.merge(PostgresStateStore.layer({ url: state.url }), PostgresTextIndex.layer({ url: state.url }))
      const { filename } = state
      if (!existsSync(filename)) {
        // A new state beside an old log would silently lose sealed data and checkpoints
        const head = yield* EventStore.EventStore.use(({ head }) => head)
        if (mode === "open" || head !== EventStore.start) return yield* Effect.fail(noState(filename))
        yield* prepare(filename)
      }
      return Layer.merge(SqliteStateStore.layer({ filename }), SqliteTextIndex.layer({ filename: searchOf(filename) }))
    })
  )

const noState = (filename: string) =>
  new CommandFailed(
    `there is no state at ${filename}, which has the keys to what the log holds sealed: put it back, or an empty file to do without`
  )

/** The master key of a store that several hosts share: no file can hold it. */
const sharedKey = Effect.gen(function* () {
  const key = yield* MasterKeyFile.byEnvironment
  if (key !== undefined) return key
  const { masterKey } = yield* SettingNames.Current
  return yield* fail(
    `a store on PostgreSQL or KurrentDB needs ${masterKey}, the same for every host: 64 hexadecimal digits, such as openssl rand -hex 32 gives`
  )
})

/** The log alone, read-only. */
export const logLayer = (url: string) =>
  Layer.unwrap(
    Effect.gen(function* () {
      if (isPostgres(url)) return PostgresEventStore.layer({ url, readOnly: true })
      if (isKurrentDb(url)) return nodesLayer(url)
      const { log } = yield* filesOf(url)
      const file = statSync(log, { throwIfNoEntry: false })
      if (file === undefined) return yield* Effect.fail(noStore(log))
      if (file.isDirectory()) return yield* Effect.fail(noFile(log))
      if (file.size === 0) return yield* fail(`${log} is empty: it holds no store`)
      return SqliteEventStore.layer({ filename: log, readOnly: true })
    })
  )

/** The state and the master key of a store, for a command that only reads sealed data. */
export const secretsLayer = (url: string) =>
  Layer.unwrap(
    Effect.gen(function* () {
      if (!isRemote(url)) {
        const { state, masterKey: file } = yield* filesOf(url)
        const key = (yield* MasterKeyFile.byEnvironment) ?? (yield* MasterKeyFile.read(file))
        return Layer.mergeAll(SqliteStateStore.layer({ filename: state, readOnly: true }), MasterKey.layer(key))
      }
      const key = yield* sharedKey
      const state: StateUrl.StateUrl = isPostgres(url) ? { _tag: "Postgres", url } : yield* StateUrl.needed
      return Layer.mergeAll(
        state._tag === "Postgres"
          ? PostgresStateStore.layer({ url: state.url, readOnly: true })
          : SqliteStateStore.layer({ filename: state.filename, readOnly: true }),
        MasterKey.layer(key)
      )
    })
  )

/** A position as a person writes it, with or without its leading zeros; undefined for any other text. */
export const positionOf = (text: string, url: string): EventStore.Position | undefined =>
  (isKurrentDb(url) ? KurrentDbEventStore : isPostgres(url) ? PostgresEventStore : SqliteEventStore).parsePosition(text)

/** The absolute paths of a store's files, and of its folder of blobs. */
export interface Files {
  readonly log: string
  readonly state: string
  /** The text indexes. They are derived from the log, so no backup has them. */
  readonly search: string
  readonly masterKey: string
  readonly blobs: string
}

/** The file beside another that differs in the end of its name: `millrace.state.db` beside `millrace.db`. */
const beside = (file: string, kind: string): string => file.replace(/(?<end>\.[^./]*)?$/u, `.${kind}$<end>`)

/** The text indexes beside a state. */
const searchOf = (state: string): string => beside(state, "search")

const URL = /^sqlite:(?:\/\/(?=\/))?(?!\/\/)(?<path>.+)$/u

/** The files of a store, whether they exist or not. */
export const filesOf = (url: string): Effect.Effect<Files, CommandFailed> => {
  if (isPostgres(url)) return fail("this is for a store in files; for PostgreSQL see docs/postgresql.md")
  if (isKurrentDb(url)) return fail("this is for a store in files; for KurrentDB see docs/kurrentdb.md")
  if (url === GIVEN) return fail("this is for a store in files, and the store was given as a layer")
  if (url === MEMORY) return fail("a store in memory lasts as long as its server: name another store")
  const path = URL.exec(url)?.groups?.["path"]
  if (path === undefined || path.startsWith(":")) {
    // The message does not repeat the address, which may contain a password
    return Effect.flatMap(SettingNames.Current, ({ store }) =>
      fail(
        `unknown store, by ${store}: sqlite:PATH, such as ${DEFAULT}, postgres://USER@HOST/DATABASE, kurrentdb://HOST, or memory: for serve`
      )
    )
  }
  const log = resolve(path)
  return Effect.succeed({
    log,
    state: beside(log, "state"),
    search: beside(log, "search"),
    masterKey: join(dirname(log), "master.key"),
    blobs: join(dirname(log), "blobs")
  })
}

/** The files of a store; fails where log or state is missing. */
export const existing = (url: string): Effect.Effect<Files, CommandFailed> =>
  Effect.gen(function* () {
    const files = yield* filesOf(url)
    return (yield* isMissing(files)) ? yield* Effect.fail(noStore(files.log)) : files
  })

const noFile = (log: string) => new CommandFailed(`${log} is a folder: name a file in it`)

const noStore = (log: string) => new CommandFailed(`there is no store at ${log}`)

/**
 * Whether neither log nor state exists. Fails if only one is missing: a new one would silently lose sealed data, or the log.
 */
const isMissing = ({ log, state }: Files): Effect.Effect<boolean, CommandFailed> => {
  const stateFile = statSync(state, { throwIfNoEntry: false })
  if (statSync(log, { throwIfNoEntry: false })?.isDirectory() === true) return Effect.fail(noFile(log))
  if (existsSync(log)) {
    return stateFile === undefined
      ? fail(`${state} is missing, and with it the keys to what is sealed: put it back, or an empty file to do without`)
      : Effect.succeed(false)
  }
  return stateFile !== undefined && stateFile.size > 0
    ? fail(`${log} is missing, but ${state} is there, which belongs to it: put it back`)
    : Effect.succeed(true)
}

/** Makes the folder and an empty state. If the rest fails, the next start goes on from there. */
const prepare = (state: string): Effect.Effect<void, CommandFailed> =>
  Effect.try({
    try: () => {
      makeFolder(dirname(state))
      closeSync(openSync(state, "a"))
    },
    catch: (error) => new CommandFailed(`a store cannot be made in ${dirname(state)}: ${textOf(error)}`)
  })

/** Makes a folder and those above it, one by one: `mkdirSync` with `recursive` never returns under `/proc`. */
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
