import * as fc from "fast-check"
import { describe, expect, test } from "vitest"
import { MEDIA_TYPE_BYTES, mediaTypeOf } from "../../src/vault/MediaType.ts"
import { check } from "./Property.ts"

const hex = (text: string) => Buffer.from(text.replaceAll(" ", ""), "hex")

const known = [
  ["89 50 4e 47 0d 0a 1a 0a", "image/png"],
  ["ff d8 ff e0 00 10 4a 46", "image/jpeg"],
  ["ff d8 ff e1 1c 0f 45 78", "image/jpeg"],
  ["49 44 33 04 00 00 00 00", "audio/mpeg"],
  // MPEG 1, 2 and 2.5, layer III, with and without a checksum
  ["ff fb 90 64 00 00 00 00", "audio/mpeg"],
  ["ff fa 90 64 00 00 00 00", "audio/mpeg"],
  ["ff f3 40 c4 00 00 00 00", "audio/mpeg"],
  ["ff e3 18 c4 00 00 00 00", "audio/mpeg"]
] as const

describe("a media type", () => {
  test.each(known)("%s is %s", (bytes, type) => expect(mediaTypeOf(hex(bytes))).toBe(type))

  test.each([
    ["nothing", ""],
    ["half a signature of PNG", "89 50 4e 47"],
    ["the signature of PNG, its line ends changed on the way", "89 50 4e 47 0a 1a 0a 00"],
    ["two bytes of JPEG", "ff d8"],
    ["GIF", "47 49 46 38 39 61"],
    ["WebP", "52 49 46 46 00 00 00 00"],
    ["UTF-16 with a byte order mark", "ff fe 41 00"],
    ["AAC (ADTS), which has layer 0", "ff f1 50 80"],
    ["MPEG audio, layer II", "ff fd 90 64"],
    ["a version that does not exist", "ff eb 90 64"],
    ["a bit rate that does not exist", "ff fb f0 64"],
    ["a free bit rate", "ff fb 00 64"],
    ["a sample rate that does not exist", "ff fb 9c 64"],
    ["FLAC", "66 4c 61 43"],
    ["a page", "3c 68 74 6d 6c 3e"]
  ])("%s has no known type", (_, bytes) => expect(mediaTypeOf(hex(bytes))).toBeUndefined())

  test("depends on the first bytes only", () =>
    check(
      fc.property(fc.constantFrom(...known), fc.uint8Array({ maxLength: 50 }), ([start, type], rest) => {
        expect(hex(start)).toHaveLength(MEDIA_TYPE_BYTES)
        expect(mediaTypeOf(Buffer.concat([hex(start), rest]))).toBe(type)
      })
    ))

  test("is the same for the first bytes as for the whole content", () =>
    check(
      fc.property(fc.uint8Array({ maxLength: 50 }), (bytes) => {
        expect(mediaTypeOf(bytes.subarray(0, MEDIA_TYPE_BYTES))).toBe(mediaTypeOf(bytes))
      })
    ))
})
