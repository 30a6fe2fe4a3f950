import { mkdir, mkdtemp, readdir, readFile, readlink, rm, stat, utimes, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { BlobStore, Vault } from "@millrace/core"
import { MemoryStateStore } from "@millrace/event-sourcing"
import { blobStoreSuite } from "@millrace/testing"
import { FileBlobStore } from "@millrace/upstreams"
import { Effect, Fiber, Layer, type Scope, Stream } from "effect"
import { describe, expect, test } from "vitest"
import { CHUNK, type Range } from "../../../core/src/vault/SealedBlob.ts"
import { open as openVault, outcome } from "../../../core/test/vault/Vaults.ts"

const { ofAccount, ofJob } = Vault

const job = ofJob("job_1", "acc_1")
const DAY = 24 * 3_600_000

/** Bytes that differ from place to place, so that a shift shows. */
const content = (size: number): Buffer => {
  const bytes = Buffer.alloc(size)
  for (let i = 0; i < size; i++) bytes[i] = (i * 31 + (i >> 8) * 7 + (i >> 16)) & 255
  return bytes
}

const read = (blobs: BlobStore.BlobStore["Service"], subject: typeof job, id: string, range?: Range) =>
  Effect.flatMap(blobs.get(subject, id, range), ({ size, bytes }) =>
    Effect.map(Stream.runCollect(bytes), (parts) => ({ size, bytes: Buffer.concat(parts) }))
  )

const directory = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "millrace-blobs-"))),
  (path) => Effect.promise(() => rm(path, { recursive: true, force: true }))
)

const vault = Effect.flatMap(MemoryStateStore.make, (store) => openVault(store))

/** A store over a vault, as another process would open it. */
const over = (layer: ReturnType<typeof FileBlobStore.layer>, vault: Vault.Vault["Service"]) =>
  Effect.gen(function* () {
    return yield* BlobStore.BlobStore
  }).pipe(Effect.provide(Layer.provide(Layer.fresh(layer), Layer.succeed(Vault.Vault, vault))))

const inFiles = Effect.gen(function* () {
  const path = yield* directory
  const keys = yield* vault
  return { path, vault: keys, blobs: yield* over(FileBlobStore.layer(path), keys) }
})

const testing = (name: string, body: Effect.Effect<unknown, unknown, Scope.Scope>) =>
  test(name, () => Effect.runPromise(Effect.asVoid(Effect.scoped(body))))

const runner = { describe, it: test }

/** In a directory that goes with the layer. */
const layerInFiles = () => Layer.unwrap(Effect.map(directory, FileBlobStore.layer))

blobStoreSuite("files", layerInFiles, runner, { bytes: 200 * 1024 * 1024, held: 8 * 1024 * 1024 })

