/**
 * The store of files that jobs make: a folder, a bucket, or memory for a store in memory. All files are sealed. What keeps them is loaded
 * when it is used, so that a host of the library loads no other upstream.
 */
import { resolve } from "node:path"
import { type BlobStore, MemoryBlobStore, Vault } from "@millrace/core"
import type * as FileBlobStore from "@millrace/upstreams/file-blob-store"
import type * as S3BlobStore from "@millrace/upstreams/s3-blob-store"
import { Config, Effect, Layer, Option } from "effect"
import { fail } from "./Failure.ts"
import * as Setting from "./Setting.ts"
import * as SettingNames from "./SettingNames.ts"
import * as StoreUrl from "./StoreUrl.ts"

export const blobs = Setting.optional(
  "blobs",
  "Where files that jobs make are kept: a folder, or s3:URL of a bucket, with MILLRACE_BLOBS_KEY, MILLRACE_BLOBS_SECRET and MILLRACE_BLOBS_REGION; beside the database when left out",
  { metavar: "folder|s3:url", parse: Setting.text, expected: "a folder, or s3:URL", secret: true }
)

/** The folder by default. */
const beside = (store: string) =>
  StoreUrl.isRemote(store) ? Effect.succeed("./data/blobs") : Effect.map(StoreUrl.filesOf(store), ({ blobs }) => blobs)

/** The files of a store whose blobs are in a folder of their own. Those in a bucket are kept, and backed up, there. */
export const within = (files: StoreUrl.Files, place: Option.Option<string>): StoreUrl.Files =>
  Option.isNone(place) || isBucket(place.value) ? files : { ...files, blobs: resolve(place.value) }

const BUCKET = "s3:"
const isBucket = (place: string): boolean => place.startsWith(BUCKET)

const bucket = (url: string) =>
  Effect.gen(function* () {
    const names = yield* SettingNames.Current
    if (!URL.canParse(url)) return yield* fail(`${names.blobs} names no bucket: s3:https://HOST/BUCKET`)
    const accessKeyId = yield* Config.String("MILLRACE_BLOBS_KEY").pipe(Config.option)
    const secretAccessKey = yield* Config.Redacted("MILLRACE_BLOBS_SECRET").pipe(Config.option)
    const region = yield* Config.String("MILLRACE_BLOBS_REGION").pipe(Config.option)
    if (Option.isNone(accessKeyId) || Option.isNone(secretAccessKey))
      return yield* fail("a bucket needs MILLRACE_BLOBS_KEY and MILLRACE_BLOBS_SECRET")
    const { layer } = yield* Effect.promise((): Promise<typeof S3BlobStore> => import("@millrace/upstreams/s3-blob-store"))
    return layer({
      bucketUrl: new URL(url),
      accessKeyId: accessKeyId.value,
      secretAccessKey: secretAccessKey.value,
      ...(Option.isSome(region) ? { region: region.value } : {})
    })
  })

export const layer = (store: string, place: Option.Option<string>): Layer.Layer<BlobStore.BlobStore, unknown, StoreUrl.Stores> =>
  Layer.unwrap(
    Effect.gen(function* () {
      if (store === StoreUrl.MEMORY && Option.isNone(place)) return MemoryBlobStore.layer
      const where = Option.getOrElse(place, () => undefined) ?? (yield* beside(store))
      if (isBucket(where)) return yield* bucket(where.slice(BUCKET.length))
      const { layer } = yield* Effect.promise((): Promise<typeof FileBlobStore> => import("@millrace/upstreams/file-blob-store"))
      return layer(where)
    })
  ).pipe((blobs: Layer.Layer<BlobStore.BlobStore, unknown, Vault.Vault>) => blobs, Layer.provide(Vault.Vault.layer))
