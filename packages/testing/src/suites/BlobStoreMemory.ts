/** The contract of blob stores: a large blob is never whole in memory. */
import assert from "node:assert/strict"
import { createHash } from "node:crypto"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { Effect, Stream } from "effect"
import { type BlobContract, freshSubjects, read } from "./BlobStoreFixtures.ts"

setFlagsFromString("--expose-gc")
const collect: () => void = runInNewContext("gc")

/** Bytes of buffers that are in use. What the first collection finds to be garbage is counted off by the second. */
const inUse = (): number => {
  collect()
  collect()
  return process.memoryUsage().arrayBuffers
}

/** A blob of `bytes` bytes, of which at most `held` bytes may be in memory at a time. */
export interface Large {
  readonly bytes: number
  readonly held: number
}

export const memory = (large: Large): BlobContract => ({
  *[`a blob of ${large.bytes} bytes is never whole in memory, neither when it is put nor when it is read`]([blobs]) {
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
  }
})
