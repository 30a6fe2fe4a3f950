/**
 * The stored format of a blob: chunks of 64 KiB, then a trailer. Each chunk has its own tag, so a range can be read alone. The trailer
 * holds the blob's own key and its size, sealed by the vault; the size reveals a truncated blob.
 *
 * `chunk* | sealed key and size | length of that (2 bytes) | "MRB1"`
 */
import * as Aead from "./Aead.ts"

/** Bytes of plaintext in each chunk but the last. */
export const CHUNK = 64 * 1024

const STORED_CHUNK = CHUNK + Aead.TAG
const MAGIC = Buffer.from("MRB1")
const SIZE = 8
const NOTHING = new Uint8Array()

/** The most bytes that a trailer may have: more than any vault writes. */
export const MAX_TRAILER = 512

/** A part of a blob, in bytes of plaintext. It is cut at the blob's end. */
export interface Range {
  readonly offset: number
  /** By default, to the end. */
  readonly length?: number
}

/** Opens a blob. The key is used for this blob only, so a chunk's index can be its nonce. */
export interface Secret {
  readonly key: Aead.Key
  readonly size: number
}

const nonceOf = (index: number): Uint8Array => {
  const nonce = Buffer.alloc(Aead.NONCE)
  nonce.writeUInt32BE(index, Aead.NONCE - 4)
  return nonce
}

/** Splits content into chunks and seals each. */
export class Sealer {
  readonly #bytes: Uint8Array
  readonly #key: Aead.Key
  readonly #buffer = Buffer.alloc(CHUNK)
  #filled = 0
  #chunks = 0

  constructor(key: Uint8Array) {
    this.#bytes = key
    this.#key = Aead.keyOf(key)
  }

  /** Bytes of plaintext so far. */
  get size(): number {
    return this.#chunks * CHUNK + this.#filled
  }

  *push(bytes: Uint8Array): Generator<Uint8Array> {
    for (let from = 0; from < bytes.length; ) {
      const part = bytes.subarray(from, from + CHUNK - this.#filled)
      this.#buffer.set(part, this.#filled)
      from += part.length
      this.#filled += part.length
      if (this.#filled === CHUNK) yield this.#chunk()
    }
  }

  /** The last chunk, empty if no bytes are left, and the secret that opens all chunks. */
  end(): readonly [last: Uint8Array, secret: Uint8Array] {
    const secret = Buffer.alloc(Aead.KEY + SIZE)
    secret.set(this.#bytes)
    secret.writeBigUInt64BE(BigInt(this.size), Aead.KEY)
    return [this.#filled > 0 ? this.#chunk() : NOTHING, secret]
  }

  #chunk(): Uint8Array {
    const sealed = Aead.encrypt(this.#key, nonceOf(this.#chunks), NOTHING, this.#buffer.subarray(0, this.#filled))
    this.#filled = 0
    this.#chunks++
    return sealed
  }
}

/** The bytes that follow the chunks. */
export const trailer = (sealedSecret: string): Uint8Array => {
  const length = Buffer.alloc(2)
  length.writeUInt16BE(sealedSecret.length)
  return Buffer.concat([Buffer.from(sealedSecret), length, MAGIC])
}

/** The sealed secret and the bytes of chunks, from the last {@link MAX_TRAILER} bytes. Undefined if this is no blob. */
export const readTrailer = (
  end: Uint8Array,
  storedBytes: number
): { readonly sealedSecret: string; readonly chunkBytes: number } | undefined => {
  const bytes = Buffer.from(end.buffer, end.byteOffset, end.byteLength)
  const after = bytes.length - MAGIC.length - 2
  if (after < 0 || !bytes.subarray(after + 2).equals(MAGIC)) return undefined
  const start = after - bytes.readUInt16BE(after)
  if (start < 0) return undefined
  return { sealedSecret: bytes.toString("latin1", start, after), chunkBytes: storedBytes - (bytes.length - start) }
}

/** Decodes a secret. Undefined if it does not fit `chunkBytes`, the stored bytes of chunks. */
export const readSecret = (bytes: Uint8Array, chunkBytes: number): Secret | undefined => {
  if (bytes.length !== Aead.KEY + SIZE) return undefined
  const size = Number(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).readBigUInt64BE(Aead.KEY))
  return size + Math.ceil(size / CHUNK) * Aead.TAG === chunkBytes ? { key: Aead.keyOf(bytes.subarray(0, Aead.KEY)), size } : undefined
}

/** One chunk to read for a range: its stored position and length, and the plaintext bytes `from` to `to` that belong to the range. */
export interface Part {
  readonly index: number
  readonly position: number
  readonly length: number
  readonly from: number
  readonly to: number
}

/** The chunks that hold a range, in order. */
export function* parts(size: number, { offset, length = size }: Range): Generator<Part> {
  if (!(offset >= 0 && length >= 0)) throw new RangeError(`No range of a blob: ${length} bytes from ${offset}`)
  const start = Math.min(size, offset)
  const end = Math.min(size, offset + length)
  for (let index = Math.floor(start / CHUNK); index * CHUNK < end && start < end; index++) {
    const first = index * CHUNK
    yield {
      index,
      position: index * STORED_CHUNK,
      length: Math.min(CHUNK, size - first) + Aead.TAG,
      from: Math.max(start - first, 0),
      to: Math.min(end - first, CHUNK)
    }
  }
}

/** The plaintext of a part, from its stored chunk. Undefined if the chunk was tampered with. */
export const openPart = ({ key }: Secret, { index, from, to }: Part, stored: Uint8Array): Uint8Array | undefined =>
  Aead.decrypt(key, nonceOf(index), NOTHING, stored)?.subarray(from, to)
