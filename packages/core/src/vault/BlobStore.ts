/**
 * Blobs: large content outside the log, which is what jobs read and make. Each blob is sealed under a subject of the vault, so destroying
 * that subject's key deletes it. Its id is the SHA-256 of the stored bytes, so an id never names different content.
 */
import { createHash } from "node:crypto"
import { Clock, Context, Duration, Effect, Schema, type Scope, Stream } from "effect"
import { KEY } from "./Aead.ts"
import { RandomBytes } from "./RandomBytes.ts"
import * as SealedBlob from "./SealedBlob.ts"
import { type Subject, Tampered, Vault, type VaultFailure } from "./Vault.ts"

export class BlobNotFound extends Schema.TaggedError<BlobNotFound>()("BlobNotFound", { id: Schema.String }) {
  override get message(): string {
    return `There is no file ${this.id}`
  }
}

/** The storage of blobs does not answer now. No blob was changed. */
export class BlobUnavailable extends Schema.TaggedError<BlobUnavailable>()("BlobUnavailable", { reason: Schema.String }) {
  override get message(): string {
    return `Files of jobs cannot be kept or read: ${this.reason}`
  }
}

/** Why a blob cannot be read. `Tampered` also covers a truncated blob and a file that is not a blob. */
export type GetFailure = BlobNotFound | BlobUnavailable | VaultFailure

/** A blob's id, and its size in bytes of plaintext. */
export interface Blob {
  readonly id: string
  readonly size: number
}

/** A blob in storage: its size in bytes there, and when it was put, milliseconds since 1970. */
export interface StoredBlob {
  readonly id: string
  readonly storedBytes: number
  readonly at: number
}

export class BlobStore extends Context.Service<
  BlobStore,
  {
    /**
     * Stores content durably. If it fails or is interrupted, a later sweep removes the leftovers. `named` runs with the blob's id before
     * the blob exists under it.
     */
    readonly put: <E = never, R = never, E2 = never, R2 = never>(
      subject: Subject,
      content: Uint8Array | Stream.Stream<Uint8Array, E, R>,
      named?: (blob: Blob) => Effect.Effect<void, E2, R2>
    ) => Effect.Effect<Blob, E | E2 | BlobUnavailable | VaultFailure, R | R2>
    /** The blob's size and the bytes of a range, by default all. Each chunk is authenticated before any of its bytes is returned. */
    readonly get: (
      subject: Subject,
      id: string,
      range?: SealedBlob.Range
    ) => Effect.Effect<{ readonly size: number; readonly bytes: Stream.Stream<Uint8Array, GetFailure> }, GetFailure>
    /** Removes a blob if it exists. The stored bytes are unlinked, not overwritten: only the vault makes them unreadable. */
    readonly remove: (id: string) => Effect.Effect<void, BlobUnavailable>
    readonly list: Stream.Stream<StoredBlob, BlobUnavailable>
    /**
     * Removes unneeded blobs and leftovers of crashes that are older than `olderThan`, a day by default. Younger ones may be about to be
     * named in the log. Returns how many it removed of each.
     */
    readonly sweep: <E = never, R = never>(
      isNeeded: (id: string) => Effect.Effect<boolean, E, R>,
      olderThan?: Duration.Input
    ) => Effect.Effect<{ readonly blobs: number; readonly leftovers: number }, E | BlobUnavailable, R>
  }
>()("@millrace/core/vault/BlobStore") {}

/** A stored blob, open for reading until the scope closes. */
export interface Source {
  readonly storedBytes: number
  /** Returns fewer bytes at the end of the blob. */
  readonly read: (position: number, length: number) => Effect.Effect<Uint8Array, BlobUnavailable>
}

/** The storage of sealed blobs by id: what an implementation provides. */
export interface Shelf {
  /** Stores what `fill` appends under the id that `fill` returns, atomically and durably. */
  readonly write: <E, R>(
    fill: (append: (bytes: Uint8Array) => Effect.Effect<void, BlobUnavailable>) => Effect.Effect<Blob, E, R>
  ) => Effect.Effect<Blob, E | BlobUnavailable, R>
  readonly read: (id: string) => Effect.Effect<Source, BlobNotFound | BlobUnavailable, Scope.Scope>
  readonly remove: (id: string) => Effect.Effect<void, BlobUnavailable>
  readonly list: Stream.Stream<StoredBlob, BlobUnavailable>
  /** Removes leftovers of puts that ended before `time`, milliseconds since 1970. Returns how many. */
  readonly tidy: (time: number) => Effect.Effect<number, BlobUnavailable>
}

