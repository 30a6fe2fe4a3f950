/** `restore`: makes a store from a backup. */
import { toIso } from "@millrace/core"
import { Effect } from "effect"
import { Command, Flag } from "effect/cli"
import * as Administration from "../Administration.ts"
import * as BackupFolder from "../BackupFolder.ts"
import * as Blobs from "../Blobs.ts"
import * as Output from "../Output.ts"
import * as Restoration from "../Restoration.ts"
import * as StoreUrl from "../StoreUrl.ts"

/** A backup does not contain later erasures. */
const erased = Flag.String("erased").pipe(
  Flag.withMetavar("file"),
  Flag.withDescription("A register of erasures, or the latest state database: these accounts stay erased; repeat for several"),
  Flag.between(0, 100)
)

export const restore = Command.make(
  "restore",
  {
    from: Flag.String("from").pipe(Flag.withMetavar("folder"), Flag.withDescription("The backup")),
    store: Administration.store,
    erased,
    noneErased: Flag.Boolean("none-erased").pipe(
      Flag.withDescription("No account was erased since the backup was made"),
      Flag.withDefault(false)
    ),
    withoutKeys: Flag.Boolean("without-keys").pipe(
      Flag.withDescription("Restore without the keys of the backup: amounts are restored, sealed data is not"),
      Flag.withDefault(false)
    ),
    masterKey: Flag.String("master-key").pipe(
      Flag.withMetavar("file"),
      Flag.withDescription("File with the master key, where it is neither beside the store nor MILLRACE_MASTER_KEY"),
      Flag.optional
    ),
    blobs: Blobs.blobs,
    by: Administration.by,
    reason: Administration.reason,
    json: Output.json
  },
  ({ from, store, erased, noneErased, withoutKeys, masterKey, blobs, json, ...flags }) =>
    Effect.gen(function* () {
      const backup = yield* BackupFolder.read(from)
      const { manifest, paths } = backup
      const files = yield* StoreUrl.filesOf(store)
      // A backup without blobs leaves those alone that are elsewhere
      const target = manifest.blobs.count === 0 ? files : Blobs.within(files, blobs)
      yield* Restoration.refuseExisting(target)
      if (!withoutKeys) yield* Restoration.requireKeys(backup)
      const subjects = yield* Restoration.erasedSince(erased, noneErased)
      const { key, isNew } = yield* Restoration.findKey(target, paths, masterKey)

      const made = yield* Restoration.stagingFolders(target)
      const copied = yield* Restoration.copy(backup, made, !withoutKeys)
      const metadata = Administration.metadata("restore: erased since the backup", flags)
      const report = yield* Restoration.complete(made, { manifest, key, subjects, withKeys: !withoutKeys, metadata })
      yield* Restoration.install(made, target, isNew ? key : undefined, copied > 0)
      yield* Output.exitCode(report.ok)
      yield* Output.printWithHead(json, { restored: target.log, from: paths.folder, madeAt: toIso(manifest.madeAt), ...report })
    }).pipe(Effect.scoped)
).pipe(
  Command.withShortDescription("Make a store from a backup, and list what to reconcile"),
  Command.withDescription(
    "Make a store from a backup, where no store exists. The backup is checked against its manifest and audited, accounts that were erased since are erased again, and the command lists what to reconcile. The keys of a backup are restored only until the time that it states"
  ),
  Administration.withExamples({
    "millrace restore --from /backups/2026-12-31 --erased /mnt/other/erasures.jsonl":
      "Restore without the accounts in the register of erasures",
    "millrace restore --from /backups/2026-12-31 --erased ./broken/millrace.state.db --master-key /root/master.key":
      "Take the erased accounts from the state of the replaced store"
  })
)
