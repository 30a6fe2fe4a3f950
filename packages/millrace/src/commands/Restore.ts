/** A store made from a backup. */
import { existsSync, mkdirSync, renameSync, rmSync, statSync } from "node:fs"
import { dirname, join } from "node:path"
import { Audit } from "@millrace/audit"
import { Ledger, MasterKey, Registration, toIso, Vault } from "@millrace/core"
import { SqliteCheck, SqliteEventStore, SqliteStateStore } from "@millrace/event-store-sqlite"
import { Clock, Effect, Layer, Option, type Redacted } from "effect"
import { Command, Flag } from "effect/cli"
import * as Administration from "../Administration.ts"
import * as BackupFolder from "../BackupFolder.ts"
import * as DiskFiles from "../DiskFiles.ts"
import * as ErasureRegister from "../ErasureRegister.ts"
import { CommandFailed } from "../Failure.ts"
import * as MasterKeyFile from "../MasterKeyFile.ts"
import * as Output from "../Output.ts"
import * as Reconciliation from "../Reconciliation.ts"
import * as StoreUrl from "../StoreUrl.ts"

/** A backup cannot say itself who was erased after it. */
const erased = Flag.String("erased").pipe(
  Flag.withMetavar("file"),
  Flag.withDescription("A register of erasures, or the latest state database: whom it names does not come back; once for each"),
  Flag.between(0, 100)
)

/**
 * The master key, and whether it has yet to be put beside the store. It is taken from the environment, from beside the store, from a
 * file, or from the backup: the first that there is.
 */
const findKey = (store: StoreUrl.Files, backup: BackupFolder.Paths, given: Option.Option<string>) =>
  Effect.gen(function* () {
    const byEnvironment = yield* MasterKeyFile.byEnvironment
    if (byEnvironment !== undefined) return { key: byEnvironment, isNew: false }
    if (existsSync(store.masterKey)) return { key: yield* MasterKeyFile.read(store.masterKey), isNew: false }
    const file = Option.getOrElse(given, () => backup.masterKey)
    if (!existsSync(file)) {
      return yield* Effect.fail(
        new CommandFailed(
          Option.isSome(given) ? `${file} is not there` : "the master key is missing, and not in the backup: name its file by --master-key"
        )
      )
    }
    return { key: yield* MasterKeyFile.read(file), isNew: true }
  })

/** Where a store is put together, gone when the scope closes. */
const workshop = Effect.fnUntraced(function* (log: string) {
  const folder = `${log}.restoring`
  const blobs = join(folder, "blobs")
  yield* Effect.acquireRelease(
    DiskFiles.attempt(`nothing can be restored to ${log}`, () => {
      StoreUrl.makeFolder(dirname(log))
      if (existsSync(folder)) throw new Error(`it is being restored, or that was cut off: if it is not, remove ${folder}`)
      mkdirSync(folder, { mode: 0o700 })
    }),
    () => Effect.ignore(Effect.try(() => rmSync(folder, { recursive: true, force: true })))
  )
  yield* DiskFiles.attempt(`nothing can be restored to ${log}`, () => mkdirSync(blobs, { mode: 0o700 }))
  return { log: join(folder, "log.db"), state: join(folder, "state.db"), blobs }
})

const refuseExisting = ({ log, state, blobs }: StoreUrl.Files) => {
  const there = [log, state, blobs].find((path) => existsSync(path))
  return there === undefined
    ? Effect.void
    : Effect.fail(new CommandFailed(`${there} is there already: a backup is restored to where nothing is`))
}

/** Whoever does not say who was erased, or that nobody was, would bring them back without having thought of it. */
const destroyedSince = (files: ReadonlyArray<string>, noneErased: boolean) =>
  files.length === 0 && !noneErased
    ? Effect.fail(
        new CommandFailed(
          "the backup still has the keys of whoever was erased since: name the register of erasures, or the latest state database, by --erased, or say --none-erased"
        )
      )
    : Effect.map(Effect.forEach(files, ErasureRegister.read), (subjects) => new Set(subjects.flat()))

const ACCOUNT = Vault.ofAccount("")