const PURPOSE = "blob"
const ID = /^[0-9a-f]{64}$/u
const GRACE = "1 day"

/** Whether a text has the format of a blob id. Such a text is a safe file name. */
export const isId = (name: string): boolean => ID.test(name)

/** A blob store over a shelf. */
export const make = Effect.fnUntraced(function* (shelf: Shelf) {
  const vault = yield* Vault
  const random = yield* RandomBytes
  const tampered = (subject: Subject) => new Tampered({ subject: typeof subject === "string" ? subject : subject.name, purpose: PURPOSE })

  const put: BlobStore["Service"]["put"] = (subject, content, named) =>
    shelf.write((append) =>
      Effect.gen(function* () {
        const sealer = new SealedBlob.Sealer(random(KEY))
        const hash = createHash("sha256")
        const add = (bytes: Uint8Array) => {
          hash.update(bytes)
          return append(bytes)
        }
        const seal = Effect.fnUntraced(function* (bytes: Uint8Array) {
          for (const chunk of sealer.push(bytes)) yield* add(chunk)
        })
        yield* Stream.isStream(content) ? Stream.runForEach(content, seal) : seal(content)
        const { size } = sealer
        const [last, secret] = sealer.end()
        yield* add(last)
        yield* add(SealedBlob.trailer(yield* vault.seal(subject, PURPOSE, secret)))
        const blob = { id: hash.digest("hex"), size }
        if (named !== undefined) yield* named(blob)
        return blob
      })
    )

  const open = (id: string) => (isId(id) ? shelf.read(id) : Effect.fail(new BlobNotFound({ id })))

  const unlock = Effect.fnUntraced(function* (subject: Subject, id: string) {
    const { storedBytes, read } = yield* open(id)
    const start = Math.max(0, storedBytes - SealedBlob.MAX_TRAILER)
    const trailer = SealedBlob.readTrailer(yield* read(start, storedBytes - start), storedBytes)
    if (trailer === undefined) return yield* tampered(subject)
    const secret = SealedBlob.readSecret(yield* vault.openBytes(subject, PURPOSE, trailer.sealedSecret), trailer.chunkBytes)
    return secret ?? (yield* tampered(subject))
  }, Effect.scoped)

  const get: BlobStore["Service"]["get"] = (subject, id, range = { offset: 0 }) =>
    Effect.map(unlock(subject, id), (secret) => ({
      size: secret.size,
      bytes: Stream.unwrap(
        Effect.map(open(id), ({ read }) =>
          Stream.mapEffect(Stream.fromIterable(SealedBlob.parts(secret.size, range), { chunkSize: 1 }), (part) =>
            Effect.flatMap(read(part.position, part.length), (stored) => {
              const bytes = SealedBlob.openPart(secret, part, stored)
              return bytes === undefined ? Effect.fail(tampered(subject)) : Effect.succeed(bytes)
            })
          )
        )
      )
    }))

  return BlobStore.of({ put, get, remove: (id) => (isId(id) ? shelf.remove(id) : Effect.void), list: shelf.list, sweep: sweep(shelf) })
})

const sweep = (shelf: Shelf): BlobStore["Service"]["sweep"] =>
  Effect.fn("BlobStore.sweep")(function* (isNeeded, olderThan = GRACE) {
    const before = (yield* Clock.currentTimeMillis) - Duration.toMillis(olderThan)
    let blobs = 0
    yield* Stream.runForEach(
      Stream.filter(shelf.list, ({ at }) => at <= before),
      Effect.fnUntraced(function* ({ id }) {
        if (yield* isNeeded(id)) return
        yield* shelf.remove(id)
        blobs++
      })
    )
    return { blobs, leftovers: yield* shelf.tidy(before) }
  })
