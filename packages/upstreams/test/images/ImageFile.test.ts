import { deflateSync } from "node:zlib"
import { Image } from "@millrace/core"
import { Effect, Exit } from "effect"
import * as fc from "fast-check"
import sharp from "sharp"
import { describe, expect, test } from "vitest"
import * as ImageFile from "../../src/images/ImageFile.ts"
import { chunk, header, png, RED, rows, SIGNATURE } from "./Png.ts"

const own = (size: Image.Size) => size
const fit = (bytes: Uint8Array, sizeFor: (own: Image.Size) => Image.Size = own, as?: "png" | "jpeg") =>
  Effect.runPromise(ImageFile.fit(bytes, sizeFor, as))
const refusal = (bytes: Uint8Array) => Effect.runPromise(Effect.flip(ImageFile.fit(bytes, own)))

/** The color in the middle of a picture. */
const colorOf = async ({ bytes, width, height }: Image.Picture): Promise<ReadonlyArray<number>> => {
  const { data, info } = await sharp(bytes).removeAlpha().raw().toBuffer({ resolveWithObject: true })
  const at = (Math.floor(height / 2) * width + Math.floor(width / 2)) * info.channels
  return [...data.subarray(at, at + 3)]
}

const drawn = (width: number, height: number) => sharp({ create: { width, height, channels: 3, background: "red" } })

