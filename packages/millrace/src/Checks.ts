/** The checks of `doctor`. Each reports what it found, with advice if that is wrong. They change nothing. */
import { accessSync, constants, existsSync, readdirSync, statfsSync, statSync } from "node:fs"
import { dirname } from "node:path"
import { MasterKey, Millrace, type Operation, type UpstreamNotConfigured, Vault } from "@millrace/core"
import { EventStore, HashChain } from "@millrace/event-sourcing"
import { SqliteCheck, SqliteEventStore, SqliteStateStore } from "@millrace/event-store-sqlite"
import { DnsClient } from "@millrace/upstreams"
import { Clock, Config, ConfigProvider, Effect, Layer, Option, Stream } from "effect"
import * as BackupFolder from "./BackupFolder.ts"
import * as Blobs from "./Blobs.ts"
import { type Check, check, type Finding, finding } from "./Check.ts"
import * as ClusterChecks from "./ClusterChecks.ts"
import * as CustomerChecks from "./CustomerChecks.ts"
import { set } from "./EnvironmentSettings.ts"
import * as ErasureRegister from "./ErasureRegister.ts"
import { fail } from "./Failure.ts"
import * as KeyCount from "./KeyCount.ts"
import * as MailSettings from "./MailSettings.ts"
import * as MasterKeyFile from "./MasterKeyFile.ts"
import * as PaymentSettings from "./PaymentSettings.ts"
import * as PlanSettings from "./PlanSettings.ts"
import * as ProviderNeeds from "./ProviderNeeds.ts"
import * as Providers from "./Providers.ts"
import * as ServingChecks from "./ServingChecks.ts"
import * as Setting from "./Setting.ts"
import * as SmsSettings from "./SmsSettings.ts"
import type * as StateUrl from "./StateUrl.ts"
import * as StoreUrl from "./StoreUrl.ts"
import * as Upstreams from "./Upstreams.ts"

const MIB = 1024 * 1024

/** Less free space than this is reported. Bytes. */
const LEAST_ROOM = 256 * MIB

/** Larger write-ahead logs are reported: SQLite empties one long before, unless a reader never ends. Bytes. */
const LARGE_LOG = 512 * MIB

/** Milliseconds by which the clocks of hosts that write to one log may differ. */
const OFFSET = 2_000

const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0

const inMiB = (bytes: number): string => `${(bytes / MIB).toFixed(1)} MiB`

// the host

const node = check(
  "node",
  Effect.sync(() => ({ ok: true, detail: process.version }))
)

const PREFIX = "MILLRACE"

/** The names of settings only: some values are secrets. */
const settings = check(
  "settings",
  Effect.gen(function* () {
    const provider = yield* ConfigProvider.ConfigProvider
    const names: Array<string> = []
    const walk = (path: ReadonlyArray<string>): Effect.Effect<void, ConfigProvider.SourceError> =>
      Effect.gen(function* () {
        const found = yield* provider.load(path)
        if (found?._tag !== "Array" && found?.value !== undefined) names.push(path.join("_"))
        if (found?._tag === "Record") for (const key of found.keys) yield* walk([...path, key])
      })
    yield* walk([PREFIX])
    return { ok: true, detail: names.length === 0 ? "none by environment" : `by environment: ${names.sort().join(", ")}` }
  })
)

type Services = Operation.Services<(typeof Upstreams.api.operations)[number]>

/** The operation as a list of one, if its provider is missing. */
const missingOf = ({
  configured,
  key
}: {
  readonly key: string
  readonly configured: Effect.Effect<void, UpstreamNotConfigured, Services>
}) => Effect.match(configured, { onSuccess: () => [], onFailure: ({ upstream }) => [{ key, upstream }] })

/** What takes payments, and the plans, by the environment. What is wrong there is told by checks of its own, and counts as missing here. */
const selling = Effect.gen(function* () {
  const readable = <A>(variable: string, kind: Setting.Kind<A>) => Effect.orElseSucceed(set(variable, kind), Option.none<A>)
  const given = {
    ...PaymentSettings.NONE,
    payments: yield* readable("MILLRACE_PAYMENTS", PaymentSettings.gateway),
    plans: yield* readable("MILLRACE_PLANS", PlanSettings.plans)
  }
  const gateway = PaymentSettings.taking(given).pipe(Layer.catchCause(() => PaymentSettings.taking(PaymentSettings.NONE)))
  return { terms: PaymentSettings.terms(given), gateway }
})

