/** The frame of all image providers: prepares the image to edit, and checks the files of replies. */
import { createHash } from "node:crypto"
import { Image, InvalidInput, UpstreamUnavailable } from "@millrace/core"
import { Effect } from "effect"
import * as ImageFile from "./ImageFile.ts"

/** The error if a provider's content policy refuses a prompt or an image. */
export const refused = new InvalidInput({
  field: "prompt",
  message: "prompt or image is refused by the content policy of the image provider"
})

/** The image to draw. `image`: the one to edit, in the size of the result. */
export interface Scene extends Image.GenerateRequest {
  readonly image?: Image.Picture
  readonly strength?: number
}

type Failure = InvalidInput | UpstreamUnavailable

/** The service of a provider. `draw` returns the files of a scene's samples, in any size. */
export const generator = (
  name: string,
  upstream: string,
  draw: (scene: Scene) => Effect.Effect<ReadonlyArray<Uint8Array>, Failure>
): Image.ImageGenerator["Service"] => {
  const finished = (scene: Scene) => Effect.flatMap(draw(scene), (files) => finish(upstream, files, scene))
  return {
    configured: Effect.void,
    generate: Effect.fn(`${name}.generate`)(finished),
    edit: Effect.fn(`${name}.edit`)((request) => Effect.flatMap(sceneOf(request), finished))
  }
}

const sceneOf = (request: Image.EditRequest): Effect.Effect<Scene, InvalidInput> => {
  const { prompt, strength, idempotencyKey } = request
  const scene = { prompt, samples: 1, idempotencyKey, ...(strength === undefined ? {} : { strength }) }
  if (request.image === undefined) {
    const side = Image.SIDE.default
    return Effect.succeed({ ...scene, ...ImageFile.sizeOf(request, { width: side, height: side }) })
  }
  return Effect.map(ImageFile.given("image", request.image, request), (image) => ({
    ...scene,
    width: image.width,
    height: image.height,
    image
  }))
}

/** Converts the provider's files to exactly `samples` images of the requested size. */
const finish = (
  upstream: string,
  files: ReadonlyArray<Uint8Array>,
  { width, height, samples }: Scene
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