describe("a blob's file", () => {
  testing(
    "is sealed, and readable by its owner only",
    Effect.gen(function* () {
      const { path, blobs } = yield* inFiles
      const secret = "a canary that must not be seen"
      const { id } = yield* blobs.put(job, Buffer.from(secret.repeat(1_000)))
      const file = yield* Effect.promise(() => readFile(join(path, id)))
      expect(file.includes("canary")).toBe(false)
      expect((yield* Effect.promise(() => stat(join(path, id)))).mode & 0o077).toBe(0)
      expect(yield* Effect.promise(() => readdir(path))).toEqual([id])
    })
  )

  testing(
    "that is changed, cut off or extended fails before those bytes are returned",
    Effect.gen(function* () {
      const { path, blobs } = yield* inFiles
      const size = 2 * CHUNK + 500
      const plaintext = content(size)
      const { id } = yield* blobs.put(job, plaintext)
      const file = join(path, id)
      const stored = yield* Effect.promise(() => readFile(file))
      const places = [0, 1, CHUNK - 1, CHUNK, CHUNK + 15, CHUNK + 16, 2 * CHUNK + 31, 2 * CHUNK + 32, 2 * CHUNK + 532, 2 * CHUNK + 547]
      for (let place = 2 * CHUNK + 548; place < stored.length; place++) places.push(place)
      const meddled: Array<Buffer> = places.map((place) => {
        const changed = Buffer.from(stored)
        changed[place] = (changed[place] ?? 0) ^ 1
        return changed
      })
      for (const length of [0, 1, 5, 100, CHUNK + 16, 2 * CHUNK + 32, stored.length - 1]) meddled.push(stored.subarray(0, length))
      meddled.push(Buffer.concat([stored, Buffer.alloc(1)]), Buffer.concat([stored.subarray(CHUNK + 16)]))
      // The first two chunks change places
      const [one, two] = [stored.subarray(0, CHUNK + 16), stored.subarray(CHUNK + 16, 2 * CHUNK + 32)]
      meddled.push(Buffer.concat([two, one, stored.subarray(2 * CHUNK + 32)]))
      for (const bytes of meddled) {
        yield* Effect.promise(() => writeFile(file, bytes))
        expect(yield* outcome(read(blobs, job, id))).toBe("Tampered")
      }
      // A change elsewhere does not keep a range from being read
      yield* Effect.promise(() => writeFile(file, meddled[0] ?? stored))
      const range = { offset: CHUNK + 5, length: CHUNK + 100 }
      expect((yield* read(blobs, job, id, range)).bytes.equals(plaintext.subarray(CHUNK + 5, 2 * CHUNK + 105))).toBe(true)
    })
  )

  testing(
    "with missing or inserted chunks is refused before anything is read",
    Effect.gen(function* () {
      const { path, blobs } = yield* inFiles
      const { id } = yield* blobs.put(job, content(2 * CHUNK + 500))
      const stored = yield* Effect.promise(() => readFile(join(path, id)))
      const end = 2 * (CHUNK + 16) + 516
      for (const [upTo, slipped] of [
        [end, 1],
        [end, CHUNK + 16],
        [end - 1, 0],
        [2 * (CHUNK + 16), 0],
        [0, 0]
      ] as const) {
        const bytes = Buffer.concat([stored.subarray(0, upTo), Buffer.alloc(slipped), stored.subarray(end)])
        yield* Effect.promise(() => writeFile(join(path, id), bytes))
        expect([upTo, slipped, yield* outcome(blobs.get(job, id))]).toEqual([upTo, slipped, "Tampered"])
      }
    })
  )

  testing(
    "under the name of another blob fails if subject or key differ",
    Effect.gen(function* () {
      const { path, blobs } = yield* inFiles
      const [mine, foreign] = [yield* blobs.put(job, content(10)), yield* blobs.put(ofAccount("acc_2"), content(10))]
      yield* Effect.promise(async () => writeFile(join(path, mine.id), await readFile(join(path, foreign.id))))
      expect(yield* outcome(read(blobs, job, mine.id))).toBe("Tampered")
    })
  )

  testing(
    "can be read to its end when it is removed meanwhile, and is not found afterwards",
    Effect.gen(function* () {
      const { blobs } = yield* inFiles
      const plaintext = content(3 * CHUNK)
      const { id } = yield* blobs.put(job, plaintext)
      const { bytes } = yield* blobs.get(job, id)
      let removed = false
      const removing = Stream.mapEffect(bytes, (part) => {
        if (removed) return Effect.succeed(part)
        removed = true
        return Effect.as(blobs.remove(id), part)
      })
      expect(Buffer.concat(yield* Stream.runCollect(removing)).equals(plaintext)).toBe(true)
      expect(yield* outcome(Stream.runCollect(bytes))).toBe("BlobNotFound")
    })
  )
})

describe("after a crash", () => {
  const aged = (file: string, millis: number) =>
    Effect.promise(async () => {
      await writeFile(file, content(10))
      const then = new Date(Date.now() - millis)
      await utimes(file, then, then)
    })

  testing(
    "leftovers of a dead put are swept when the store opens, and those of a live one are kept",
    Effect.gen(function* () {
      const path = yield* directory
      yield* aged(join(path, "dead.part"), 2 * 3_600_000)
      yield* aged(join(path, "live.part"), 1_000)
      yield* aged(join(path, "readme.txt"), DAY)
      const keys = yield* vault
      const blobs = yield* over(FileBlobStore.layer(path), keys)
      expect((yield* Effect.promise(() => readdir(path))).sort()).toEqual(["live.part", "readme.txt"])
      expect(yield* Stream.runCollect(blobs.list)).toEqual([])
      yield* aged(join(path, "live.part"), DAY + 1_000)
      expect(yield* blobs.sweep(() => Effect.succeed(true))).toEqual({ blobs: 0, leftovers: 1 })
      expect(yield* Effect.promise(() => readdir(path))).toEqual(["readme.txt"])
    })
  )

  testing(
    "complete blobs are there for the next process",
    Effect.gen(function* () {
      const path = yield* directory
      const keys = yield* vault
      const { id } = yield* (yield* over(FileBlobStore.layer(path), keys)).put(job, content(200_000))
      const blobs = yield* over(FileBlobStore.layer(path), keys)
      expect((yield* read(blobs, job, id)).bytes.equals(content(200_000))).toBe(true)
    })
  )
})

