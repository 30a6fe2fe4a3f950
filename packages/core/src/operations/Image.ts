/** The services that image operations need: generation, inspection, download, translation. And the limits of images. */
import { Context, Effect, Layer } from "effect"
import { type InvalidInput, UpstreamNotConfigured, type UpstreamUnavailable } from "../work/OperationError.ts"

/** Bounds of width and height, in pixels. */
export const SIDE = { minimum: 256, maximum: 2048, default: 1024 } as const

/** The most images of a call. */
export const MAX_SAMPLES = 4

/** The longest prompt, in Unicode code points. */
export const MAX_PROMPT = 2_000

/** The largest image from a caller, in bytes. */
export const MAX_IMAGE = 16 * 1024 * 1024

export interface Size {
  /** Pixels. */
  readonly width: number
  readonly height: number
}

/** An image that was decoded and encoded again, so that it holds no metadata. */
export interface Picture extends Size {
  readonly bytes: Uint8Array
  readonly contentType: "image/png" | "image/jpeg"
}

export interface GenerateRequest extends Size {
  /** In a language that the provider supports; all support English. */
  readonly prompt: string
  readonly samples: number
  /** The same for each attempt at the same work. For providers that accept an idempotency key. */
  readonly idempotencyKey: string
}

export interface EditRequest {
  readonly prompt: string
  /** PNG, JPEG or WebP. Undefined: the image is generated from the prompt alone. */
  readonly image: Uint8Array | undefined
  /** By default the image's size, scaled into the bounds. If only one side is given, the proportions are kept. */
  readonly width?: number
  readonly height?: number
  /** How much the image changes, from 0 to 1. Ignored by providers without this parameter. */
  readonly strength?: number
  readonly idempotencyKey: string
}

/**
 * `InvalidInput` with the field `prompt` if the provider's content policy refuses the prompt or the image, with the field `image` if the
 * image cannot be decoded. `UpstreamUnavailable` for any other failure.
 */
export type ImageFailure = InvalidInput | UpstreamUnavailable | UpstreamNotConfigured

/** Generates images. An interrupted call closes its connection and, if the provider supports it, cancels the work there. */
export class ImageGenerator extends Context.Service<
  ImageGenerator,
  {
    /** Fails without a provider. */
    readonly configured: Effect.Effect<void, UpstreamNotConfigured>
    /** Generates exactly `samples` images of exactly the requested size; other proportions are cropped. */
    readonly generate: (request: GenerateRequest) => Effect.Effect<ReadonlyArray<Picture>, ImageFailure>
    /** Edits an image. Returns one image. */
    readonly edit: (request: EditRequest) => Effect.Effect<ReadonlyArray<Picture>, ImageFailure>
  }
>()("@millrace/core/operations/Image/ImageGenerator") {
  static readonly unconfigured: Layer.Layer<ImageGenerator> = Layer.sync(ImageGenerator, () => {
    const missing = Effect.fail(new UpstreamNotConfigured({ upstream: "images" }))
    return { configured: missing, generate: () => missing, edit: () => missing }
  })
}

/** Checks that an image from a caller can be decoded, before credits are held. */
export class ImageInspector extends Context.Service<
  ImageInspector,
  {
    /**
     * `InvalidInput` with the field `image` if it is damaged, or not a PNG, JPEG or WebP within the bounds. Takes turns between accounts.
     */
    readonly inspect: (request: {
      readonly accountId: string
      readonly image: Uint8Array
    }) => Effect.Effect<void, InvalidInput | UpstreamUnavailable>
  }
>()("@millrace/core/operations/Image/ImageInspector") {}

/** Downloads images from callers' URLs, from the public internet only, and checks them. */
export class ImageDownloader extends Context.Service<
  ImageDownloader,
  {
    /**
     * `InvalidInput` with the field `image_url` for a forbidden URL and for content that is no image. Isolated `UpstreamUnavailable` if
     * that server fails.
     */
    readonly download: (url: string) => Effect.Effect<Picture, InvalidInput | UpstreamUnavailable>
  }
>()("@millrace/core/operations/Image/ImageDownloader") {}

/** Translates prompts. */
export class Translator extends Context.Service<
  Translator,
  {
    /** Fails without a provider. */
    readonly configured: Effect.Effect<void, UpstreamNotConfigured>
    /** Translates a text of any language into English. English text is unchanged. */
    readonly translate: (text: string) => Effect.Effect<string, UpstreamUnavailable | UpstreamNotConfigured>
  }
>()("@millrace/core/operations/Image/Translator") {
  static readonly unconfigured: Layer.Layer<Translator> = Layer.sync(Translator, () => {
    const missing = Effect.fail(new UpstreamNotConfigured({ upstream: "translation" }))
    return { configured: missing, translate: () => missing }
  })
}
