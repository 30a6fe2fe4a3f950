/** Files as backups need them: copied and hashed in one reading, and on the disk before anybody relies on them. */
import { createHash } from "node:crypto"
import { open } from "node:fs/promises"
import { Effect } from "effect"
import { CommandFailed } from "./Failure.ts"

/** What a file holds. `sha256` in hexadecimal, as `sha256sum` prints it. */
export interface Content {
  readonly bytes: number
  readonly sha256: string
}

/** Bytes that are read at once. */
const CHUNK = 1024 * 1024

/** Whatever the file system refuses, in its words, after `what`. */
export const attempt = <A>(what: string, act: (signal: AbortSignal) => A | PromiseLike<A>): Effect.Effect<A, CommandFailed> =>
  Effect.tryPromise({
    try: async (signal) => act(signal),
    catch: (error) => new CommandFailed(`${what}: ${error instanceof Error ? error.message : String(error)}`)
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

/** Copies to a file that is not there yet, for its owner's eyes; says what it holds. */
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

/** Writes a file that is not there yet, for its owner's eyes. */
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

/** Has what was written to a file, or the names in a folder, on the disk. */
export const sync = (path: string): Effect.Effect<void, CommandFailed> =>
  attempt(`${path} cannot be synced`, async () => {
    const handle = await open(path, "r")
    try {
      await handle.sync()
    } finally {
      await handle.close()
    }
  })
