/**
 * Array parameters in PostgreSQL's binary format. In the text format, the client escapes every quote of JSON and the server unescapes it,
 * which costs more than the insert.
 */

/** Whether the database stores a text unchanged. */
export const isText = (text: string): boolean => text.isWellFormed() && !text.includes("\0")

/** Bytes before the first element: dimensions, null flag, element type, count, and first index. */
const HEADER = 20
/** An empty array has no dimension, so it has no count and no index. */
const EMPTY_HEADER = 12

/** Writes the elements of one type. */
interface Format<A> {
  /** The type's number in PostgreSQL (`pg_type.oid`). */
  readonly type: number
  readonly bytesOf: (one: A) => number
  /** Writes an element. Returns the offset of its end. */
  readonly write: (buffer: Buffer, one: A, at: number) => number
}

/** Writes arrays of one dimension. */
const arrays =
  <A extends {}>({ type, bytesOf, write }: Format<A>) =>
  (all: ReadonlyArray<A | null>): Buffer => {
    let size = all.length === 0 ? EMPTY_HEADER : HEADER
    for (const one of all) size += 4 + (one === null ? 0 : bytesOf(one))
    const buffer = Buffer.allocUnsafe(size)
    buffer.writeInt32BE(all.length === 0 ? 0 : 1, 0)
    buffer.writeInt32BE(1, 4)
    buffer.writeInt32BE(type, 8)
    if (all.length === 0) return buffer
    buffer.writeInt32BE(all.length, 12)
    buffer.writeInt32BE(1, 16)
    let at = HEADER
    for (const one of all) {
      const end = one === null ? at + 4 : write(buffer, one, at + 4)
      buffer.writeInt32BE(one === null ? -1 : end - at - 4, at)
      at = end
    }
    return buffer
  }

export const texts = arrays<string>({ type: 25, bytesOf: Buffer.byteLength, write: (buffer, text, at) => at + buffer.write(text, at) })

export const bytes = arrays<Uint8Array>({
  type: 17,
  bytesOf: (one) => one.length,
  write: (buffer, one, at) => {
    buffer.set(one, at)
    return at + one.length
  }
})

export const uuids = arrays<string>({
  type: 2950,
  bytesOf: () => 16,
  write: (buffer, id, at) => at + buffer.write(id.replaceAll("-", ""), at, "hex")
})

export const int4s = arrays<number>({ type: 23, bytesOf: () => 4, write: (buffer, one, at) => buffer.writeInt32BE(one, at) })

/** Integers up to 2^53, written as two halves, because a `BigInt` would have to be allocated for each. */
export const int8s = arrays<number>({
  type: 20,
  bytesOf: () => 8,
  write: (buffer, one, at) => buffer.writeUInt32BE(one >>> 0, buffer.writeInt32BE(Math.floor(one / 2 ** 32), at))
})

export const booleans = arrays<boolean>({ type: 16, bytesOf: () => 1, write: (buffer, one, at) => buffer.writeUInt8(one ? 1 : 0, at) })
