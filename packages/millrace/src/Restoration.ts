/** The steps of a restore: a store is made in a staging folder, checked, audited, and then moved to its place. */
import { existsSync, mkdirSync, renameSync, rmSync, statSync } from "node:fs"
import { dirname, join } from "node:path"
import { Audit } from "@millrace/audit"
import { Ledger, MasterKey, Registration, toIso, Vault } from "@millrace/core"
import type { Aggregate } from "@millrace/event-sourcing"
import { SqliteCheck, SqliteEventStore, SqliteStateStore } from "@millrace/event-store-sqlite"
import { Clock, Effect, Layer, Option, type Redacted } from "effect"
import * as BackupFolder from "./BackupFolder.ts"
import * as DiskFiles from "./DiskFiles.ts"
import * as ErasureRegister from "./ErasureRegister.ts"
import { fail } from "./Failure.ts"
import * as MasterKeyFile from "./MasterKeyFile.ts"
import * as Progress from "./Progress.ts"
import * as Reconciliation from "./Reconciliation.ts"
import * as RestoredInboxes from "./RestoredInboxes.ts"
import * as StoreUrl from "./StoreUrl.ts"

/** The files of a store in the staging folder. */
type Staged = Pick<StoreUrl.Files, "log" | "state" | "blobs">

/** The paths of a backup and its manifest. */
type Backup = Effect.Success<ReturnType<typeof BackupFolder.read>>

/** Fails where a file of the store exists. */
export const refuseExisting = ({ log, state, blobs }: StoreUrl.Files) => {
  const there = [log, state, blobs].find((path) => existsSync(path))
  return there === undefined ? Effect.void : fail(`${there} is there already: a backup is restored to where nothing is`)
}

/** Fails where the keys of a backup are past their time, or were deleted. */
export const requireKeys = Effect.fnUntraced(function* ({ paths, manifest }: Backup) {
  const { deleteBy } = manifest.keys
  if ((yield* Clock.currentTimeMillis) > deleteBy) {
    return yield* fail(
      `the keys of this backup were to be deleted by ${toIso(deleteBy)}, and are restored no more: --without-keys restores the rest`
    )
  }
  if (!existsSync(paths.state)) return yield* fail("the keys of this backup were deleted: --without-keys restores the rest")
})

/** The subjects that were erased since the backup. Fails without a register, because a restore would bring them back unnoticed. */
export const erasedSince = (files: ReadonlyArray<string>, noneErased: boolean) =>
  files.length === 0 && !noneErased
    ? fail(
        "the backup still has the keys of accounts that were erased since: name the register of erasures, or the latest state database, by --erased, or pass --none-erased"
      )
    : Effect.map(Effect.forEach(files, ErasureRegister.read), (subjects) => new Set(subjects.flat()))

/** The master key: of the environment, the store, the given file, or the backup. `isNew`: the store does not have it yet. */
export const findKey = (store: StoreUrl.Files, backup: BackupFolder.Paths, given: Option.Option<string>) =>
  Effect.gen(function* () {
    const byEnvironment = yield* MasterKeyFile.byEnvironment
    if (byEnvironment !== undefined) return { key: byEnvironment, isNew: false }
    if (existsSync(store.masterKey)) return { key: yield* MasterKeyFile.read(store.masterKey), isNew: false }
    const file = Option.getOrElse(given, () => backup.masterKey)
    if (!existsSync(file)) {
      return yield* fail(
        Option.isSome(given) ? `${file} is not there` : "the master key is missing, and not in the backup: name its file by --master-key"
      )
    }
    return { key: yield* MasterKeyFile.read(file), isNew: true }
  })

/** The staging folders, beside the store and beside the place of its blobs; removed when the scope closes. */
export const stagingFolders = Effect.fnUntraced(function* ({ log, blobs }: StoreUrl.Files) {
  const folder = yield* stagingFolder(log)
  return { log: join(folder, "log.db"), state: join(folder, "state.db"), blobs: yield* stagingFolder(blobs) }
})

const stagingFolder = (target: string) => {
  const folder = `${target}.restoring`
  const made = DiskFiles.attempt(`nothing can be restored to ${target}`, () => {
    StoreUrl.makeFolder(dirname(target))
    if (existsSync(folder)) throw new Error(`it is being restored, or that was cut off: if it is not, remove ${folder}`)
    mkdirSync(folder, { mode: 0o700 })
    return folder
  })
  return Effect.acquireRelease(made, () => Effect.ignore(Effect.try(() => rmSync(folder, { recursive: true, force: true }))))
}

