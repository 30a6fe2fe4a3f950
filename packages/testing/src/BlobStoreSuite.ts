/**
 * What every blob store keeps to, as tests that each implementation runs unchanged: nothing here assumes an empty store, and what others
 * keep in it is left alone.
 */
import assert from "node:assert/strict"
import { createHash } from "node:crypto"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { BlobStore, MasterKey, Vault } from "@millrace/core"
import { EventIds, MemoryStateStore } from "@millrace/event-sourcing"
import { Deferred, Effect, Fiber, Layer, type Scope, Stream } from "effect"
import fc from "fast-check"
import { property, type Runner } from "./EventStoreSuite.ts"

type Blobs = BlobStore.BlobStore["Service"]
type Vaults = Vault.Vault["Service"]

/** As blobs are cut, so that tests look where one chunk ends and another begins. */
const CHUNK = 64 * 1024

const MASTER = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

/** Bytes that differ from place to place, so that a shift shows. */
const content = (size: number): Buffer => {
  const bytes = Buffer.alloc(size)
  for (let i = 0; i < size; i++) bytes[i] = (i * 31 + (i >> 8) * 7 + (i >> 16)) & 255
  return bytes
}

const freshSubjects = Effect.map(EventIds, (ids) => {
  const account = `acc_${ids(0)}`
  return { account: Vault.ofAccount(account), job: Vault.ofJob(`job_${ids(0)}`, account) }
})

const read = (blobs: Blobs, subject: Vault.Subject, id: string, range?: { readonly offset: number; readonly length?: number }) =>
  Effect.flatMap(blobs.get(subject, id, range), ({ size, bytes }) =>
    Effect.map(Stream.runCollect(bytes), (parts) => ({ size, bytes: Buffer.concat(parts) }))
  )

/** The tag of its failure, or `success`. */
const outcome = <A, E extends { readonly _tag: string }, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<string, never, R> =>
  Effect.match(effect, { onFailure: (error) => error._tag, onSuccess: () => "success" })

const sizes = [0, 1, 100, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 3 * CHUNK + 77]
const near = fc.oneof(fc.nat(4 * CHUNK), fc.constantFrom(...sizes))
const ranges = fc.oneof(fc.record({ offset: near }), fc.record({ offset: near, length: near }))

setFlagsFromString("--expose-gc")
const collect: () => void = runInNewContext("gc")

/** Bytes of buffers that are in use. What the first collection finds to be garbage is counted off by the second. */
const inUse = (): number => {
  collect()
  collect()
  return process.memoryUsage().arrayBuffers
}

/**
 * Declares the tests of one store. `makeLayer` is built anew for each. `large` is how many bytes a large blob has, to see that it is never
 * whole in memory, and `held` how many may be: left out for a store that is itself in memory.
 */
