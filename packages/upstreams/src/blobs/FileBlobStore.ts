/**
 * `BlobStore` on a directory of files named by hash. A blob is written to a temporary file, synced and renamed, then the directory is
 * synced. So after a crash a blob exists complete or not at all, and its temporary file is removed later.
 */
import { type FileHandle, mkdir, open, readdir, rename, rm, stat } from "node:fs/promises"
import { dirname, join, resolve } from "node:path"
import { BlobStore, RandomBytes, type Vault } from "@millrace/core"
import { Clock, Duration, Effect, Layer, type Scope, Stream } from "effect"

const { BlobNotFound, BlobUnavailable, isId } = BlobStore
type BlobUnavailable = BlobStore.BlobUnavailable

const TEMPORARY = ".part"

/** A temporary file that is unchanged for this long belongs to a put that died. It is removed when a store opens. */
const DEAD = "1 hour"

/** A blob store in `directory`, which is created if it does not exist, for this user only. */
export const layer = (directory: string): Layer.Layer<BlobStore.BlobStore, BlobUnavailable, Vault.Vault> =>
  Layer.effect(
    BlobStore.BlobStore,
    Effect.gen(function* () {
      yield* makeDirectory(directory)
      const random = yield* RandomBytes
      const tidy = removeTemporary(directory)
      yield* tidy((yield* Clock.currentTimeMillis) - Duration.toMillis(DEAD))
      return yield* BlobStore.make({
        write: write(directory, () => Buffer.from(random(16)).toString("hex") + TEMPORARY),
        read: read(directory),
        remove: (id) =>
          Effect.andThen(
            io(() => rm(join(directory, id), { force: true })),
            syncDirectory(directory)
          ),
        list: files(directory, isId),
        tidy
      })
    })
  )

const write =
  (directory: string, temporaryName: () => string): BlobStore.Shelf["write"] =>
  <E, R>(fill: (append: (bytes: Uint8Array) => Effect.Effect<void, BlobUnavailable>) => Effect.Effect<BlobStore.Blob, E, R>) =>
    Effect.scoped(
      Effect.gen(function* () {
        const temporary = join(directory, temporaryName())
        // After the rename the temporary file no longer exists
        yield* Effect.addFinalizer(() => Effect.ignore(io(() => rm(temporary, { force: true }))))
        const file = yield* opened(temporary, "wx", 0o600)
        const blob = yield* fill((bytes) => io(() => file.writeFile(bytes)))
        yield* io(() => file.sync())
        yield* io(() => rename(temporary, join(directory, blob.id)))
        yield* syncDirectory(directory)
        return blob
      })
    )

const read =
  (directory: string): BlobStore.Shelf["read"] =>
  (id) =>
    Effect.gen(function* () {
      const file = yield* Effect.catchIf(opened(join(directory, id), "r"), isMissing, () => Effect.fail(new BlobNotFound({ id })))
      const { size } = yield* io(() => file.stat())
      return { storedBytes: size, read: (position, length) => io(() => readAt(file, position, length)) }
    })

/** Returns fewer bytes only at the end of the file. */
const readAt = async (file: FileHandle, position: number, length: number): Promise<Uint8Array> => {
  const buffer = Buffer.alloc(length)
  let filled = 0
  while (filled < length) {
    const { bytesRead } = await file.read(buffer, filled, length - filled, position + filled)
    if (bytesRead === 0) break
    filled += bytesRead
  }
  return buffer.subarray(0, filled)
}

/** Skips files that are removed meanwhile. */
const files = (directory: string, isWanted: (name: string) => boolean): Stream.Stream<BlobStore.StoredBlob, BlobUnavailable> =>
  Stream.fromIterableEffect(
    Effect.map(
      io(() => readdir(directory)),
      (names) => names.filter(isWanted)
    )
  ).pipe(
    Stream.mapEffect((id) =>
      io(() => stat(join(directory, id))).pipe(
        Effect.map(({ mtimeMs, size }) => [{ id, storedBytes: size, at: mtimeMs }]),
        Effect.catchIf(isMissing, () => Effect.succeed([]))
      )
    ),
    Stream.flattenIterable
  )

const removeTemporary = (directory: string): BlobStore.Shelf["tidy"] =>
  Effect.fnUntraced(function* (time) {
    const temporary = files(directory, (name) => name.endsWith(TEMPORARY))
    const old = yield* Stream.runCollect(Stream.filter(temporary, ({ at }) => at <= time))
    yield* Effect.forEach(old, ({ id }) => io(() => rm(join(directory, id), { force: true })))
    return old.length
  })

/** Creates the directory durably: syncs the parent of each new directory. */
const makeDirectory = Effect.fnUntraced(function* (directory: string) {
  const first = yield* io(() => mkdir(directory, { recursive: true, mode: 0o700 }))
  if (first === undefined) return
  const top = dirname(resolve(first))
  for (let path = resolve(directory); path !== top; ) {
    path = dirname(path)
    yield* syncDirectory(path)
  }
})

const syncDirectory = (path: string) => Effect.scoped(Effect.flatMap(opened(path, "r"), (handle) => io(() => handle.sync())))

/** Opens a file until the scope closes. Uninterruptible, because only garbage collection would close a leaked handle. */
const opened = (path: string, flags: string, mode?: number): Effect.Effect<FileHandle, BlobUnavailable, Scope.Scope> =>
  Effect.acquireRelease(
    io(() => open(path, flags, mode)),
    (file) => Effect.ignore(io(() => file.close()))
  )

const MISSING = "ENOENT"

const isMissing = ({ reason }: BlobUnavailable): boolean => reason.startsWith(MISSING)

/** The reason begins with the system's error code. */
const io = <A>(attempt: () => Promise<A>): Effect.Effect<A, BlobUnavailable> =>
  Effect.tryPromise({
    try: attempt,
    catch: (cause) => new BlobUnavailable({ reason: cause instanceof Error ? cause.message : String(cause) })
  })
