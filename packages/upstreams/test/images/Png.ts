/** PNG files made by hand, chunk by chunk, so that they can be wrong in any way. */
import { crc32, deflateSync } from "node:zlib"

export const SIGNATURE = Buffer.from("89504e470d0a1a0a", "hex")

export const chunk = (type: string, data: Uint8Array = Buffer.alloc(0)): Buffer => {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data])
  const length = Buffer.alloc(4)
  length.writeUInt32BE(data.length)
  const crc = Buffer.alloc(4)
  crc.writeUInt32BE(crc32(body))
  return Buffer.concat([length, body, crc])
}

/** Eight bits of red, green and blue. */
export const header = (width: number, height: number): Buffer => {
  const data = Buffer.alloc(13)
  data.writeUInt32BE(width, 0)
  data.writeUInt32BE(height, 4)
  data.writeUInt8(8, 8)
  data.writeUInt8(2, 9)
  return chunk("IHDR", data)
}

/** Rows of one color. */
export const rows = (width: number, height: number, [red, green, blue]: readonly [number, number, number]): Buffer => {
  const row = Buffer.alloc(1 + width * 3)
  for (let x = 0; x < width; x++) row.set([red, green, blue], 1 + x * 3)
  return Buffer.concat(Array.from({ length: height }, () => row))
}

export const RED = [255, 0, 0] as const

/** A whole file; `extra` stands between header and pixels. */
export const png = (
  width: number,
  height: number,
  color: readonly [number, number, number] = RED,
  extra: ReadonlyArray<Buffer> = []
): Buffer =>
  Buffer.concat([SIGNATURE, header(width, height), ...extra, chunk("IDAT", deflateSync(rows(width, height, color))), chunk("IEND")])