describe("an unusable directory", () => {
  testing(
    "is a typed failure, at the start and later",
    Effect.gen(function* () {
      const path = yield* directory
      const keys = yield* vault
      yield* Effect.promise(() => writeFile(join(path, "file"), ""))
      expect(yield* outcome(over(FileBlobStore.layer(join(path, "file")), keys))).toBe("BlobUnavailable")
      const inner = join(path, "inner", "blobs")
      const blobs = yield* over(FileBlobStore.layer(inner), keys)
      const { id } = yield* blobs.put(job, content(10))
      yield* Effect.promise(() => rm(inner, { recursive: true }))
      expect(yield* outcome(blobs.put(job, content(10)))).toBe("BlobUnavailable")
      expect(yield* outcome(Stream.runCollect(blobs.list))).toBe("BlobUnavailable")
      expect(yield* outcome(blobs.get(job, id))).toBe("BlobNotFound")
      yield* Effect.promise(() => mkdir(join(inner, id), { recursive: true }))
      expect(yield* outcome(blobs.get(job, id))).toBe("BlobUnavailable")
    })
  )
})

describe.skipIf(process.platform !== "linux")("the files that are open", () => {
  /** File descriptors of this process for the directory or a file in it. */
  const openIn = (path: string) =>
    Effect.promise(async () => {
      const links = await Promise.allSettled((await readdir("/proc/self/fd")).map((fd) => readlink(`/proc/self/fd/${fd}`)))
      return links.flatMap((link) => (link.status === "fulfilled" && link.value.startsWith(path) ? [link.value] : []))
    })

  /** Waits until what was begun before has ended: operations on files take their turn in the thread pool. */
  const settled = (path: string) =>
    Effect.gen(function* () {
      for (let round = 0; round < 50; round++) {
        yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
        yield* Effect.promise(() => stat(path))
      }
    })

  const turns = (count: number) =>
    Effect.promise(async () => {
      for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve))
    })

  testing(
    "are closed when a put, a removal or a read is interrupted",
    Effect.gen(function* () {
      const { path, blobs } = yield* inFiles
      const { id } = yield* blobs.put(job, content(200_000))
      const leaked: Array<string> = []
      for (const work of [
        Effect.suspend(() => blobs.put(job, content(100_000))),
        Effect.suspend(() => blobs.remove("0".repeat(64))),
        Effect.suspend(() => read(blobs, job, id))
      ])
        for (let after = 0; after < 40; after++) {
          const fiber = yield* Effect.forkChild(Effect.exit(work), { startImmediately: true })
          yield* turns(after % 20)
          yield* Fiber.interrupt(fiber)
          yield* settled(path)
          leaked.push(...(yield* openIn(path)))
        }
      expect(leaked).toEqual([])
    })
  )

  testing(
    "are not leaked by a reader that never reads or stops early",
    Effect.gen(function* () {
      const { path, blobs } = yield* inFiles
      const { id } = yield* blobs.put(job, content(200_000))
      yield* blobs.get(job, id)
      expect(yield* openIn(path)).toEqual([])
      const { bytes } = yield* blobs.get(job, id)
      yield* Stream.runDrain(Stream.take(bytes, 1))
      expect(yield* openIn(path)).toEqual([])
      const left = yield* blobs.get(job, id)
      yield* Effect.exit(Stream.runForEach(left.bytes, () => Effect.fail("left")))
      expect(yield* openIn(path)).toEqual([])
    })
  )
})
