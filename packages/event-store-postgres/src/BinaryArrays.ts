/**
 * Arrays as parameters, in PostgreSQL's binary format. In the text format, every quote of JSON would be escaped by the client and
 * unescaped by the server, which costs more than the insert.
 */

const HEADER = 20

/** An array of one dimension, counted from 1. `size` is in bytes; each element includes the four bytes of its length. */
const begin = (type: number, count: number, size: number): Buffer => {
  if (count === 0) {
    const empty = Buffer.alloc(12)
    empty.writeInt32BE(type, 8)
    return empty
  }
  const buffer = Buffer.allocUnsafe(HEADER + size)
  buffer.writeInt32BE(1, 0)
  buffer.writeInt32BE(1, 4)
  buffer.writeInt32BE(type, 8)
  buffer.writeInt32BE(count, 12)
  buffer.writeInt32BE(1, 16)
  return buffer
}

/** Whether the database keeps a text unchanged. */
export const isText = (text: string): boolean => text.isWellFormed() && !text.includes("\0")

export const texts = (all: ReadonlyArray<string>): Buffer => {
  let size = 0
  for (const text of all) size += 4 + Buffer.byteLength(text)
  const buffer = begin(25, all.length, size)
  let at = HEADER
  for (const text of all) {
    const length = buffer.write(text, at + 4)
    buffer.writeInt32BE(length, at)
    at += 4 + length
  }
  return buffer
}

export const bytes = (all: ReadonlyArray<Uint8Array>): Buffer => {
  let size = 0
  for (const one of all) size += 4 + one.length
  const buffer = begin(17, all.length, size)
  let at = HEADER
  for (const one of all) {
    at = buffer.writeInt32BE(one.length, at)
    buffer.set(one, at)
    at += one.length
  }
  return buffer
}

export const uuids = (all: ReadonlyArray<string>): Buffer => {
  const buffer = begin(2950, all.length, all.length * 20)
  let at = HEADER
  for (const id of all) {
    at = buffer.writeInt32BE(16, at)
    at += buffer.write(id.replaceAll("-", ""), at, "hex")
  }
  return buffer
}

export const int4s = (all: ReadonlyArray<number>): Buffer => {
  const buffer = begin(23, all.length, all.length * 8)
  let at = HEADER
  for (const one of all) {
    at = buffer.writeInt32BE(4, at)
    at = buffer.writeInt32BE(one, at)
  }
  return buffer
}

/** Whole numbers up to 2^53; `null` is the `NULL` of SQL. */
export const int8s = (all: ReadonlyArray<number | null>): Buffer => {
  let size = 0
  for (const one of all) size += one === null ? 4 : 12
  const buffer = begin(20, all.length, size)
  if (all.includes(null)) buffer.writeInt32BE(1, 4)
  let at = HEADER
  for (const one of all) {
    at = buffer.writeInt32BE(one === null ? -1 : 8, at)
    if (one !== null) at = buffer.writeBigInt64BE(BigInt(one), at)
  }
  return buffer
}

export const booleans = (all: ReadonlyArray<boolean>): Buffer => {
  const buffer = begin(16, all.length, all.length * 5)
  let at = HEADER
  for (const one of all) {
    at = buffer.writeInt32BE(1, at)
    at = buffer.writeUInt8(one ? 1 : 0, at)
  }
  return buffer
}