describe("a picture", () => {
  test.each([
    ["PNG", () => Promise.resolve(png(40, 30)), "image/png"],
    ["JPEG", () => drawn(40, 30).jpeg().toBuffer(), "image/jpeg"],
    ["WebP", () => drawn(40, 30).webp().toBuffer(), "image/png"]
  ])("that is %s is encoded again", async (_, make, contentType) => {
    const picture = await fit(await make())
    expect(picture).toMatchObject({ contentType, width: 40, height: 30 })
    const metadata = await sharp(picture.bytes).metadata()
    expect([`image/${metadata.format}`, metadata.width, metadata.height]).toEqual([contentType, 40, 30])
    const [red = 0, green = 255] = await colorOf(picture)
    expect([red > 240, green < 20]).toEqual([true, true])
  })

  test("gets exactly the requested size", () =>
    fc.assert(
      fc.asyncProperty(
        fc.tuple(fc.integer({ min: 1, max: 300 }), fc.integer({ min: 1, max: 300 })),
        fc.tuple(side, side),
        async (from, [width, height]) => {
          const picture = await fit(png(...from), () => ({ width, height }))
          expect([picture.width, picture.height]).toEqual([width, height])
          const metadata = await sharp(picture.bytes).metadata()
          expect([metadata.width, metadata.height]).toEqual([width, height])
          expect(await colorOf(picture)).toEqual([...RED])
        }
      ),
      { seed: 1, numRuns: 12 }
    ))

  test("is cropped at the centre and not squeezed", async () => {
    // Blue, red and blue stripes, of which the middle one is the square
    const stripe = (color: readonly [number, number, number], width: number) => ({ color, width })
    const row = Buffer.concat([
      Buffer.from([0]),
      ...[stripe([0, 0, 255], 100), stripe(RED, 100), stripe([0, 0, 255], 100)].map(({ color, width }) =>
        Buffer.alloc(width * 3, Buffer.from(color))
      )
    ])
    const striped = Buffer.concat([
      SIGNATURE,
      header(300, 100),
      chunk("IDAT", deflateSync(Buffer.concat(Array.from({ length: 100 }, () => row)))),
      chunk("IEND")
    ])
    const { bytes } = await fit(striped, () => ({ width: 100, height: 100 }))
    const { data, info } = await sharp(bytes).raw().toBuffer({ resolveWithObject: true })
    for (const x of [2, 50, 97])
      expect([x, ...data.subarray(50 * 100 * info.channels + x * info.channels).subarray(0, 3)]).toEqual([x, ...RED])
  })

  test("that its camera rotated is upright, without the orientation tag", async () => {
    const turned = await drawn(60, 20).withMetadata({ orientation: 6 }).jpeg().toBuffer()
    const picture = await fit(turned)
    expect([picture.width, picture.height]).toEqual([20, 60])
    expect((await sharp(picture.bytes).metadata()).orientation).toBeUndefined()
  })

  test("has no location, camera, profile or comment", async () => {
    const canary = "a canary that must not be seen"
    const exif = { IFD0: { Copyright: canary, Make: canary }, IFD3: { GPSLatitude: "51/1 30/1 0/1" } }
    const photo = await drawn(60, 20)
      .withExif(exif)
      .withIccProfile("p3")
      .withXmp(`<x:xmpmeta xmlns:x="adobe:ns:meta/">${canary}</x:xmpmeta>`)
      .jpeg()
      .toBuffer()
    const described = png(60, 20, RED, [
      chunk("tEXt", Buffer.from(`parameters\0${canary}`)),
      chunk("zTXt", Buffer.concat([Buffer.from("prompt\0\0"), deflateSync(canary)]))
    ])
    expect(photo.includes(canary)).toBe(true)
    for (const bytes of [photo, described]) {
      for (const as of ["png", "jpeg"] as const) {
        const picture = await fit(bytes, own, as)
        const { exif, icc, xmp, iptc, comments } = await sharp(picture.bytes).metadata()
        expect({ exif, icc, xmp, iptc, comments }).toEqual({})
        expect(Buffer.from(picture.bytes).includes("canary")).toBe(false)
      }
    }
  })

  test("that is animated becomes its first frame", async () => {
    const animation = Buffer.alloc(8)
    animation.writeUInt32BE(2, 0)
    const control = Buffer.alloc(26)
    control.writeUInt32BE(0, 0)
    control.writeUInt32BE(40, 4)
    control.writeUInt32BE(30, 8)
    const second = Buffer.concat([Buffer.from([0, 0, 0, 2]), deflateSync(rows(40, 30, [0, 0, 255]))])
    const control2 = Buffer.from(control)
    control2.writeUInt32BE(1, 0)
    const apng = Buffer.concat([
      SIGNATURE,
      header(40, 30),
      chunk("acTL", animation),
      chunk("fcTL", control),
      chunk("IDAT", deflateSync(rows(40, 30, RED))),
      chunk("fcTL", control2),
      chunk("fdAT", second),
      chunk("IEND")
    ])
    const frames = await Promise.all(
      ["red", "blue"].map((background) =>
        sharp({ create: { width: 40, height: 30, channels: 3, background } })
          .png()
          .toBuffer()
      )
    )
    const webp = await sharp(frames, { join: { animated: true } })
      .webp({ lossless: true })
      .toBuffer()
    expect((await sharp(webp).metadata()).pages).toBe(2)
    for (const bytes of [apng, webp]) {
      const picture = await fit(bytes)
      expect(picture).toMatchObject({ width: 40, height: 30, contentType: "image/png" })
      expect(Buffer.from(picture.bytes).includes("acTL")).toBe(false)
      expect(await colorOf(picture)).toEqual([...RED])
    }
  })

  test("that is also a file of another type becomes the image only", async () => {
    const script = "<script>alert(1)</script>"
    const jpeg = await drawn(40, 30).jpeg().toBuffer()
    const comment = Buffer.concat([Buffer.from([0xff, 0xfe, 0, script.length + 2]), Buffer.from(script)])
    for (const bytes of [
      Buffer.concat([png(40, 30), Buffer.from(script)]),
      Buffer.concat([png(40, 30), Buffer.from("PK\u0003\u0004 an archive"), Buffer.from(script)]),
      png(40, 30, RED, [chunk("heLo", Buffer.from(script))]),
      Buffer.concat([jpeg.subarray(0, 2), comment, jpeg.subarray(2)]),
      Buffer.concat([jpeg, Buffer.from(script)])
    ]) {
      expect(bytes.includes(script)).toBe(true)
      const picture = await fit(bytes)
      expect(picture).toMatchObject({ width: 40, height: 30 })
      expect(Buffer.from(picture.bytes).includes("script")).toBe(false)
    }
  })

  test.each([
    ["CMYK", () => drawn(40, 30).toColourspace("cmyk").jpeg().toBuffer()],
    ["gray", () => drawn(40, 30).toColourspace("b-w").png().toBuffer()],
    ["16 bits", () => drawn(40, 30).toColourspace("rgb16").png().toBuffer()],
    ["a palette", () => drawn(40, 30).png({ palette: true }).toBuffer()],
    ["a wider space", () => drawn(40, 30).withIccProfile("p3").jpeg().toBuffer()]
  ])("of %s becomes eight bits in sRGB", async (_, make) => {
    const picture = await fit(await make(), own, "png")
    const { space, depth, channels, isPalette } = await sharp(picture.bytes).metadata()
    expect([["srgb", "b-w"].includes(space), depth, channels <= 3, isPalette]).toEqual([true, "uchar", true, false])
  })

  test("may be transparent as PNG, and is on white as JPEG", async () => {
    const clear = await sharp({ create: { width: 40, height: 30, channels: 4, background: { r: 0, g: 0, b: 0, alpha: 0 } } })
      .png()
      .toBuffer()
    expect(await sharp((await fit(clear)).bytes).stats()).toMatchObject({ isOpaque: false })
    expect(await colorOf(await fit(clear, own, "jpeg"))).toEqual([255, 255, 255])
  })
})

const side = fc.integer({ min: 1, max: 400 })
const NONE = "is no PNG, JPEG or WebP image"
const BROKEN = "cannot be decoded"

