/** The contract of blob stores: a blob is read back whole or in part, by its own subject only. */
import assert from "node:assert/strict"
import { Stream } from "effect"
import fc from "fast-check"
import { type BlobContract, content as contentOf, freshSubjects, outcome, ranges, read, sizes } from "./BlobStoreFixtures.ts"
import { property } from "./Contract.ts"

export const content: BlobContract = {
  *"blobs are read back whole and in any range"([blobs]) {
    const { job } = yield* freshSubjects
    for (const size of sizes) {
      const plaintext = contentOf(size)
      const blob = yield* blobs.put(job, plaintext)
      assert.match(blob.id, /^[0-9a-f]{64}$/u)
      assert.equal(blob.size, size)
      const whole = yield* read(blobs, job, blob.id)
      assert.deepEqual([size, whole.size, whole.bytes.equals(plaintext)], [size, size, true])
      yield* property(ranges, 15, function* (range) {
        const part = yield* read(blobs, job, blob.id, range)
        const end = "length" in range ? range.offset + range.length : size
        assert.equal(part.size, size)
        assert(part.bytes.equals(plaintext.subarray(range.offset, end)), `${size} bytes, ${JSON.stringify(range)}`)
      })
    }
  },

  *"a blob does not depend on the pieces that it arrives in"([blobs]) {
    const { job } = yield* freshSubjects
    yield* property(fc.array(fc.oneof(fc.nat(50), fc.nat(100_000)), { maxLength: 6 }), 15, function* (lengths) {
      const plaintext = contentOf(lengths.reduce((sum, length) => sum + length, 0))
      let from = 0
      const pieces = lengths.map((length) => {
        from += length
        return plaintext.subarray(from - length, from)
      })
      const blob = yield* blobs.put(job, Stream.fromIterable(pieces))
      assert.equal(blob.size, plaintext.length)
      assert((yield* read(blobs, job, blob.id)).bytes.equals(plaintext), JSON.stringify(lengths))
    })
  },

  *"two blobs of the same content have different names, so that one can be removed"([blobs]) {
    const { job } = yield* freshSubjects
    const [one, two] = [yield* blobs.put(job, contentOf(100)), yield* blobs.put(job, contentOf(100))]
    assert.notEqual(one.id, two.id)
    yield* blobs.remove(one.id)
    assert((yield* read(blobs, job, two.id)).bytes.equals(contentOf(100)))
  },

  *"a blob opens for its own subject only, and for no subject once that is destroyed"([blobs, vault]) {
    const { account, job } = yield* freshSubjects
    const [other, stranger] = [yield* freshSubjects, yield* freshSubjects]
    const { id } = yield* blobs.put(job, contentOf(10))
    yield* blobs.put(other.account, contentOf(10))
    assert.equal(yield* outcome(blobs.get(other.account, id)), "Tampered")
    assert.equal(yield* outcome(blobs.get(stranger.account, id)), "SubjectDestroyed")
    yield* vault.destroy(account)
    assert.equal(yield* outcome(blobs.get(job, id)), "SubjectDestroyed")
    assert.equal(yield* outcome(blobs.put(job, contentOf(10))), "SubjectDestroyed")
  }
}
