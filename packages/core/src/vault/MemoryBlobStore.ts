/** A blob store in memory, for tests and trials. Its blobs are sealed, too. */
import { Clock, Effect, Layer, Stream } from "effect"
import { BlobNotFound, BlobStore, make, type Shelf } from "./BlobStore.ts"
import type { Vault } from "./Vault.ts"

const shelf = (): Shelf => {
  const blobs = new Map<string, { readonly bytes: Uint8Array; readonly at: number }>()
  return {
    write: (fill) =>
      Effect.gen(function* () {
        const pieces: Array<Uint8Array> = []
        const blob = yield* fill((bytes) => Effect.sync(() => void pieces.push(bytes)))
        blobs.set(blob.id, { bytes: Buffer.concat(pieces), at: yield* Clock.currentTimeMillis })
        return blob
      }),
    read: (id) =>
      Effect.suspend(() => {
        const bytes = blobs.get(id)?.bytes
        return bytes === undefined
          ? Effect.fail(new BlobNotFound({ id }))
          : Effect.succeed({
              storedBytes: bytes.length,
              read: (position: number, length: number) => Effect.sync(() => bytes.subarray(position, position + length))
            })
      }),
    remove: (id) => Effect.sync(() => void blobs.delete(id)),
    list: Stream.suspend(() => Stream.fromIterable([...blobs].map(([id, { bytes, at }]) => ({ id, storedBytes: bytes.length, at })))),
    tidy: () => Effect.succeed(0)
  }
}

export const layer: Layer.Layer<BlobStore, never, Vault> = Layer.effect(
  BlobStore,
  Effect.suspend(() => make(shelf()))
)
