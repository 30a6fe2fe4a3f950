/** Shared by all image providers: prepares the image to edit, and checks the files of replies. */
import { createHash } from "node:crypto"
import { Image, InvalidInput, UpstreamUnavailable } from "@millrace/core"
import { Effect } from "effect"
import * as ImageFile from "./ImageFile.ts"

/** The error if a provider's content policy refuses a prompt or an image. */
export const refused = new InvalidInput({
  field: "prompt",
  message: "prompt or image is refused by the content policy of the image provider"
})

/** Decodes the image to edit, in the size of the result. Without an image, returns only the size. */
export const begin = (
  request: Image.EditRequest
): Effect.Effect<Image.Size & { readonly image: Image.Picture | undefined }, InvalidInput> => {
  if (request.image === undefined) {
    const side = Image.SIDE.default
    return Effect.succeed({ ...ImageFile.sizeOf(request, { width: side, height: side }), image: undefined })
  }
  return Effect.map(ImageFile.given("image", request.image, request), (image) => ({ width: image.width, height: image.height, image }))
}

/** Converts the provider's files to exactly `samples` images of the requested size. */
export const finish = (
  upstream: string,
  files: ReadonlyArray<Uint8Array>,
  { width, height, samples }: Image.Size & { readonly samples: number }
): Effect.Effect<ReadonlyArray<Image.Picture>, UpstreamUnavailable> => {
  const unavailable = (reason: string) => new UpstreamUnavailable({ upstream, reason })
  if (files.length < samples) return Effect.fail(unavailable(`it gave ${files.length} images of ${samples}`))
  return Effect.forEach(files.slice(0, samples), (bytes) =>
    Effect.mapError(
      ImageFile.fit(bytes, () => ({ width, height })),
      ({ reason }) => unavailable(`what it gave ${reason}`)
    )
  )
}

/** Decodes strict base64, with or without the prefix of a data URL; undefined if it is malformed. */
export const fromBase64 = (text: string): Uint8Array | undefined => {
  const digits = text.startsWith("data:") ? text.slice(text.indexOf(",") + 1) : text
  const padding = digits.endsWith("==") ? 2 : digits.endsWith("=") ? 1 : 0
  const bytes = Buffer.from(digits, "base64")
  // `Buffer.from` skips invalid characters, which the length reveals
  return digits.length > 0 && digits.length % 4 === 0 && bytes.length === (digits.length / 4) * 3 - padding ? bytes : undefined
}

/** Decodes all texts; `UpstreamUnavailable` if one is malformed. */
export const allFromBase64 = (
  upstream: string,
  texts: ReadonlyArray<string>
): Effect.Effect<ReadonlyArray<Uint8Array>, UpstreamUnavailable> =>
  Effect.forEach(texts, (text) => {
    const bytes = fromBase64(text)
    return bytes === undefined
      ? Effect.fail(new UpstreamUnavailable({ upstream, reason: "an image in its reply is no base64" }))
      : Effect.succeed(bytes)
  })

/** The next multiple of eight, as latent diffusion models require. */
export const byEight = (pixels: number): number => Math.ceil(pixels / 8) * 8

/** A 32-bit seed derived from the key, so that another attempt draws the same image. */
export const seedOf = (idempotencyKey: string): number => createHash("sha256").update(idempotencyKey).digest().readUInt32BE(0)
