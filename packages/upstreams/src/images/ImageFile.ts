/**
 * Decodes images from untrusted sources. It detects the format by magic number, limits bytes and pixels before it decodes, decodes a few at
 * a time off the event loop, and encodes again, so that the result has no metadata.
 */
import { Image, InvalidInput, mediaTypeOf } from "@millrace/core"
import { Effect, Schema, Semaphore } from "effect"

/** The most bytes of a file. */
export const MAX_BYTES = 32 * 1024 * 1024

/** Four bytes each once decoded, so 200 MB at most; more than a phone's camera takes. */
export const MAX_PIXELS = 50_000_000

/** The most images decoded at once in this process, each by one or more threads of the pool. */
const CONCURRENCY = 2

/** The time limit of one image. */
const SECONDS = 30

/** `reason` completes a sentence whose subject is the file, such as "is no PNG, JPEG or WebP image". */
export class NotAnImage extends Schema.TaggedError<NotAnImage>()("NotAnImage", { reason: Schema.String }) {
  override get message(): string {
    return `That is no picture: ${this.reason}`
  }
}

type Kind = "png" | "jpeg" | "webp"

/** The allowed formats. The decoder knows more, but never gets them. */
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
 * Decodes the first frame of the file, upright, in sRGB. `sizeFor` maps its size to the result's size; the image is scaled to cover it and
 * cropped at the centre. By default JPEG stays JPEG and other formats become PNG. All metadata is removed.
 */
export const fit = (
  bytes: Uint8Array,
  sizeFor: (own: Image.Size) => Image.Size,
  as?: "png" | "jpeg"
): Effect.Effect<Image.Picture, NotAnImage> =>
  permits.withPermit(
    decoded(bytes, async (sharp, kind) => {
      const size = sizeFor(await uprightSize(sharp, bytes, kind))
      return encoded(sharp, bytes, size, as ?? (kind === "jpeg" ? "jpeg" : "png"))
    })
  )

/** Fails if the first frame of the file cannot be decoded. The caller must limit concurrency. */
export const inspect = (field: string, bytes: Uint8Array): Effect.Effect<void, InvalidInput> =>
  Effect.mapError(
    decoded(bytes, async (sharp, kind) => {
      await uprightSize(sharp, bytes, kind)
      // Decodes all pixels, and keeps one
      await sharp(bytes, OPTIONS).resize({ width: 1, height: 1, fit: "fill" }).timeout({ seconds: SECONDS }).raw().toBuffer()
    }),
    invalid(field)
  )

/** The decoder gets the pixel limit, too: it may read another size than `metadata` does. */
const OPTIONS = { limitInputPixels: MAX_PIXELS, failOn: "error", pages: 1, autoOrient: true } as const

/** Loaded with the first image, because the library is native and large. */
const decoder = Effect.promise(async () => (await import("sharp")).default)
type Sharp = Effect.Success<typeof decoder>

/** Uninterruptible, because the decoder cannot be stopped: the permit must be held until it ends. */
const decoded = <A>(bytes: Uint8Array, decode: (sharp: Sharp, kind: Kind) => Promise<A>): Effect.Effect<A, NotAnImage> =>
  Effect.suspend(() => {
    const kind = kindOf(bytes)
    if (kind === undefined) return Effect.fail(no("is no PNG, JPEG or WebP image"))
    if (bytes.byteLength > MAX_BYTES) return Effect.fail(no(`has more than ${MAX_BYTES} bytes`))
    return Effect.flatMap(decoder, (sharp) =>
      Effect.tryPromise({
        try: () => decode(sharp, kind),
        catch: (cause) => (cause instanceof NotAnImage ? cause : no("cannot be decoded"))
      })
    )
  }).pipe(Effect.uninterruptible)

const uprightSize = async (sharp: Sharp, bytes: Uint8Array, kind: Kind): Promise<Image.Size> => {
  const { format, width, height, autoOrient } = await sharp(bytes, { ...OPTIONS, limitInputPixels: false }).metadata()
  if (format !== kind) throw no("is no PNG, JPEG or WebP image")
  if (width * height > MAX_PIXELS) throw no(`has more than ${MAX_PIXELS} pixels`)
  return { width: autoOrient.width, height: autoOrient.height }
}

const encoded = async (sharp: Sharp, bytes: Uint8Array, size: Image.Size, as: "png" | "jpeg"): Promise<Image.Picture> => {
  const picture = sharp(bytes, OPTIONS)
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

/** Computes the sides that the caller left out. */
export const sizeOf = ({ width, height }: { readonly width?: number; readonly height?: number }, own: Image.Size): Image.Size => {
  if (width !== undefined) return { width, height: height ?? side((own.height * width) / own.width) }
  if (height !== undefined) return { width: side((own.width * height) / own.height), height }
  const scale = Math.min(1, maximum / Math.max(own.width, own.height))
  return { width: side(own.width * scale), height: side(own.height * scale) }
}

/** A caller's image as a PNG of the requested size. `field`: its input field, for errors. */
export const given = (
  field: string,
  bytes: Uint8Array,
  size: { readonly width?: number; readonly height?: number } = {}
): Effect.Effect<Image.Picture, InvalidInput> =>
  Effect.mapError(
    fit(bytes, (own) => sizeOf(size, own), "png"),
    invalid(field)
  )

const invalid =
  (field: string) =>
  ({ reason }: NotAnImage) =>
    new InvalidInput({ field, message: `${field} ${reason}` })