/** Copies a backup, each file checked against the manifest. Without keys, the state is begun anew. Answers how many blobs there are. */
export const copy = Effect.fnUntraced(function* ({ paths, manifest }: Backup, made: Staged, withKeys: boolean) {
  yield* Progress.bytes("Copying the log", (advance) => BackupFolder.take(paths.log, made.log, manifest.log, advance))
  yield* withKeys
    ? Progress.bytes("Copying the state", (advance) => BackupFolder.take(paths.state, made.state, manifest.keys, advance))
    : DiskFiles.write(made.state, "")
  const blobs = yield* Progress.bytes("Copying the blobs", (advance) => BackupFolder.copyBlobs(paths.blobs, made.blobs, advance))
  if (blobs.count !== manifest.blobs.count || blobs.bytes !== manifest.blobs.bytes) {
    return yield* fail(`${paths.blobs} has ${blobs.count} blobs, ${manifest.blobs.count} were backed up`)
  }
  return blobs.count
})

const ACCOUNT = Vault.ofAccount("")

/** Erases the subjects in the restored store. Returns those whose keys the backup had, and how many keys are left. */
const eraseAgain = Effect.fnUntraced(function* (subjects: ReadonlySet<string>, metadata: Aggregate.Metadata) {
  const ledger = yield* Ledger
  const registration = yield* Registration
  const vault = yield* Vault.Vault
  const before = yield* Vault.census
  const destroyed = new Set(before.destroyed)
  for (const subject of subjects) {
    if (destroyed.has(subject)) continue
    const account = subject.startsWith(ACCOUNT) ? subject.slice(ACCOUNT.length) : undefined
    const isKnown = account !== undefined && (yield* ledger.read(account)).state.status !== "absent"
    yield* isKnown ? registration.erase(account, metadata) : vault.destroy(subject)
  }
  const refused = before.alive.filter((subject) => subjects.has(subject))
  return { refused, restored: before.alive.length - refused.length }
})

/** Audits the log against the head of the manifest, as of that time, because its open holds are overdue by now. */
const audit = Effect.fnUntraced(function* ({ head, problems: expected }: BackupFolder.Manifest) {
  const options = { against: head, ...(head.at === null ? {} : { at: Date.parse(head.at) }) }
  const report = yield* Progress.watch("Auditing the backup")(Audit.run(options))
  if (report.found > expected || report.problems.some(({ rule }) => rule === "log-extends-head")) {
    const [first] = report.problems
    return yield* fail(`the log of this backup is not what was backed up: ${first?.stream} ${first?.rule}: ${first?.detail}`)
  }
  return report
})

export interface Completion {
  readonly manifest: BackupFolder.Manifest
  readonly key: Redacted.Redacted<string>
  readonly subjects: ReadonlySet<string>
  readonly withKeys: boolean
  readonly metadata: Aggregate.Metadata
}

/** Ends and erases again, audits, and lists what an operator has to reconcile. */
export const complete = (made: Staged, { key, manifest, metadata, subjects, withKeys }: Completion) =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const live = yield* RestoredInboxes.end(now)
    const { refused, restored } = yield* eraseAgain(subjects, metadata)
    const { found, head } = yield* audit(manifest)
    const reconcile = yield* Reconciliation.items(manifest, { now, withKeys, inboxes: yield* RestoredInboxes.readable(live) })
    return { ok: found === 0, problems: found, events: head.events, keys: restored, refused, head, reconcile }
  }).pipe(Effect.provide(stores(made, key)))

const stores = ({ log, state }: Pick<StoreUrl.Files, "log" | "state">, key: Redacted.Redacted<string>) =>
  Registration.layer().pipe(
    Layer.provideMerge(Layer.mergeAll(Ledger.layer(), Vault.Vault.layer)),
    Layer.provideMerge(
      Layer.mergeAll(SqliteEventStore.layer({ filename: log }), SqliteStateStore.layer({ filename: state }), MasterKey.layer(key))
    )
  )

const isEmpty = (file: string): boolean => (statSync(file, { throwIfNoEntry: false })?.size ?? 0) === 0

/** Moves the files to the place of the store. The log is last: without it there is no store, and a state alone is refused. */
export const install = (made: Staged, target: StoreUrl.Files, key: Redacted.Redacted<string> | undefined, hasBlobs: boolean) =>
  Effect.gen(function* () {
    for (const file of [made.state, made.log]) {
      const { problems } = yield* SqliteCheck.check(file)
      const [problem = isEmpty(`${file}-wal`) ? undefined : "its write-ahead log could not be emptied"] = problems
      if (problem !== undefined) return yield* fail(`what was restored is not whole: ${problem}`)
      yield* DiskFiles.sync(file)
    }
    yield* refuseExisting(target)
    if (key !== undefined) yield* MasterKeyFile.write(target.masterKey, key)
    yield* DiskFiles.attempt(`the store cannot be put at ${target.log}`, () => {
      if (hasBlobs) renameSync(made.blobs, target.blobs)
      renameSync(made.state, target.state)
      renameSync(made.log, target.log)
    })
    yield* DiskFiles.sync(dirname(target.log))
  })
