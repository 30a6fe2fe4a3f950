/** An artifact on its way to whoever asked for it, as bytes that are never whole in memory. */
import { Effect, type Stream } from "effect"
import type { BlobStore, GetFailure } from "../vault/BlobStore.ts"
import type { Range } from "../vault/SealedBlob.ts"
import { ofJob } from "../vault/Vault.ts"
import { type ReadError, unreadable } from "./JobView.ts"

export interface Download {
  readonly contentType: string
  /** Of the whole, in bytes. */
  readonly size: number
  /** Names these very bytes, for ever: an entity tag without its quotes. */
  readonly tag: string
  readonly filename: string
  /** The bytes of a range, all by default; what lies past the end does not count. Fails before any byte where there are none. */
  readonly read: (range?: Range) => Effect.Effect<Stream.Stream<Uint8Array, GetFailure>, ReadError>
}

const EXTENSIONS: Readonly<Record<string, string>> = {
  "image/png": ".png",
  "image/jpeg": ".jpg",
  "image/webp": ".webp",
  "audio/mpeg": ".mp3",
  "audio/wav": ".wav"
}

export const of = (
  blobs: BlobStore["Service"],
  artifact: { readonly id: string; readonly size: number; readonly contentType: string },
  {
    accountId,
    jobId,
    part,
    resource
  }: { readonly accountId: string; readonly jobId: string; readonly part: number; readonly resource: string }
): Download => {
  const { contentType, id, size } = artifact
  return {
    contentType,
    size,
    tag: id,
    filename: `${jobId}${part === 1 ? "" : `-${part}`}${EXTENSIONS[contentType] ?? ""}`,
    read: (range) =>
      Effect.map(blobs.get(ofJob(jobId, accountId), id, range), ({ bytes }) => bytes).pipe(Effect.mapError(unreadable(resource)))
  }
}