/** Erases them again, each in the store as it was: those whose keys the backup had. */
const eraseAgain = Effect.fnUntraced(function* (subjects: ReadonlySet<string>, metadata: ReturnType<typeof Administration.metadata>) {
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

export const restore = Command.make(
  "restore",
  {
    from: Flag.String("from").pipe(Flag.withMetavar("folder"), Flag.withDescription("The backup")),
    store: Administration.store,
    erased,
    noneErased: Flag.Boolean("none-erased").pipe(
      Flag.withDescription("Nobody was erased since the backup was made"),
      Flag.withDefault(false)
    ),
    withoutKeys: Flag.Boolean("without-keys").pipe(
      Flag.withDescription("Leave the keys of the backup behind: amounts come back, nothing that was sealed does"),
      Flag.withDefault(false)
    ),
    masterKey: Flag.String("master-key").pipe(
      Flag.withMetavar("file"),
      Flag.withDescription("File with the master key, where it is neither beside the store nor MILLRACE_MASTER_KEY"),
      Flag.optional
    ),
    by: Administration.by,
    reason: Administration.reason,
    json: Output.json
  },
  ({ from, store, erased, noneErased, withoutKeys, masterKey, json, ...flags }) =>
    Effect.gen(function* () {
      const { paths: backup, manifest } = yield* BackupFolder.read(from)
      const target = yield* StoreUrl.filesOf(store)
      yield* refuseExisting(target)
      const now = yield* Clock.currentTimeMillis
      const { keys } = manifest
      if (!withoutKeys && now > keys.deleteBy) {
        return yield* Effect.fail(
          new CommandFailed(
            `the keys of this backup were to be deleted by ${toIso(keys.deleteBy)}, and are restored no more: --without-keys restores the rest`
          )
        )
      }
      if (!withoutKeys && !existsSync(backup.state)) {
        return yield* Effect.fail(new CommandFailed("the keys of this backup were deleted: --without-keys restores the rest"))
      }
      const subjects = yield* destroyedSince(erased, noneErased)
      const { key, isNew } = yield* findKey(target, backup, masterKey)

      const made = yield* workshop(target.log)
      yield* BackupFolder.take(backup.log, made.log, manifest.log)
      yield* withoutKeys ? DiskFiles.write(made.state, "") : BackupFolder.take(backup.state, made.state, keys)
      const blobs = yield* BackupFolder.copyBlobs(backup.blobs, made.blobs)
      if (blobs.count !== manifest.blobs.count || blobs.bytes !== manifest.blobs.bytes) {
        return yield* Effect.fail(new CommandFailed(`${backup.blobs} has ${blobs.count} blobs, ${manifest.blobs.count} were backed up`))
      }
      const report = yield* Effect.provide(
        Effect.gen(function* () {
          const { refused, restored } = yield* eraseAgain(subjects, Administration.metadata("restore: erased since the backup", flags))
          // Overdue is what was so then: holds that were open are past their time by now
          const { found, head, problems } = yield* Audit.run({
            against: manifest.head,
            ...(manifest.head.at === null ? {} : { at: Date.parse(manifest.head.at) })
          })
          if (found > manifest.problems || problems.some(({ rule }) => rule === "log-extends-head")) {
            const [first] = problems
            return yield* Effect.fail(
              new CommandFailed(`the log of this backup is not what was backed up: ${first?.stream} ${first?.rule}: ${first?.detail}`)
            )
          }
          const reconcile = yield* Reconciliation.items(manifest, { now, withKeys: !withoutKeys })
          return {
            ok: found === 0,
            problems: found,
            events: head.events,
            keys: restored,
            refused,
            head,
            reconcile
          }
        }),
        stores(made, key)
      )
      yield* place(made, target, isNew ? key : undefined, blobs.count > 0)
      yield* Output.exitCode(report.ok)
      yield* Output.print(json, { restored: target.log, from: backup.folder, madeAt: toIso(manifest.madeAt), ...report })
    }).pipe(Effect.scoped)
).pipe(
  Command.withShortDescription("Make a store from a backup, and say what there is to reconcile"),
  Command.withDescription(
    "Make a store from a backup, where none is: checked against its manifest, audited, without the keys of whoever was erased since, and with a list of what there is to reconcile. The keys of a backup are restored until the time that it states, and not after"
  ),
  Command.withExamples([
    {
      command: "millrace restore --from /backups/2026-12-31 --erased /mnt/other/erasures.jsonl",
      description: "Whom the register names does not come back"
    },
    {
      command: "millrace restore --from /backups/2026-12-31 --erased ./broken/millrace.state.db --master-key /root/master.key",
      description: "The state of the store that is replaced knows whom it erased"
    }
  ])
)

const stores = ({ log, state }: Pick<StoreUrl.Files, "log" | "state">, key: Redacted.Redacted<string>) =>
  Registration.layer().pipe(
    Layer.provideMerge(Layer.mergeAll(Ledger.layer(), Vault.Vault.layer)),
    Layer.provideMerge(
      Layer.mergeAll(SqliteEventStore.layer({ filename: log }), SqliteStateStore.layer({ filename: state }), MasterKey.layer(key))
    )
  )

const isEmpty = (file: string): boolean => (statSync(file, { throwIfNoEntry: false })?.size ?? 0) === 0

/** What was made becomes the store. The log comes last: without it there is no store yet, and a state alone is refused. */
const place = (
  made: Pick<StoreUrl.Files, "log" | "state" | "blobs">,
  target: StoreUrl.Files,
  key: Redacted.Redacted<string> | undefined,
  hasBlobs: boolean
) =>
  Effect.gen(function* () {
    for (const file of [made.state, made.log]) {
      const { problems } = yield* SqliteCheck.check(file)
      const [problem = isEmpty(`${file}-wal`) ? undefined : "its write-ahead log could not be emptied"] = problems
      if (problem !== undefined) return yield* Effect.fail(new CommandFailed(`what was restored is not whole: ${problem}`))
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
