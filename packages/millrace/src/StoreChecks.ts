/** The checks of `doctor` of a store: its files, or a store that several hosts share. They change nothing. */
import { accessSync, constants, existsSync, readdirSync, statfsSync, statSync } from "node:fs"
import { dirname } from "node:path"
import { MasterKey, Vault } from "@millrace/core"
import { EventStore, HashChain, type StateStore, stepBack } from "@millrace/event-sourcing"
import { SqliteCheck, SqliteEventStore, SqliteStateStore } from "@millrace/event-store-sqlite"
import { Clock, Effect, Layer, type Option, Stream } from "effect"
import { type Check, check, type Finding, finding } from "./Check.ts"
import * as ErasureRegister from "./ErasureRegister.ts"
import * as KeyCount from "./KeyCount.ts"
import * as MasterKeyFile from "./MasterKeyFile.ts"
import type * as StateUrl from "./StateUrl.ts"
import * as StoreUrl from "./StoreUrl.ts"

const MIB = 1024 * 1024

/** Less free space than this is reported. Bytes. */
const LEAST_ROOM = 256 * MIB

/** Larger write-ahead logs are reported: SQLite empties one long before, unless a reader never ends. Bytes. */
const LARGE_LOG = 512 * MIB

/** Milliseconds by which the clocks of hosts that write to one log may differ. */
const OFFSET = 2_000

const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0

const inMiB = (bytes: number): string => `${(bytes / MIB).toFixed(1)} MiB`

// a store in files

const files = ({ log, state }: StoreUrl.Files) =>
  Effect.sync(() => {
    const wal = sizeOf(`${log}-wal`) + sizeOf(`${state}-wal`)
    const detail = `log ${inMiB(sizeOf(log))}, state ${inMiB(sizeOf(state))}, write-ahead logs ${inMiB(wal)}`
    const endless = "some process reads without end, so that the write-ahead log cannot be emptied: find and end it"
    return finding(detail, wal < LARGE_LOG ? undefined : endless)
  })

const isAllowed = (file: string, mode: number): boolean => {
  try {
    accessSync(file, mode)
    return true
  } catch {
    return false
  }
}

const permissions = ({ log, state, masterKey }: StoreUrl.Files) =>
  Effect.sync(() => {
    const { R_OK, W_OK, X_OK } = constants
    const denied = [
      ...(isAllowed(dirname(log), R_OK | W_OK | X_OK) ? [] : [dirname(log)]),
      ...[log, state].filter((file) => !isAllowed(file, R_OK | W_OK))
    ]
    if (denied.length > 0) return finding(`this user may not write ${denied.join(", ")}`, "run as the user whose store it is")
    const mode = existsSync(masterKey) ? statSync(masterKey).mode & 0o777 : undefined
    if (mode !== undefined && (mode & 0o077) !== 0)
      return finding(`${masterKey} has mode ${mode.toString(8)}: others may read it`, `chmod 600 ${masterKey}`)
    return finding("the store may be read and written, its master key by its owner alone")
  })

const disk = ({ log, state }: StoreUrl.Files) =>
  Effect.sync(() => {
    const { bavail, bsize } = statfsSync(dirname(log))
    const free = bavail * bsize
    const detail = `${inMiB(free)} free under ${dirname(log)}`
    if (free < LEAST_ROOM) return finding(detail, "free some space: without it, every charge is refused")
    const isScarce = free < 2 * (sizeOf(log) + sizeOf(state))
    return finding(detail, isScarce ? "a backup on this disk would leave little room" : undefined, true)
  })

const wholeness = ({ log, state }: StoreUrl.Files) =>
  Effect.gen(function* () {
    const checked = yield* Effect.forEach([log, state], (file) =>
      Effect.map(SqliteCheck.check(file, "quick"), (checked) => ({ file, ...checked }))
    )
    const broken = checked.find(({ problems }) => problems.length > 0)
    if (broken !== undefined) return finding(`${broken.file}: ${broken.problems[0]}`, "keep a copy of it as it is, and restore a backup")
    const other = checked.find(({ journalMode }) => journalMode !== "wal")
    if (other !== undefined)
      return finding(`${other.file} is kept with journal_mode ${other.journalMode}`, "is it on a network file system?")
    return finding(
      `SQLite ${checked[0]?.version}; both files are whole (quick_check), write-ahead logged, and synced at each commit (synchronous FULL)`
    )
  })

