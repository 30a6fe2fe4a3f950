/** `backup`: copies a whole store, while a server works on it. */
import { Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import * as Administration from "../Administration.ts"
import * as Backup from "../administration/Backup.ts"
import * as Blobs from "../Blobs.ts"
import * as MasterKeyFile from "../MasterKeyFile.ts"
import * as Output from "../Output.ts"
import * as StoreUrl from "../StoreUrl.ts"

const HOURS = { h: 1, d: 24 } as const
const LIFETIME = /^(?<count>[1-9]\d{0,4})(?<unit>[hd])$/u

/** Milliseconds. */
const lifetimeOf = (text: string): number | undefined => {
  const { count, unit } = LIFETIME.exec(text)?.groups ?? {}
  return unit === "h" || unit === "d" ? Number(count) * HOURS[unit] * 3_600_000 : undefined
}

const keysLifetime = Flag.String("keys-lifetime").pipe(
  Flag.withMetavar("30d|12h"),
  Flag.withDescription("Time after which the keys must be deleted and are not restored any more (default: 30d)"),
  Flag.withDefault("30d"),
  Flag.filterMap(
    (text) => Option.fromUndefinedOr(lifetimeOf(text)),
    () => "days or hours, such as 30d or 12h"
  )
)

const masterKeyOf = ({ masterKey: file }: StoreUrl.Files) =>
  MasterKeyFile.find(file, `there is no master key to include: neither MILLRACE_MASTER_KEY nor ${file}`)

export const backup = Command.make(
  "backup",
  {
    store: Administration.store,
    to: Flag.String("to").pipe(Flag.withMetavar("folder"), Flag.withDescription("A folder that does not exist yet, or is empty")),
    keysLifetime,
    withMasterKey: Flag.Boolean("with-master-key").pipe(
      Flag.withDescription("Include the master key, with which anyone who has the backup can read everything in it"),
      Flag.withDefault(false)
    ),
    blobs: Blobs.blobs,
    json: Output.json
  },
  ({ store, to, keysLifetime, withMasterKey, blobs, json }) =>
    Effect.gen(function* () {
      const files = Blobs.within(yield* StoreUrl.existing(store), blobs)
      const masterKey = withMasterKey ? yield* masterKeyOf(files) : undefined
      const made = yield* Backup.make(files, { to, keysLifetime, masterKey })
      yield* Output.exitCode(made.ok)
      yield* Output.printWithHead(json, made)
    })
).pipe(
  Command.withShortDescription("Copy a whole store at one instant, while a server works on it"),
  Command.withDescription(
    "Copy a whole store at one instant, while a server works on it: the log, the blobs, and in a folder of their own the keys, which must be deleted by a stated time. The copy is checked and audited. If the audit finds anything, the command keeps the copy and exits with 1. The master key is left out unless you ask for it: keep it elsewhere"
  ),
  Administration.withExamples({
    "millrace backup --to /backups/2026-12-31": "Make a backup whose keys must be deleted within 30 days",
    "millrace backup --to /backups/2026-12-31 --keys-lifetime 7d": "Make a backup whose keys must be deleted within a week"
  })
)
