/** Downloads of a job's artifacts by its owner. */
import { Effect } from "effect"
import type { BlobStore } from "../vault/BlobStore.ts"
import { ofJob } from "../vault/Vault.ts"
import type { Download } from "../work/FileOperation.ts"
import type { Artifact } from "../work/JobOperation.ts"
import { unreadable } from "./JobView.ts"

const EXTENSIONS: Readonly<Record<string, string>> = {
  "image/png": ".png",
  "image/jpeg": ".jpg",
  "image/webp": ".webp",
  "audio/mpeg": ".mp3",
  "audio/wav": ".wav"
}

export interface Place {
  readonly accountId: string
  readonly jobId: string
  /** The artifact's position among the job's, from 1. */
  readonly part: number
  readonly resource: string
}

/** The download of an artifact. Its bytes are read when the caller asks for them. */
export const of = (
  blobs: BlobStore["Service"],
  { contentType, id, size }: Artifact,
  { accountId, jobId, part, resource }: Place
): Download => ({
  contentType,
  size,
  tag: id,
  filename: `${jobId}${part === 1 ? "" : `-${part}`}${EXTENSIONS[contentType] ?? ""}`,
  read: (range) =>
    Effect.map(blobs.get(ofJob(jobId, accountId), id, range), ({ bytes }) => bytes).pipe(Effect.mapError(unreadable(resource)))
})
