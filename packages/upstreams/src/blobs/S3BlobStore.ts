/**
 * `BlobStore` on one bucket of an S3-compatible service, its objects named after their hash. What fits into one part is put at once, under
 * its name. What is longer is uploaded in parts under a temporary name, copied by the service to its name, which is known only then, and
 * removed: under its name a blob is there whole or not at all, and what a crash leaves is removed later.
 */
import { BlobStore, RandomBytes, type Vault } from "@millrace/core"
import { Effect, Layer, Stream } from "effect"
import * as S3Bucket from "./S3Bucket.ts"
import * as S3Writer from "./S3Writer.ts"

const { BlobUnavailable, isId } = BlobStore

const TEMPORARY = ".part"

/** Read at first: all of a small blob, or the beginning of a large one. */
const FIRST_READ = 128 * 1024

/** The most that is read ahead, where one part is read after another. */
const MAX_READ = 4 * 1024 * 1024

export interface Options extends S3Bucket.Options {
  /** Bytes of a part, 5 MiB at least; 8 MiB by default. Each put and each read holds about one in memory. */
  readonly partSize?: number
}

/**
 * Keeps blobs in a bucket that exists. Versions must be off, or a rule of the bucket must remove old ones: else what was removed stays,
 * though sealed. A rule should also end unfinished uploads after some days, where the service cannot list them.
 */
export const layer = (options: Options): Layer.Layer<BlobStore.BlobStore, never, Vault.Vault> =>
  Layer.effect(
    BlobStore.BlobStore,
    Effect.gen(function* () {
      const random = yield* RandomBytes
      const bucket = S3Bucket.make(options)
      return yield* BlobStore.make({
        write: S3Writer.write({
          bucket,
          partSize: options.partSize ?? 8 * 1024 * 1024,
          temporaryName: () => Buffer.from(random(16)).toString("hex") + TEMPORARY
        }),
        read: read(bucket),
        remove: bucket.remove,
        list: Stream.filter(bucket.list, ({ id }) => isId(id)),
        tidy: tidy(bucket)
      })
    })
  )

/** One request for what is small; for what is long, requests that grow as long as one part is read after another. */
const read =
  (bucket: S3Bucket.S3Bucket): BlobStore.Shelf["read"] =>
  (id) =>
    Effect.map(bucket.get(id, 0, FIRST_READ), (first) => {
      const end = ({ start, bytes }: S3Bucket.Block) => start + bytes.length
      let held = first
      let ahead = 0
      return {
        storedBytes: first.total,
        read: Effect.fnUntraced(function* (position: number, length: number) {
          const to = Math.min(position + length, first.total)
          if (to <= position) return new Uint8Array()
          if (position < held.start || to > end(held)) {
            ahead = position >= held.start && position <= end(held) ? Math.min(MAX_READ, Math.max(2 * ahead, FIRST_READ)) : 0
            const wanted = Math.min(Math.max(length, ahead), first.total - position)
            held = yield* Effect.catchTag(bucket.get(id, position, wanted), "BlobNotFound", () =>
              Effect.fail(new BlobUnavailable({ reason: "a blob was removed while it was read" }))
            )
          }
          return held.bytes.subarray(position - held.start, to - held.start)
        })
      }
    })

const tidy = (bucket: S3Bucket.S3Bucket): BlobStore.Shelf["tidy"] =>
  Effect.fnUntraced(function* (time) {
    const old = yield* Stream.runCollect(Stream.filter(bucket.list, ({ at, id }) => isTemporary(id) && at <= time))
    yield* Effect.forEach(old, ({ id }) => bucket.remove(id))
    const unfinished = (yield* bucket.unfinishedUploads(time)).filter(({ name }) => isTemporary(name))
    yield* Effect.forEach(unfinished, bucket.abortUpload)
    return old.length + unfinished.length
  })

const isTemporary = (name: string): boolean => name.endsWith(TEMPORARY) && !name.includes("/")
