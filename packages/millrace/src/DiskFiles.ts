/** Files for backups: copied and hashed in one pass, and synced to the disk before anything relies on them. */
import { createHash } from "node:crypto"
import { open } from "node:fs/promises"
import { Effect } from "effect"
import { CommandFailed, textOf } from "./Failure.ts"

/** Size and hash of a file. `sha256` in hexadecimal, as `sha256sum` prints it. */
export interface Content {
  readonly bytes: number
  readonly sha256: string
}

/** Bytes read at once. */
const CHUNK = 1024 * 1024

/** Fails with `what` and the file system's own message. */
export const attempt = <A>(what: string, act: (signal: AbortSignal) => A | PromiseLike<A>): Effect.Effect<A, CommandFailed> =>
  Effect.tryPromise({
    try: async (signal) => act(signal),
    catch: (error) => new CommandFailed(`${what}: ${textOf(error)}`)
  })

const read = async (file: string, signal: AbortSignal, write: (chunk: Buffer) => Promise<unknown>): Promise<Content> => {
  const sha = createHash("sha256")
  const source = await open(file)
  try {
    let bytes = 0
    for await (const chunk of source.createReadStream({ autoClose: false, highWaterMark: CHUNK, signal })) {
      sha.update(chunk)
      bytes += chunk.length
      await write(chunk)
    }
    return { bytes, sha256: sha.digest("hex") }
  } finally {
    await source.close()
  }
}

export const contentOf = (file: string): Effect.Effect<Content, CommandFailed> =>
  attempt(`${file} cannot be read`, (signal) => read(file, signal, async () => {}))

/** Copies to a new file that only its owner may read; answers its size and hash. */
export const copy = (from: string, to: string): Effect.Effect<Content, CommandFailed> =>
  attempt(`${from} cannot be copied`, async (signal) => {
    const target = await open(to, "wx", 0o600)
    try {
      const content = await read(from, signal, (chunk) => target.writeFile(chunk))
      await target.sync()
      return content
    } finally {
      await target.close()
    }
  })

/** Writes a new file that only its owner may read. */
export const write = (file: string, text: string): Effect.Effect<void, CommandFailed> =>
  attempt(`${file} cannot be written`, async () => {
    const target = await open(file, "wx", 0o600)
    try {
      await target.writeFile(text)
      await target.sync()
    } finally {
      await target.close()
    }
  })

/** Syncs a file, or the names in a folder, to the disk. */
export const sync = (path: string): Effect.Effect<void, CommandFailed> =>
  attempt(`${path} cannot be synced`, async () => {
    const handle = await open(path, "r")
    try {
      await handle.sync()
    } finally {
      await handle.close()
    }
  })
