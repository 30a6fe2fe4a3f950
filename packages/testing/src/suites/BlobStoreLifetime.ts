/** The contract of blob stores: when a blob is there, and when it is not. */
import assert from "node:assert/strict"
import type { BlobStore } from "@millrace/core"
import { Deferred, Effect, Fiber, Stream } from "effect"
import { type BlobContract, CHUNK, content, freshSubjects, listed, outcome } from "./BlobStoreFixtures.ts"

export const lifetime: BlobContract = {
  *"blobs are listed with their stored size until they are removed"([blobs]) {
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
  },

  *"a put that fails or is interrupted at any chunk leaves nothing behind"([blobs]) {
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
  },

  *"a put announces the blob's name before it stores the blob, and stores nothing if that fails"([blobs]) {
    const { job } = yield* freshSubjects
    const seen: Array<string> = []
    const named = ({ id }: BlobStore.Blob) =>
      Effect.flatMap(outcome(blobs.get(job, id)), (found) => Effect.sync(() => void seen.push(`${id} ${found}`)))
    const put = yield* Effect.forEach([100, 3 * CHUNK], (size) => blobs.put(job, content(size), named))
    assert.deepEqual(
      seen,
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
  },

  *"a sweep removes blobs that are not needed, except young ones"([blobs]) {
    const { job } = yield* freshSubjects
    const [needed, orphan] = yield* Effect.forEach([1, 2], (size) => blobs.put(job, content(size)))
    assert(needed !== undefined && orphan !== undefined)
    const isNeeded = (id: string) => Effect.succeed(id !== orphan.id)
    assert.equal((yield* blobs.sweep(isNeeded)).blobs, 0)
    assert.equal((yield* blobs.sweep(isNeeded, "-1 hour")).blobs, 1)
    assert.deepEqual(yield* listed(blobs, [needed.id, orphan.id]), [needed.id])
    assert.equal(yield* outcome(blobs.get(job, orphan.id)), "BlobNotFound")
  }
}