describe("a file", () => {
  const svg = '<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><image href="file:///etc/passwd"/></svg>'

  test.each([
    ["nothing", Buffer.alloc(0), NONE],
    ["text", Buffer.from("hello"), NONE],
    ["SVG", Buffer.from(svg), NONE],
    ["SVG after a byte order mark", Buffer.from(`\ufeff${svg}`), NONE],
    ["GIF", Buffer.from("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7", "base64"), NONE],
    ["a page", Buffer.from("<!doctype html><html></html>"), NONE],
    ["PDF", Buffer.from("%PDF-1.7"), NONE],
    ["MP3", Buffer.from("ID3\u0004"), NONE],
    ["RIFF that is sound", Buffer.from("RIFF\0\0\0\0WAVEfmt "), NONE],
    ["the signature of PNG alone", SIGNATURE, BROKEN],
    ["SVG behind the signature of PNG", Buffer.concat([SIGNATURE, Buffer.from(svg)]), BROKEN],
    ["SVG behind the signature of JPEG", Buffer.concat([Buffer.from("ffd8ff", "hex"), Buffer.from(svg)]), BROKEN],
    ["SVG in the dress of WebP", Buffer.concat([Buffer.from("RIFF\0\0\0\0WEBP"), Buffer.from(svg)]), BROKEN],
    ["PNG without pixels", Buffer.concat([SIGNATURE, header(40, 30), chunk("IEND")]), BROKEN],
    ["PNG of no size", png(0, 0), BROKEN],
    ["PNG whose header is cut off", png(40, 30).subarray(0, 20), BROKEN],
    ["PNG of a size below zero", Buffer.concat([SIGNATURE, header(0xffffffff, 1), chunk("IEND")]), BROKEN]
  ])("that is %s is refused", async (_, bytes, reason) => {
    expect(await refusal(bytes)).toEqual(new ImageFile.NotAnImage({ reason }))
  })

  test("with fewer pixels than declared is refused", async () => {
    const short = Buffer.concat([SIGNATURE, header(400, 300), chunk("IDAT", deflateSync(rows(400, 20, RED))), chunk("IEND")])
    expect(await refusal(short)).toMatchObject({ reason: BROKEN })
  })

  test.each([
    ["PNG", () => Promise.resolve(png(400, 300))],
    ["JPEG", () => drawn(400, 300).jpeg().toBuffer()],
    ["WebP", () => drawn(400, 300).webp({ lossless: true }).toBuffer()]
  ])("cut off within the pixels of %s is refused", async (_, make) => {
    const bytes = await make()
    for (const part of [0.3, 0.5, 0.7, 0.9])
      expect([part, await refusal(bytes.subarray(0, bytes.length * part))]).toMatchObject([part, { reason: BROKEN }])
  })

  const TOO_MANY = `has more than ${ImageFile.MAX_PIXELS} pixels`

  test.each([
    [50_000, 50_000, TOO_MANY],
    [7_072, 7_072, TOO_MANY],
    [1_000_000, 51, TOO_MANY],
    [2_147_483_647, 1, BROKEN],
    [1, 2_147_483_647, BROKEN]
  ])("that declares %i by %i pixels is refused by its header alone", async (width, height, reason) => {
    const bomb = Buffer.concat([SIGNATURE, header(width, height), chunk("IDAT", deflateSync(Buffer.alloc(1_000_000))), chunk("IEND")])
    const before = process.memoryUsage.rss()
    expect(await refusal(bomb)).toMatchObject({ reason })
    expect(process.memoryUsage.rss() - before).toBeLessThan(100 * 1024 * 1024)
  })

  test("may have the most pixels allowed", async () => {
    const bytes = await drawn(8_000, 6_250).jpeg({ quality: 1 }).toBuffer()
    expect(await fit(bytes, () => ({ width: 256, height: 256 }))).toMatchObject({ width: 256, height: 256 })
  })

  test("with a comment that inflates to a hundred megabytes is read without it, or refused", async () => {
    const bomb = chunk("zTXt", Buffer.concat([Buffer.from("comment\0\0"), deflateSync(Buffer.alloc(100 * 1024 * 1024))]))
    const exit = await Effect.runPromise(Effect.exit(ImageFile.fit(png(40, 30, RED, [bomb]), own)))
    if (Exit.isSuccess(exit)) expect(exit.value.bytes.length).toBeLessThan(10_000)
    else expect(await refusal(png(40, 30, RED, [bomb]))).toMatchObject({ reason: BROKEN })
  })

  test("with too many bytes is refused before it is decoded", async () => {
    const large = Buffer.concat([png(40, 30), Buffer.alloc(ImageFile.MAX_BYTES)])
    expect(await refusal(large)).toMatchObject({ reason: `has more than ${ImageFile.MAX_BYTES} bytes` })
  })

  test("of any bytes after any signature is an image or refused, never a defect", () =>
    fc.assert(
      fc.asyncProperty(
        fc.constantFrom(
          SIGNATURE,
          Buffer.concat([SIGNATURE, header(40, 30)]),
          Buffer.from("ffd8ffe0", "hex"),
          Buffer.from("RIFF\0\0\0\0WEBPVP8 ")
        ),
        fc.uint8Array({ maxLength: 300 }),
        async (start, rest) => {
          const exit = await Effect.runPromise(Effect.exit(ImageFile.fit(Buffer.concat([start, rest]), own)))
          if (Exit.isFailure(exit)) expect(exit.cause.reasons.map(({ _tag }) => _tag)).toEqual(["Fail"])
        }
      ),
      { seed: 1, numRuns: 60 }
    ))

  test("with any one byte changed is an image or refused, never a defect", () => {
    const bytes = png(40, 30)
    return fc.assert(
      fc.asyncProperty(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 }), async (at, flip) => {
        const changed = Buffer.from(bytes)
        changed.writeUInt8((changed[at] ?? 0) ^ flip, at)
        const exit = await Effect.runPromise(Effect.exit(ImageFile.fit(changed, () => ({ width: 40, height: 30 }))))
        if (Exit.isFailure(exit)) expect(exit.cause.reasons.map(({ _tag }) => _tag)).toEqual(["Fail"])
      }),
      { seed: 1, numRuns: 60 }
    )
  })
})

