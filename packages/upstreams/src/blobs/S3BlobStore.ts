/**
 * `BlobStore` on a bucket of an S3-compatible service, with objects named by hash. A blob of one part is put under its name. A longer blob
 * is uploaded in parts under a temporary name, and then copied to its name, which is known only at its end. So a blob exists complete or
 * not at all. Leftovers of a crash are swept later.
 */
import { BlobStore, RandomBytes, type Vault } from "@millrace/core"
import { Effect, Layer, Stream } from "effect"
import * as S3Bucket from "./S3Bucket.ts"
import * as S3Writer from "./S3Writer.ts"

const { BlobUnavailable, isId } = BlobStore

const TEMPORARY = ".part"

/** Bytes of the first read: all of a small blob, or the beginning of a large one. */
const FIRST_READ = 128 * 1024

/** The most bytes to read ahead during a sequential read. */
const MAX_READ = 4 * 1024 * 1024

export interface Options extends S3Bucket.Options {
  /** Bytes of a part, at least 5 MiB; 8 MiB by default. Each put and each read holds about one part in memory. */
  readonly partSize?: number
}

/**
 * A blob store in an existing bucket. Versioning must be off, or a lifecycle rule must remove old versions: otherwise removed blobs stay,
 * though sealed. If the service cannot list unfinished uploads, a lifecycle rule should abort them after some days.
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

/** Reads a small blob in one request, and a long one in requests that grow while the read is sequential. */
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