const vault = ({ state, masterKey }: StoreUrl.Files) =>
  Effect.gen(function* () {
    const source = (yield* MasterKeyFile.byEnvironment) === undefined ? masterKey : MasterKeyFile.VARIABLE
    const key = yield* MasterKeyFile.find(masterKey, `it is missing: set ${MasterKeyFile.VARIABLE}, or put the file back at ${masterKey}`)
    return yield* opened(source, Layer.mergeAll(SqliteStateStore.layer({ filename: state, readOnly: true }), MasterKey.layer(key)))
  })

const opened = <E, R>(source: string, stores: Layer.Layer<StateStore.StateStore | MasterKey, E, R>) =>
  Effect.map(Effect.provide(Vault.census, Layer.provideMerge(Vault.Vault.layer, stores)), (census) =>
    finding(`${source} opens the vault, which has ${KeyCount.text(KeyCount.of(census))}`)
  )

/** Events that are looked at, for the last to be written need not be the latest. */
const NEWEST = 100

/** Compares this host's clock with the newest events of a log whose positions are numbers. */
const clock = <E, R>(log: Layer.Layer<EventStore.EventStore, E, R>) =>
  Effect.gen(function* () {
    const store = yield* EventStore.EventStore
    const after = stepBack(yield* store.head, NEWEST)
    const times = yield* Stream.runCollect(Stream.map(store.readAll(after), (event) => HashChain.timeOf(event)))
    const now = yield* Clock.currentTimeMillis
    const latest = Math.max(...times)
    if (times.length === 0) return finding("nothing to compare it with: the log is empty")
    const ahead = latest - now
    return ahead > OFFSET
      ? finding(
          `the log's newest event is ${ahead / 1000} s ahead of this host's clock`,
          "this clock is slow, or another host's was fast: set it by NTP"
        )
      : finding(`the log's newest event is ${-ahead / 1000} s old by this host's clock; a clock that is fast would not show`)
  }).pipe(Effect.provide(log))

const erasures = (of: StoreUrl.Files, given: Option.Option<string>) =>
  check(
    "erasures",
    Effect.gen(function* () {
      const file = ErasureRegister.fileOf(of, given)
      const isBeside = dirname(file) === dirname(of.log)
      const apart = isBeside ? "keep it on another disk: MILLRACE_ERASURES, or copy it after each erasure" : undefined
      if (!existsSync(file)) return finding(`no erasure is registered: there is no ${file}`, apart, true)
      return finding(`${new Set(yield* ErasureRegister.read(file)).size} in ${file}`, apart, true)
    })
  )

const leftovers = ({ log }: StoreUrl.Files) =>
  Effect.sync(() => {
    const found = readdirSync(dirname(log)).filter((name) => /\.(?:restoring|partial)$/u.test(name))
    return found.length === 0
      ? finding("none of a backup or restoration that was cut off")
      : finding(`${found.join(", ")} in ${dirname(log)}`, "remove what no running command is at work on", true)
  })

// a store that hosts share

/** Its files are the business of its server. */
const shared = (url: string) =>
  Effect.gen(function* () {
    const log = StoreUrl.logLayer(url)
    const look = EventStore.EventStore.use(({ head }) => head).pipe(Effect.provide(log))
    const store = yield* check("store", Effect.as(look, finding("the log can be read")))
    if (!store.ok) return [store]
    const key = yield* check("master key", opened(MasterKeyFile.VARIABLE, StoreUrl.secretsLayer(url)))
    return StoreUrl.isPostgres(url) ? [store, key, yield* check("clock", clock(log))] : [store, key]
  })

/** The checks of a store; without one, that there is none. `register`: of erasures, if it is not beside the store. */
export const checks = (url: string, register: Option.Option<string>): Effect.Effect<ReadonlyArray<Check>, never, StateUrl.Given> =>
  Effect.gen(function* () {
    if (StoreUrl.isPostgres(url) || StoreUrl.isKurrentDb(url)) return yield* shared(url)
    const there = yield* Effect.result(StoreUrl.existing(url))
    const store = yield* check(
      "store",
      Effect.map(Effect.fromResult(there), ({ log }) => finding(log))
    )
    if (there._tag === "Failure") return [{ ...store, advice: "millrace serve makes one; --store or MILLRACE_STORE names another" }]
    const looks: Readonly<Record<string, (files: StoreUrl.Files) => Effect.Effect<Finding, unknown>>> = {
      files,
      permissions,
      disk,
      sqlite: wholeness,
      "master key": vault,
      clock: ({ log }) => clock(SqliteEventStore.layer({ filename: log, readOnly: true })),
      leftovers
    }
    const found = yield* Effect.forEach(Object.entries(looks), ([name, look]) => check(name, look(there.success)))
    return [store, ...found, yield* erasures(there.success, register)]
  })
