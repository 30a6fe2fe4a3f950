/**
 * Blobs as files of one directory, named after their hash. A blob is written under a temporary name, synced, renamed, and the
 * directory synced: so after a crash it is there whole or not at all, and what is left of it is swept later.
 */
import { type FileHandle, mkdir, open, readdir, rename, rm, stat } from "node:fs/promises"
import { dirname, join, resolve } from "node:path"
import { Clock, Duration, Effect, Layer, Stream } from "effect"
import { type Blob, BlobNotFound, BlobStore, BlobUnavailable, isId, make as over, type Shelf, type StoredBlob } from "./BlobStore.ts"
import { RandomBytes } from "./RandomBytes.ts"
import type { Vault } from "./Vault.ts"

const TEMPORARY = ".part"

/** A put that has not written for so long is dead: what it left is removed when a store opens. */
const DEAD = "1 hour"

const codeOf = (cause: unknown): string | undefined =>
  cause instanceof Error && "code" in cause && typeof cause.code === "string" ? cause.code : undefined

const io = <A>(attempt: () => Promise<A>): Effect.Effect<A, BlobUnavailable> =>
  Effect.tryPromise({
    try: attempt,
    catch: (cause) => new BlobUnavailable({ reason: cause instanceof Error ? cause.message : String(cause) })
  })

/** Undefined where there is no such file. */
const ifThere = <A>(attempt: () => Promise<A>): Effect.Effect<A | undefined, BlobUnavailable> =>
  io(() => attempt().catch((cause) => (codeOf(cause) === "ENOENT" ? undefined : Promise.reject(cause))))

const opened = (file: FileHandle) => Effect.addFinalizer(() => Effect.ignore(io(() => file.close())))

const syncDirectory = (path: string) =>
  Effect.scoped(
    Effect.gen(function* () {
      const handle = yield* io(() => open(path, "r"))
      yield* opened(handle)
      yield* io(() => handle.sync())
    })
  )

/** Durably: what is in a directory that is lost itself is lost with it. */
const makeDirectory = Effect.fnUntraced(function* (directory: string) {
  const first = yield* io(() => mkdir(directory, { recursive: true, mode: 0o700 }))
  if (first === undefined) return
  const top = dirname(resolve(first))
  for (let path = resolve(directory); path !== top; ) {
    path = dirname(path)
    yield* syncDirectory(path)
  }
})

const shelf = (directory: string, random: RandomBytes): Shelf => {
  const pathOf = (id: string) => join(directory, id)
  const sync = syncDirectory(directory)

  const write: Shelf["write"] = <E, R>(
    fill: (append: (bytes: Uint8Array) => Effect.Effect<void, BlobUnavailable>) => Effect.Effect<Blob, E, R>
  ) =>
    Effect.scoped(
      Effect.gen(function* () {
        const temporary = pathOf(Buffer.from(random(16)).toString("hex") + TEMPORARY)
        const file = yield* Effect.acquireRelease(
          io(() => open(temporary, "wx", 0o600)),
          // After the rename there is nothing of that name
          (file) => Effect.ignore(io(() => file.close().finally(() => rm(temporary, { force: true }))))
        )
        const blob = yield* fill((bytes) => io(() => file.writeFile(bytes)))
        yield* io(() => file.sync())
        yield* io(() => rename(temporary, pathOf(blob.id)))
        yield* sync
        return blob
      })
    )

  const read: Shelf["read"] = (id) =>
    Effect.gen(function* () {
      const file = yield* Effect.uninterruptible(
        Effect.tap(
          ifThere(() => open(pathOf(id), "r")),
          (file) => (file ? opened(file) : Effect.void)
        )
      )
      if (file === undefined) return yield* new BlobNotFound({ id })
      const { size } = yield* io(() => file.stat())
      return {
        storedBytes: size,
        read: (position, length) =>
          io(async () => {
            const buffer = Buffer.alloc(length)
            let filled = 0
            while (filled < length) {
              const { bytesRead } = await file.read(buffer, filled, length - filled, position + filled)
              if (bytesRead === 0) break
              filled += bytesRead
            }
            return buffer.subarray(0, filled)
          })
      }
    })

  const entries = (isMine: (name: string) => boolean): Stream.Stream<StoredBlob, BlobUnavailable> =>
    Stream.unwrap(
      Effect.map(
        io(() => readdir(directory)),
        (names) => Stream.fromIterable(names.filter(isMine))
      )
    ).pipe(
      Stream.mapEffect((id) =>
        Effect.map(
          ifThere(() => stat(pathOf(id))),
          (found): ReadonlyArray<StoredBlob> => (found === undefined ? [] : [{ id, storedBytes: found.size, at: found.mtimeMs }])
        )
      ),
      Stream.flatMap((found) => Stream.fromIterable(found))
    )

  const tidy: Shelf["tidy"] = Effect.fnUntraced(function* (time) {
    let removed = 0
    yield* Stream.runForEach(
      Stream.filter(
        entries((name) => name.endsWith(TEMPORARY)),
        ({ at }) => at <= time
      ),
      ({ id }) =>
        Effect.map(
          io(() => rm(pathOf(id), { force: true })),
          () => void removed++
        )
    )
    return removed
  })

  return {
    write,
    read,
    remove: (id) =>
      Effect.andThen(
        io(() => rm(pathOf(id), { force: true })),
        sync
      ),
    list: entries(isId),
    tidy
  }
}

/** Keeps blobs in `directory`, which is made when there is none, for this user's eyes only. */
export const layer = (directory: string): Layer.Layer<BlobStore, BlobUnavailable, Vault> =>
  Layer.effect(
    BlobStore,
    Effect.gen(function* () {
      yield* makeDirectory(directory)
      const files = shelf(directory, yield* RandomBytes)
      yield* files.tidy((yield* Clock.currentTimeMillis) - Duration.toMillis(DEAD))
      return yield* over(files)
    })
  )
