/** Files for backups: copied and hashed in one pass, and synced to the disk before anything relies on them. */
import { createHash } from "node:crypto"
import { createReadStream, createWriteStream, statSync } from "node:fs"
import { open, stat, writeFile } from "node:fs/promises"
import { Writable } from "node:stream"
import { pipeline } from "node:stream/promises"
import { Effect } from "effect"
import { CommandFailed, textOf } from "./Failure.ts"
import type { Advance } from "./Progress.ts"

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

/** Reads a file into a sink, and measures it. The sink is opened with the pipeline, which alone handles its errors. */
const read = async (file: string, openSink: () => Writable, signal: AbortSignal, advance: Advance): Promise<Content> => {
  const { size } = await stat(file)
  const sha = createHash("sha256")
  let bytes = 0
  const measure = async function* (chunks: AsyncIterable<Buffer>) {
    for await (const chunk of chunks) {
      sha.update(chunk)
      bytes += chunk.length
      advance(bytes, size)
      yield chunk
    }
  }
  await pipeline(createReadStream(file, { highWaterMark: CHUNK }), measure, openSink(), { signal })
  return { bytes, sha256: sha.digest("hex") }
}

const nowhere = (): Writable => new Writable({ write: (_chunk, _encoding, done) => done() })

const untold: Advance = () => {}

/** `advance` takes the bytes of the file that were read, and how many it has. */
export const contentOf = (file: string, advance = untold): Effect.Effect<Content, CommandFailed> =>
  attempt(`${file} cannot be read`, (signal) => read(file, nowhere, signal, advance))

/** A new file that only its owner may read, and that is synced before it is closed. */
const NEW = { mode: 0o600, flush: true } as const

/** Copies a file; returns its size and hash. `advance`: as of {@link contentOf}. */
export const copy = (from: string, to: string, advance = untold): Effect.Effect<Content, CommandFailed> =>
  attempt(`${from} cannot be copied`, (signal) => read(from, () => createWriteStream(to, { flags: "wx", ...NEW }), signal, advance))

/** The bytes of all these files together. One that is not there has none. */
export const sizeOf = (files: ReadonlyArray<string>): Effect.Effect<number, CommandFailed> =>
  attempt("the sizes of files cannot be read", () =>
    files.reduce((sum, file) => sum + (statSync(file, { throwIfNoEntry: false })?.size ?? 0), 0)
  )

/** Writes a new file. */
export const write = (file: string, text: string): Effect.Effect<void, CommandFailed> =>
  attempt(`${file} cannot be written`, () => writeFile(file, text, { flag: "wx", ...NEW }))

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
