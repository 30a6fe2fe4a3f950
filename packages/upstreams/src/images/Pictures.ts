/** What all image providers have in common: what they are shown, and what becomes of what they give. */
import { createHash } from "node:crypto"
import { Image, InvalidInput, UpstreamUnavailable } from "@millrace/core"
import { Effect } from "effect"
import * as ImageFile from "./ImageFile.ts"

/** What a caller may read when a provider refuses a prompt or an image for what it shows. */
export const refused = new InvalidInput({
  field: "prompt",
  message: "prompt or image is refused by the content policy of the image provider"
})

/** The picture to begin with, if there is one, and the size of what shall come of it. */
export const begin = (
  request: Image.EditRequest
): Effect.Effect<Image.Size & { readonly image: Image.Picture | undefined }, InvalidInput> => {
  if (request.image === undefined) {
    const side = Image.SIDE.default
    return Effect.succeed({ ...ImageFile.sizeOf(request, { width: side, height: side }), image: undefined })
  }
  return Effect.map(ImageFile.given("image", request.image, request), (image) => ({ width: image.width, height: image.height, image }))
}

/** As many pictures as were asked for, each of that size. */
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

/** The bytes of strict base64, with or without the head of a data URL; undefined where it is none. */
export const fromBase64 = (text: string): Uint8Array | undefined => {
  const digits = text.startsWith("data:") ? text.slice(text.indexOf(",") + 1) : text
  const padding = digits.endsWith("==") ? 2 : digits.endsWith("=") ? 1 : 0
  const bytes = Buffer.from(digits, "base64")
  // What is no base64 is skipped, and so missed
  return digits.length > 0 && digits.length % 4 === 0 && bytes.length === (digits.length / 4) * 3 - padding ? bytes : undefined
}

/** Each as bytes, or the word that one is none. */
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

/** The least multiple of eight: models that work on latents know no other sides. */
export const byEight = (pixels: number): number => Math.ceil(pixels / 8) * 8

/** Of 32 bits, the same for the same work: an attempt made again draws the same again. */
export const seedOf = (idempotencyKey: string): number => createHash("sha256").update(idempotencyKey).digest().readUInt32BE(0)
