/** What all image providers share: preparing the picture to edit, and checking the files that they answer. */
import { createHash } from "node:crypto"
import { Image, InvalidInput, UpstreamUnavailable } from "@millrace/core"
import { Effect } from "effect"
import * as ImageFile from "./ImageFile.ts"

/** For a provider that refuses a prompt or an image by its content policy. */
export const refused = new InvalidInput({
  field: "prompt",
  message: "prompt or image is refused by the content policy of the image provider"
})

/** The picture to edit, decoded and of the size of the result; without one, the size alone. */
export const begin = (
  request: Image.EditRequest
): Effect.Effect<Image.Size & { readonly image: Image.Picture | undefined }, InvalidInput> => {
  if (request.image === undefined) {
    const side = Image.SIDE.default
    return Effect.succeed({ ...ImageFile.sizeOf(request, { width: side, height: side }), image: undefined })
  }
  return Effect.map(ImageFile.given("image", request.image, request), (image) => ({ width: image.width, height: image.height, image }))
}

/** Makes of the provider's files exactly `samples` pictures of that size. */
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
  // `Buffer.from` skips what is no base64, so the length tells
  return digits.length > 0 && digits.length % 4 === 0 && bytes.length === (digits.length / 4) * 3 - padding ? bytes : undefined
}

/** The bytes of each text; `UpstreamUnavailable` where one is no base64. */
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

/** The next multiple of eight: latent diffusion models draw no other sides. */
export const byEight = (pixels: number): number => Math.ceil(pixels / 8) * 8

/** 32 bits, the same for the same key: another attempt draws the same picture. */
export const seedOf = (idempotencyKey: string): number => createHash("sha256").update(idempotencyKey).digest().readUInt32BE(0)
