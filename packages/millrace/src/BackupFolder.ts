/**
 * A backup is a folder:
 *
 *     log/millrace.db            the log; keep it for audits
 *     keys/millrace.state.db     vault keys, wrapped by the master key, and everything else that is not in the log
 *     keys/master.key            only with `--with-master-key`
 *     blobs/                     sealed files, each named by its SHA-256
 *     manifest.json              sizes, hashes, and the date by which to delete the keys
 *
 * Deleting `keys/` deletes what is sealed in this copy; amounts and ids stay. The manifest is written last, and only then the folder gets
 * its name: a folder without a manifest is not a backup.
 */
import { existsSync, readdirSync, readFileSync, renameSync, rmdirSync, rmSync, statSync } from "node:fs"
import { mkdir } from "node:fs/promises"
import { dirname, join, resolve } from "node:path"
import { Head } from "@millrace/audit"
import { Timestamp } from "@millrace/core"
import { Effect, Schema } from "effect"
import * as DiskFiles from "./DiskFiles.ts"
import { CommandFailed, fail, textOf } from "./Failure.ts"
import type { Advance } from "./Progress.ts"
import * as StoreUrl from "./StoreUrl.ts"

const LOG = "log/millrace.db"
const STATE = "keys/millrace.state.db"
const MANIFEST = "manifest.json"

const content = { bytes: Schema.Int, sha256: Schema.String }

export const Manifest = Schema.Struct({
  format: Schema.Literal(1),
  /** Version of the program that made the backup. */
  millrace: Schema.String,
  /** Everything that was acknowledged before is in the backup. */
  madeAt: Timestamp,
  /** For `audit --against`. */
  head: Head,
  /** How many problems an audit found in the copied log. */
  problems: Schema.Int,
  log: Schema.Struct({ path: Schema.Literal(LOG), ...content }),
  keys: Schema.Struct({
    path: Schema.Literal(STATE),
    ...content,
    masterKey: Schema.Boolean,
    /** The date by which to delete the folder `keys`. Until then, data that is erased in the store can be read in this copy. */
    deleteBy: Timestamp
  }),
  blobs: Schema.Struct({ count: Schema.Int, bytes: Schema.Int })
})
export type Manifest = typeof Manifest.Type

const ManifestText = Schema.fromJsonString(Manifest)

/** The paths in a backup. */
export interface Paths extends Omit<StoreUrl.Files, "search"> {
  readonly folder: string
  readonly manifest: string
}

export const pathsOf = (folder: string): Paths => ({
  folder,
  log: join(folder, LOG),
  state: join(folder, STATE),
  masterKey: join(folder, "keys", "master.key"),
  blobs: join(folder, "blobs"),
  manifest: join(folder, MANIFEST)
})

/**
 * Begins a backup in a folder `….partial`. `finish` writes the manifest and renames it to `folder`; without it, the folder is removed when
 * the scope closes. Fails where `folder` is not empty.
 */
export const begin = Effect.fnUntraced(function* (folder: string) {
  const target = resolve(folder)
  const partial = `${target}.partial`
  yield* refuse(target)
  yield* Effect.acquireRelease(
    DiskFiles.attempt(`a backup cannot be made at ${target}`, async () => {
      StoreUrl.makeFolder(dirname(target))
      if (existsSync(partial)) throw new Error(`one is being made, or was cut off: if none is, remove ${partial}`)
      await mkdir(partial, { mode: 0o700 })
    }),
    () => Effect.ignore(Effect.try(() => rmSync(partial, { recursive: true, force: true })))
  )
  yield* DiskFiles.attempt(`a backup cannot be made at ${target}`, async () => {
    for (const name of ["log", "keys", "blobs"]) await mkdir(join(partial, name), { mode: 0o700 })
  })
  const finish = (manifest: Manifest) =>
    Effect.gen(function* () {
      const paths = pathsOf(partial)
      yield* DiskFiles.write(paths.manifest, `${Schema.encodeSync(ManifestText)(manifest)}\n`)
      for (const path of [dirname(paths.log), dirname(paths.state), paths.blobs, partial]) yield* DiskFiles.sync(path)
      yield* refuse(target)
      yield* DiskFiles.attempt(`the backup cannot be named ${target}`, () => {
        if (existsSync(target)) rmdirSync(target)
        renameSync(partial, target)
      })
      yield* DiskFiles.sync(dirname(target))
      return target
    })
  return { paths: pathsOf(partial), finish }
})

const refuse = (target: string): Effect.Effect<void, CommandFailed> => {
  const there = statSync(target, { throwIfNoEntry: false })
  if (there === undefined || (there.isDirectory() && readdirSync(target).length === 0)) return Effect.void
  return fail(there.isDirectory() ? `${target} is not empty: name a new folder` : `${target} is a file`)
}

/** Reads the manifest of a backup. */
export const read = (folder: string): Effect.Effect<{ readonly paths: Paths; readonly manifest: Manifest }, CommandFailed> => {
  const paths = pathsOf(resolve(folder))
  if (!existsSync(paths.manifest)) {
    return fail(`${paths.folder} is no backup, or an incomplete one: it has no ${MANIFEST}`)
  }
  return Effect.try({
    try: () => ({ paths, manifest: Schema.decodeUnknownSync(ManifestText)(readFileSync(paths.manifest, "utf8")) }),
    catch: (error) => new CommandFailed(`${paths.manifest} cannot be read: ${textOf(error)}`)
  })
}

/** The folders of keys, in the backups below a folder, that should have been deleted by `now`. */
export const overdueKeys = (folder: string, now: number): Effect.Effect<ReadonlyArray<string>, CommandFailed> =>
  Effect.gen(function* () {
    const names = yield* DiskFiles.attempt(`${folder} cannot be read`, () => readdirSync(folder))
    const backups = names.map((name) => pathsOf(resolve(folder, name))).filter(({ manifest }) => existsSync(manifest))
    const all = yield* Effect.forEach(backups, ({ folder }) => read(folder))
    return all
      .filter(({ manifest, paths }) => now > manifest.keys.deleteBy && existsSync(dirname(paths.state)))
      .map(({ paths }) => dirname(paths.state))
  })

/** Copies a file of a backup; fails where its size or hash differs from the manifest. */
export const take = (from: string, to: string, expected: DiskFiles.Content, advance?: Advance): Effect.Effect<void, CommandFailed> =>
  Effect.flatMap(DiskFiles.copy(from, to, advance), ({ bytes, sha256 }) =>
    bytes === expected.bytes && sha256 === expected.sha256
      ? Effect.void
      : fail(`${from} is not what was backed up: its size or its SHA-256 differs from ${MANIFEST}`)
  )

const BLOB = /^[0-9a-f]{64}$/u

/** Copies the blobs of a folder, if it exists, each checked against its name. Answers how many and how large. `advance` takes the bytes of all. */
export const copyBlobs = Effect.fnUntraced(function* (from: string, to: string, advance: Advance) {
  const names = existsSync(from) ? readdirSync(from).filter((name) => BLOB.test(name)) : []
  const size = yield* DiskFiles.sizeOf(names.map((name) => join(from, name)))
  let bytes = 0
  for (const name of names) {
    const before = bytes
    const blob = yield* DiskFiles.copy(join(from, name), join(to, name), (done) => advance(before + done, size))
    if (blob.sha256 !== name) return yield* fail(`the blob ${join(from, name)} was changed: its SHA-256 is not its name`)
    bytes += blob.bytes
  }
  return { count: names.length, bytes }
})
