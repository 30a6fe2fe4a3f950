/**
 * Pictures from elsewhere, taken for files that may be meant to harm: told by how they begin, bounded in bytes and pixels before anything
 * is decoded, decoded off the event loop and a few at a time, and encoded anew, so that what comes out is a picture and nothing else.
 */
import { Image, InvalidInput, mediaTypeOf } from "@millrace/core"
import { Effect, Schema, Semaphore } from "effect"

/** Bytes of a file. */
export const MAX_BYTES = 32 * 1024 * 1024

/** Decoded, it is four bytes for each: more than any camera in a pocket takes, and 200 MB at most. */
export const MAX_PIXELS = 50_000_000

/** Decoded at a time in this process, each by one thread or more of the pool. */
const CONCURRENCY = 2

/** For one picture. */
const SECONDS = 30

/** `reason` says what is wrong with it, after the word for what it is. */
export class NotAnImage extends Schema.TaggedError<NotAnImage>()("NotAnImage", { reason: Schema.String }) {}

type Kind = "png" | "jpeg" | "webp"

/** The kinds that are decoded at all: whatever else the decoder knows is never shown to it. */
const kindOf = (bytes: Uint8Array): Kind | undefined => {
  const type = mediaTypeOf(bytes)
  if (type === "image/png") return "png"
  if (type === "image/jpeg") return "jpeg"
  const head = Buffer.from(bytes.subarray(0, 12)).toString("latin1")
  return head.startsWith("RIFF") && head.endsWith("WEBP") && head.length === 12 ? "webp" : undefined
}

const permits = Semaphore.makeUnsafe(CONCURRENCY)

const no = (reason: string) => new NotAnImage({ reason })

/**
 * The first picture of the file, turned upright, in sRGB, of exactly the size that `sizeFor` answers to its own: scaled to cover that,
 * from the middle. JPEG stays JPEG unless `as` says otherwise, all else is PNG; a profile, place, camera or comment is not in it.
 */
export const fit = (
  bytes: Uint8Array,
  sizeFor: (own: Image.Size) => Image.Size,
  as?: "png" | "jpeg"
): Effect.Effect<Image.Picture, NotAnImage> =>
  Effect.suspend(() => {
    const kind = kindOf(bytes)
    if (kind === undefined) return Effect.fail(no("is no PNG, JPEG or WebP image"))
    if (bytes.byteLength > MAX_BYTES) return Effect.fail(no(`has more than ${MAX_BYTES} bytes`))
    const encode = Effect.flatMap(decoder, (sharp) =>
      Effect.tryPromise({
        try: () => encoded(sharp, bytes, kind, sizeFor, as ?? (kind === "jpeg" ? "jpeg" : "png")),
        catch: (cause) => (cause instanceof NotAnImage ? cause : no("cannot be decoded"))
      })
    )
    // It cannot be stopped, so a permit is held until it ends
    return permits.withPermit(Effect.uninterruptible(encode))
  })

/** Loaded by the first picture only: it is native, and large. */
const decoder = Effect.promise(async () => (await import("sharp")).default)

const encoded = async (
  sharp: Effect.Success<typeof decoder>,
  bytes: Uint8Array,
  kind: Kind,
  sizeFor: (own: Image.Size) => Image.Size,
  as: "png" | "jpeg"
): Promise<Image.Picture> => {
  const file = sharp(bytes, { limitInputPixels: false, failOn: "error", pages: 1, autoOrient: true })
  const { format, width, height, autoOrient } = await file.metadata()
  if (format !== kind) throw no("is no PNG, JPEG or WebP image")
  if (width * height > MAX_PIXELS) throw no(`has more than ${MAX_PIXELS} pixels`)
  const size = sizeFor({ width: autoOrient.width, height: autoOrient.height })
  // The header may say one thing to whoever reads it first, and another to who decodes
  const picture = sharp(bytes, { limitInputPixels: MAX_PIXELS, failOn: "error", pages: 1, autoOrient: true })
    .resize({ ...size, fit: "cover" })
    .toColourspace("srgb")
    .timeout({ seconds: SECONDS })
  const { data, info } = await (as === "png" ? picture.png() : picture.flatten({ background: "white" }).jpeg({ quality: 90 })).toBuffer({
    resolveWithObject: true
  })
  return { bytes: data, contentType: `image/${as}`, width: info.width, height: info.height }
}

const { minimum, maximum } = Image.SIDE

const side = (pixels: number): number => Math.min(maximum, Math.max(minimum, Math.round(pixels)))

/** The size that is meant, where a caller left out one side or both. */
export const sizeOf = ({ width, height }: { readonly width?: number; readonly height?: number }, own: Image.Size): Image.Size => {
  if (width !== undefined) return { width, height: height ?? side((own.height * width) / own.width) }
  if (height !== undefined) return { width: side((own.width * height) / own.height), height }
  const scale = Math.min(1, maximum / Math.max(own.width, own.height))
  return { width: side(own.width * scale), height: side(own.height * scale) }
}

/** A caller's own picture, as PNG of the size that is meant; `field` is what it is called where it was given. */
export const given = (
  field: string,
  bytes: Uint8Array,
  size: { readonly width?: number; readonly height?: number } = {}
): Effect.Effect<Image.Picture, InvalidInput> =>
  Effect.mapError(
    fit(bytes, (own) => sizeOf(size, own), "png"),
    ({ reason }) => new InvalidInput({ field, message: `${field} ${reason}` })
  )