describe("an inspection", () => {
  const verdict = (bytes: Uint8Array) => Effect.runPromise(Effect.exit(ImageFile.inspect("image", bytes)))

  test("of any damaged image gives the same result as its decoding", async () => {
    const files = [png(40, 30), await drawn(40, 30).jpeg().toBuffer(), await drawn(40, 30).webp().toBuffer()]
    for (const bytes of files) expect(await verdict(bytes)).toEqual(Exit.void)
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...files), fc.nat(10_000), fc.integer({ min: 0, max: 255 }), async (bytes, place, value) => {
        const damaged = Buffer.from(bytes.subarray(0, value < 128 ? bytes.length : place % bytes.length))
        if (value < 128 && damaged.length > 0) damaged[place % damaged.length] = value
        const [inspected, decoded] = [await verdict(damaged), await Effect.runPromise(Effect.exit(ImageFile.fit(damaged, own)))]
        expect(Exit.isSuccess(inspected)).toBe(Exit.isSuccess(decoded))
        if (Exit.isFailure(inspected))
          expect(Effect.runSync(Effect.flip(inspected))).toMatchObject({ _tag: "InvalidInput", field: "image" })
      }),
      { seed: 1, numRuns: 80 }
    )
  })
})

describe("the event loop", () => {
  test("continues while images are decoded", async () => {
    const bytes = await drawn(3_000, 3_000).png().toBuffer()
    let turns = 0
    let done = false
    const turning = (async () => {
      while (!done) {
        await new Promise((resolve) => setImmediate(resolve))
        turns++
      }
    })()
    await Promise.all(Array.from({ length: 3 }, () => fit(bytes, () => ({ width: 1_000, height: 1_000 }))))
    done = true
    await turning
    expect(turns).toBeGreaterThan(10)
  })
})

describe("the computed size", () => {
  const { minimum, maximum, default: usual } = Image.SIDE
  const any = fc.integer({ min: 1, max: 10_000 })
  const asked = fc.integer({ min: minimum, max: maximum })

  test("is within bounds, and as requested", () => {
    fc.assert(
      fc.property(
        fc.record({ width: asked, height: asked }, { requiredKeys: [] }),
        fc.record({ width: any, height: any }),
        (wanted, own) => {
          const size = ImageFile.sizeOf(wanted, own)
          expect(size).toMatchObject(wanted)
          for (const pixels of [size.width, size.height])
            expect(pixels >= minimum && pixels <= maximum && Number.isInteger(pixels)).toBe(true)
        }
      ),
      { seed: 1 }
    )
  })

  test.each([
    [{}, [1000, 500], [1000, 500]],
    [{}, [4096, 2048], [2048, 1024]],
    [{}, [8000, 100], [2048, 256]],
    [{}, [usual, usual], [usual, usual]],
    [{ width: 512 }, [2000, 1000], [512, 256]],
    [{ height: 512 }, [1000, 2000], [256, 512]],
    [{ width: 300, height: 700 }, [1000, 1000], [300, 700]]
  ] as const)("%j of %j is %j", (wanted, [width, height], size) => {
    expect(Object.values(ImageFile.sizeOf(wanted, { width, height }))).toEqual(size)
  })
})
