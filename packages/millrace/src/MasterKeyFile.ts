/** The master key: from the environment, else from a file beside the database that only its owner may read. */
import { existsSync, linkSync, rmSync, writeFileSync } from "node:fs"
import { generateMasterKey, MasterKey } from "@millrace/core"
import { Config, Effect, Layer, Option, Redacted } from "effect"
import { CommandFailed, fail, textOf } from "./Failure.ts"
import * as SecretFile from "./SecretFile.ts"
import * as SettingNames from "./SettingNames.ts"

/** The environment variable with the master key. */
export const VARIABLE = "MILLRACE_MASTER_KEY"

/** `MILLRACE_MASTER_KEY`, where it is set. */
export const byEnvironment = Config.Redacted(VARIABLE).pipe(Config.option, Config.map(Option.getOrUndefined))

/** The given key, else that of the file. A new store gets one, because nothing is sealed yet. */
export const layer = (given: Redacted.Redacted<string> | undefined, file: string, isNew: boolean) =>
  Layer.unwrap(
    Effect.gen(function* () {
      if (given !== undefined) return MasterKey.layer(given)
      // Another process may write one first: its key counts
      if (isNew && !existsSync(file)) yield* write(file, yield* generateMasterKey)
      if (!existsSync(file)) {
        const { masterKey } = yield* SettingNames.Current
        return yield* fail(`the master key is missing: set ${masterKey}, or put the file back at ${file}`)
      }
      return MasterKey.layer(yield* read(file))
    })
  )

/** The key from the environment, else from the file; fails with `missing` where there is neither. */
export const find = (file: string, missing: string) =>
  Effect.gen(function* () {
    const given = yield* byEnvironment
    if (given !== undefined) return given
    return existsSync(file) ? yield* read(file) : yield* fail(missing)
  })

/** Reads the key; fails where others than its owner may read the file. */
export const read = (file: string) => SecretFile.read(file, "the master key file")

/** Writes the key whole or not at all, and never over another: to a temporary file, which is then linked to its name. */
export const write = (file: string, key: Redacted.Redacted<string>) =>
  Effect.try({
    try: () => {
      const aside = `${file}.${process.pid}`
      try {
        writeFileSync(aside, `${Redacted.value(key)}\n`, { mode: 0o600, flag: "wx", flush: true })
        linkSync(aside, file)
      } catch (error) {
        if (!existsSync(file)) throw error
      } finally {
        rmSync(aside, { force: true })
      }
    },
    catch: (error) => new CommandFailed(`the master key file cannot be written: ${textOf(error)}`)
  })