/** Counts the operations with a provider, in a server in memory with the same settings. Others answer 503 and are free. */
const upstreams = check(
  "upstreams",
  Effect.gen(function* () {
    const binFile = Option.getOrUndefined(yield* Config.String("MILLRACE_BIN_FILE").pipe(Config.option))
    const servers = Option.getOrUndefined(yield* Config.String("MILLRACE_DNS_SERVERS").pipe(Config.option))
    const dnsServers = servers === undefined ? undefined : Setting.list(DnsClient.isServer)(servers)
    if (servers !== undefined && dnsServers === undefined)
      return yield* fail(`MILLRACE_DNS_SERVERS must list IP addresses of name servers: ${servers}`)
    const { gateway, terms } = yield* selling
    const host = Millrace.layer({ operations: Upstreams.api.operations, payments: terms }).pipe(
      Layer.provideMerge(
        Upstreams.layer(
          { binFile, dnsServers, providers: yield* Providers.byEnvironment, mail: yield* MailSettings.byEnvironment },
          yield* SmsSettings.byEnvironment
        )
      ),
      Layer.provideMerge(gateway),
      Layer.provideMerge(Vault.Vault.layer),
      Layer.provideMerge(Blobs.layer(StoreUrl.MEMORY, Option.none())),
      Layer.provideMerge(StoreUrl.memoryLayer())
    )
    const missing = (yield* Effect.forEach(Upstreams.api.operations, missingOf).pipe(Effect.provide(host))).flat()
    const detail = `${Upstreams.api.operations.length - missing.length} of ${Upstreams.api.operations.length} operations have their provider`
    const needs = `some need a setting, as millrace serve --help says: ${ProviderNeeds.sentence(missing)}`
    return finding(detail, missing.length === 0 ? undefined : needs, true)
  })
)

// the store

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
    const source = (yield* MasterKeyFile.byEnvironment) === undefined ? masterKey : "MILLRACE_MASTER_KEY"
    const key = yield* MasterKeyFile.find(masterKey, `it is missing: set MILLRACE_MASTER_KEY, or put the file back at ${masterKey}`)
    const stores = Layer.mergeAll(SqliteStateStore.layer({ filename: state, readOnly: true }), MasterKey.layer(key))
    const census = yield* Vault.census.pipe(Effect.provide(Vault.Vault.layer.pipe(Layer.provideMerge(stores))))
    return finding(`${source} opens the vault, which has ${KeyCount.text(KeyCount.of(census))}`)
  })

/** Events that are looked at, for the last to be written need not be the latest. */
const NEWEST = 100

const clock = ({ log }: StoreUrl.Files) =>
  Effect.gen(function* () {
    const store = yield* EventStore.EventStore
    const after = SqliteEventStore.stepBack(yield* store.head, NEWEST)
    const times = yield* Stream.runCollect(Stream.map(store.readAll(after), (event) => Date.parse(HashChain.atOf(event))))
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
  }).pipe(Effect.provide(SqliteEventStore.layer({ filename: log, readOnly: true })))

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

const backups = (folder: string) =>
  check(
    "backups",
    Effect.gen(function* () {
      const overdue = yield* BackupFolder.overdueKeys(folder, yield* Clock.currentTimeMillis)
      return overdue.length === 0
        ? finding(`no keys below ${folder} are past their time`)
        : finding(`keys are past their time: ${overdue.join(", ")}`, "delete these folders, so that erasures hold there, too")
    })
  )

export interface Options {
  readonly store: string
  readonly register: Option.Option<string>
  /** The folder of backups. */
  readonly backups: Option.Option<string>
}

/** Runs every check; without a store, those of the host alone. */
export const run = (options: Options): Effect.Effect<ReadonlyArray<Check>, never, StateUrl.Given> =>
  Effect.gen(function* () {
    const there = yield* Effect.result(StoreUrl.existing(options.store))
    const store = yield* check(
      "store",
      Effect.map(Effect.fromResult(there), ({ log }) => finding(log))
    )
    const host = yield* Effect.all([node, settings, upstreams, ...Option.toArray(options.backups).map(backups)]).pipe(
      Effect.zipWith(Effect.all([CustomerChecks.checks, ServingChecks.checks, ClusterChecks.checks(options.store)]), (checks, others) => [
        ...checks,
        ...others.flat()
      ])
    )
    if (there._tag === "Failure")
      return [...host, { ...store, advice: "millrace serve makes one; --store or MILLRACE_STORE names another" }]
    const looks: Readonly<Record<string, (files: StoreUrl.Files) => Effect.Effect<Finding, unknown>>> = {
      files,
      permissions,
      disk,
      sqlite: wholeness,
      "master key": vault,
      clock,
      leftovers
    }
    const found = yield* Effect.forEach(Object.entries(looks), ([name, look]) => check(name, look(there.success)))
    return [...host, store, ...found, yield* erasures(there.success, options.register)]
  })
