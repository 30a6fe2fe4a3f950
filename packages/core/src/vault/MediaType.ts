/** Detects the media type of bytes by their magic number, not by a declared type or file name. */

/** The media types of artifacts. */
export type MediaType = "image/png" | "image/jpeg" | "audio/mpeg"

/** How many of the first bytes {@link mediaTypeOf} needs. */
export const MEDIA_TYPE_BYTES = 8

const PNG = Buffer.from("89504e470d0a1a0a", "hex")
const JPEG = Buffer.from("ffd8ff", "hex")
const ID3 = Buffer.from("ID3")

const begins = (bytes: Uint8Array, magic: Uint8Array): boolean => magic.every((byte, i) => bytes[i] === byte)

/** A frame header of MPEG audio, layer III (ISO 11172-3, 2.4.2.3): sync word, then a version, bit rate and sample rate that exist. */
const isMp3Frame = ([first = 0, second = 0, third = 0]: Uint8Array): boolean =>
  first === 0xff && (second & 0xe6) === 0xe2 && (second & 0x18) !== 0x08 && third >> 4 !== 0 && third >> 4 !== 15 && (third & 0x0c) !== 0x0c

/** The media type of content, from its first {@link MEDIA_TYPE_BYTES} bytes; undefined if unknown. An ID3v2 tag counts as MP3. */
export const mediaTypeOf = (bytes: Uint8Array): MediaType | undefined => {
  if (begins(bytes, PNG)) return "image/png"
  if (begins(bytes, JPEG)) return "image/jpeg"
  return begins(bytes, ID3) || isMp3Frame(bytes) ? "audio/mpeg" : undefined
}