export const blobStoreSuite = (
  name: string,
  makeLayer: () => Layer.Layer<BlobStore.BlobStore, unknown, Vault.Vault>,
  { describe, it }: Runner,
  large?: { readonly bytes: number; readonly held: number }
): void => {
  const vaults = Vault.Vault.layer.pipe(Layer.provide(MasterKey.layer(MASTER)), Layer.provide(MemoryStateStore.layer))
  const test = (title: string, body: (blobs: Blobs, vault: Vaults) => Effect.Effect<unknown, unknown, Scope.Scope>) =>
    it(title, () =>
      Effect.runPromise(
        Effect.gen(function* () {
          yield* body(yield* BlobStore.BlobStore, yield* Vault.Vault)
        }).pipe(Effect.scoped, Effect.provide(Layer.provideMerge(makeLayer(), Layer.fresh(vaults))))
      )
    )

  /** Which of these are listed. */
  const listed = (blobs: Blobs, ids: ReadonlyArray<string>) =>
    Effect.map(Stream.runCollect(blobs.list), (all) => ids.filter((id) => all.some((one) => one.id === id)))

  describe(`${name}: blobs`, () => {
    test("read back whole, and any range is that slice of them", (blobs) =>
      Effect.gen(function* () {
        const { job } = yield* freshSubjects
        for (const size of sizes) {
          const plaintext = content(size)
          const blob = yield* blobs.put(job, plaintext)
          assert.match(blob.id, /^[0-9a-f]{64}$/u)
          assert.equal(blob.size, size)
          const whole = yield* read(blobs, job, blob.id)
          assert.deepEqual([size, whole.size, whole.bytes.equals(plaintext)], [size, size, true])
          yield* property(ranges, 15, (range) =>
            Effect.gen(function* () {
              const part = yield* read(blobs, job, blob.id, range)
              const end = "length" in range ? range.offset + range.length : size
              assert.equal(part.size, size)
              assert(part.bytes.equals(plaintext.subarray(range.offset, end)), `${size} bytes, ${JSON.stringify(range)}`)
            })
          )
        }
      }))

    test("are the same however they come in", (blobs) =>
      Effect.gen(function* () {
        const { job } = yield* freshSubjects
        yield* property(fc.array(fc.oneof(fc.nat(50), fc.nat(100_000)), { maxLength: 6 }), 15, (lengths) =>
          Effect.gen(function* () {
            const plaintext = content(lengths.reduce((sum, length) => sum + length, 0))
            let from = 0
            const pieces = lengths.map((length) => {
              from += length
              return plaintext.subarray(from - length, from)
            })
            const blob = yield* blobs.put(job, Stream.fromIterable(pieces))
            assert.equal(blob.size, plaintext.length)
            assert((yield* read(blobs, job, blob.id)).bytes.equals(plaintext), JSON.stringify(lengths))
          })
        )
      }))

    test("of the same content have names of their own, so that one can go without the other", (blobs) =>
      Effect.gen(function* () {
        const { job } = yield* freshSubjects
        const [one, two] = [yield* blobs.put(job, content(100)), yield* blobs.put(job, content(100))]
        assert.notEqual(one.id, two.id)
        yield* blobs.remove(one.id)
        assert((yield* read(blobs, job, two.id)).bytes.equals(content(100)))
      }))

    test("open for their own subject only, and for nobody once it is destroyed", (blobs, vault) =>
      Effect.gen(function* () {
        const { account, job } = yield* freshSubjects
        const [other, stranger] = [yield* freshSubjects, yield* freshSubjects]
        const { id } = yield* blobs.put(job, content(10))
        yield* blobs.put(other.account, content(10))
        assert.equal(yield* outcome(blobs.get(other.account, id)), "Tampered")
        assert.equal(yield* outcome(blobs.get(stranger.account, id)), "SubjectDestroyed")
        yield* vault.destroy(account)
        assert.equal(yield* outcome(blobs.get(job, id)), "SubjectDestroyed")
        assert.equal(yield* outcome(blobs.put(job, content(10))), "SubjectDestroyed")
      }))

    test("are listed, with their size as it is stored, removed, and then not found", (blobs) =>
      Effect.gen(function* () {
        const { job } = yield* freshSubjects
        const put = yield* Effect.forEach([1, 2, 3], (size) => blobs.put(job, content(size)))
        const [first = "", ...others] = put.map(({ id }) => id)
        assert.deepEqual(yield* listed(blobs, [first, ...others]), [first, ...others])
        const all = yield* Stream.runCollect(blobs.list)
        for (const { id, size } of put) assert((all.find((one) => one.id === id)?.storedBytes ?? 0) > size)
        yield* blobs.remove(first)
        yield* blobs.remove(first)
        assert.deepEqual(yield* listed(blobs, [first, ...others]), others)
        for (const id of [first, "0".repeat(64), "", "../../etc/passwd", `${others[0]}/..`, (others[0] ?? "").toUpperCase()])
          assert.equal(yield* outcome(blobs.get(job, id)), "BlobNotFound")
      }))

    test("leave nothing behind when what should be put fails, or is interrupted, at any chunk", (blobs) =>
      Effect.gen(function* () {
        const { job } = yield* freshSubjects
        const before = (yield* Stream.runCollect(blobs.list)).map(({ id }) => id)
        for (let chunks = 0; chunks < 4; chunks++) {
          const begun = Stream.fromIterable(Array.from({ length: chunks }, () => content(CHUNK)))
          assert.equal(yield* outcome(blobs.put(job, Stream.concat(begun, Stream.fail({ _tag: "Hangup" as const })))), "Hangup")
          const reached = yield* Deferred.make<void>()
          const stuck = Stream.fromEffect(Effect.andThen(Deferred.succeed(reached, undefined), Effect.never))
          const putting = yield* Effect.forkChild(blobs.put(job, Stream.concat(begun, stuck)))
          yield* Deferred.await(reached)
          yield* Fiber.interrupt(putting)
        }
        const after = (yield* Stream.runCollect(blobs.list)).map(({ id }) => id)
        assert.deepEqual(
          after.filter((id) => !before.includes(id)),
          []
        )
      }))

    test("are told their name before they are there, and are not there when that fails", (blobs) =>
      Effect.gen(function* () {
        const { job } = yield* freshSubjects
        const told: Array<string> = []
        const named = ({ id }: BlobStore.Blob) =>
          Effect.flatMap(outcome(blobs.get(job, id)), (found) => Effect.sync(() => void told.push(`${id} ${found}`)))
        const put = yield* Effect.forEach([100, 3 * CHUNK], (size) => blobs.put(job, content(size), named))
        assert.deepEqual(
          told,
          put.map(({ id }) => `${id} BlobNotFound`)
        )
        let refused = ""
        const refuse = ({ id }: BlobStore.Blob) =>
          Effect.andThen(
            Effect.sync(() => (refused = id)),
            Effect.fail({ _tag: "Refused" as const })
          )
        assert.equal(yield* outcome(blobs.put(job, content(100), refuse)), "Refused")
        assert.equal(yield* outcome(blobs.get(job, refused)), "BlobNotFound")
        assert.deepEqual(yield* listed(blobs, [refused]), [])
      }))

    test("nobody needs are swept, young ones excepted", (blobs) =>
      Effect.gen(function* () {
        const { job } = yield* freshSubjects
        const [needed, orphan] = yield* Effect.forEach([1, 2], (size) => blobs.put(job, content(size)))
        assert(needed !== undefined && orphan !== undefined)
        const isNeeded = (id: string) => Effect.succeed(id !== orphan.id)
        assert.equal((yield* blobs.sweep(isNeeded)).blobs, 0)
        assert.equal((yield* blobs.sweep(isNeeded, "-1 hour")).blobs, 1)
        assert.deepEqual(yield* listed(blobs, [needed.id, orphan.id]), [needed.id])
        assert.equal(yield* outcome(blobs.get(job, orphan.id)), "BlobNotFound")
      }))

    if (large !== undefined) {
      test(`of ${large.bytes} bytes are never whole in memory, neither on their way in nor out`, (blobs) =>
        Effect.gen(function* () {
          const { job } = yield* freshSubjects
          const start = inUse()
          let peak = 0
          let seen = 0
          const watch = (piece: Uint8Array) => {
            seen += piece.length
            if (seen % (32 * 1024 * 1024) < piece.length) peak = Math.max(peak, inUse() - start)
          }
          const [written, back] = [createHash("sha256"), createHash("sha256")]
          const piece = 100_000
          const pieces = Stream.map(Stream.rechunk(Stream.range(1, Math.ceil(large.bytes / piece)), 1), (n) => {
            const bytes = Buffer.alloc(Math.min(piece, large.bytes - (n - 1) * piece), n)
            written.update(bytes)
            watch(bytes)
            return bytes
          })
          const { id, size } = yield* blobs.put(job, pieces)
          assert.equal(size, large.bytes)
          const { bytes } = yield* blobs.get(job, id)
          yield* Stream.runForEach(bytes, (part) =>
            Effect.sync(() => {
              back.update(part)
              watch(part)
            })
          )
          assert.equal(seen, 2 * large.bytes)
          assert.equal(back.digest("hex"), written.digest("hex"))
          // From its middle, and its end
          const offset = Math.floor(large.bytes / 2)
          const part = yield* read(blobs, job, id, { offset, length: 10 })
          assert.deepEqual([...part.bytes], [...Array.from({ length: 10 }, (_, i) => (Math.floor((offset + i) / piece) + 1) & 255)])
          assert.equal((yield* read(blobs, job, id, { offset: large.bytes - 1 })).bytes.length, 1)
          yield* blobs.remove(id)
          assert(peak <= large.held, `${peak} bytes were held`)
        }))
    }
  })
}
