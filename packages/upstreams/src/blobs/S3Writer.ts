/** Writes a blob to S3, whose name is known only after its last byte: in one put if it fits into a part, else as a multipart upload. */
import { BlobStore } from "@millrace/core"
import { Effect } from "effect"
import type { UploadPart } from "s3mini"
import type { S3Bucket, Upload } from "./S3Bucket.ts"

const { BlobUnavailable } = BlobStore

/** The most bytes that a service copies in one request, which limits a stored blob. */
const MAX_COPY = 5 * 1024 ** 3

export interface Options {
  readonly bucket: S3Bucket
  /** Bytes. */
  readonly partSize: number
  readonly temporaryName: () => string
}

/** An unfinished put. */
interface Put {
  readonly parts: Array<UploadPart>
  upload: Upload | undefined
  /** Whether the multipart upload was completed, under the temporary name. */
  isComplete: boolean
}

export const write =
  ({ bucket, partSize, temporaryName }: Options): BlobStore.Shelf["write"] =>
  (fill) =>
    Effect.scoped(
      Effect.gen(function* () {
        const put: Put = { parts: [], upload: undefined, isComplete: false }
        yield* Effect.addFinalizer(() => Effect.ignore(removeTemporary(bucket, put)))
        const buffer = new PartBuffer(partSize)
        const uploadPart = Effect.fnUntraced(function* (bytes: Buffer) {
          put.upload ??= yield* bucket.beginUpload(temporaryName())
          put.parts.push(yield* bucket.uploadPart(put.upload, put.parts.length + 1, bytes))
        })
        let stored = 0
        const blob = yield* fill(
          Effect.fnUntraced(function* (bytes) {
            stored += bytes.length
            if (stored > MAX_COPY) return yield* new BlobUnavailable({ reason: "a blob has more than 5 GiB" })
            for (const part of buffer.push(bytes)) yield* uploadPart(part)
          })
        )
        if (put.upload === undefined) {
          yield* bucket.put(blob.id, buffer.rest)
          return blob
        }
        yield* uploadPart(buffer.rest)
        yield* bucket.completeUpload(put.upload, put.parts)
        put.isComplete = true
        yield* bucket.copy(put.upload.name, blob.id)
        return blob
      })
    )

const removeTemporary = (bucket: S3Bucket, { isComplete, upload }: Put): Effect.Effect<unknown, BlobStore.BlobUnavailable> => {
  if (upload === undefined) return Effect.void
  return isComplete ? bucket.remove(upload.name) : bucket.abortUpload(upload)
}

/** Collects bytes into parts of equal size. Its memory grows with what it holds. */
class PartBuffer {
  readonly #partSize: number
  #bytes = Buffer.alloc(0)
  #filled = 0

  constructor(partSize: number) {
    this.#partSize = partSize
  }

  /** Gives each part that is full once more bytes follow, so that the last part is never empty. It is valid until the next is asked for. */
  *push(bytes: Uint8Array): Generator<Buffer> {
    for (let from = 0; from < bytes.length; ) {
      if (this.#filled === this.#partSize) {
        yield this.#bytes
        this.#filled = 0
      }
      if (this.#filled === this.#bytes.length) this.#grow(this.#filled + bytes.length - from)
      const taken = bytes.subarray(from, from + this.#bytes.length - this.#filled)
      this.#bytes.set(taken, this.#filled)
      from += taken.length
      this.#filled += taken.length
    }
  }

  /** The bytes of the last, incomplete part. */
  get rest(): Buffer<ArrayBuffer> {
    return this.#bytes.subarray(0, this.#filled)
  }

  /** To that many bytes and to twice its size, but to one part at most. */
  #grow(least: number): void {
    const larger = Buffer.alloc(Math.min(this.#partSize, Math.max(least, 2 * this.#bytes.length)))
    larger.set(this.#bytes)
    this.#bytes = larger
  }
}
