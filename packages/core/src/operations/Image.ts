/** Pictures made and edited after a prompt: what has to be done elsewhere, and what it takes. */
import { Context, Effect, Layer } from "effect"
import { type InvalidInput, UpstreamNotConfigured, type UpstreamUnavailable } from "../work/OperationError.ts"

/** Pixels of width and of height. */
export const SIDE = { minimum: 256, maximum: 2048, default: 1024 } as const

/** Pictures that one call may ask for. */
export const MAX_SAMPLES = 4

/** Unicode code points. */
export const MAX_PROMPT = 2_000

/** Of a picture that a caller gives, in bytes. */
export const MAX_IMAGE = 16 * 1024 * 1024

export interface Size {
  /** Pixels. */
  readonly width: number
  readonly height: number
}

/** Decoded and encoded anew, so that there is nothing in it but the picture. */
export interface Picture extends Size {
  readonly bytes: Uint8Array
  readonly contentType: "image/png" | "image/jpeg"
}

export interface GenerateRequest extends Size {
  /** In whatever language the provider takes; English is safe. */
  readonly prompt: string
  readonly samples: number
  /** The same for each attempt at the same work: passed to providers that take one. */
  readonly idempotencyKey: string
}

export interface EditRequest {
  readonly prompt: string
  /** PNG, JPEG or WebP. Without one, the prompt alone is drawn. */
  readonly image: Uint8Array | undefined
  /** As the image has it, brought into bounds, where left out; one alone keeps its proportions. */
  readonly width?: number
  readonly height?: number
  /** From 0, hardly changed, to 1, hardly kept. A provider without such a knob takes no notice. */
  readonly strength?: number
  readonly idempotencyKey: string
}

/**
 * `InvalidInput` where the provider refuses the prompt or the image for what it shows (`prompt`), or the image is none that can be read
 * (`image`). `UpstreamUnavailable` for all else that kept it from giving what was asked for.
 */
export type ImageFailure = InvalidInput | UpstreamUnavailable | UpstreamNotConfigured

/** Interrupted, a call ends its connection, and where the provider can be told to stop, tells it so. */
export class ImageGenerator extends Context.Service<
  ImageGenerator,
  {
    /** Fails where there is no provider. */
    readonly configured: Effect.Effect<void, UpstreamNotConfigured>
    /** Exactly as many pictures as asked for, each exactly of the size asked for: what does not fit its proportions is cut off. */
    readonly generate: (request: GenerateRequest) => Effect.Effect<ReadonlyArray<Picture>, ImageFailure>
    /** One picture. */
    readonly edit: (request: EditRequest) => Effect.Effect<ReadonlyArray<Picture>, ImageFailure>
  }
>()("@millrace/core/operations/Image/ImageGenerator") {
  static readonly unconfigured: Layer.Layer<ImageGenerator> = Layer.sync(ImageGenerator, () => {
    const missing = Effect.fail(new UpstreamNotConfigured({ upstream: "images" }))
    return { configured: missing, generate: () => missing, edit: () => missing }
  })
}

/** Tells whether a picture that a caller gives can be decoded, before credits are held for work on it. */
export class ImageInspector extends Context.Service<
  ImageInspector,
  {
    /** `InvalidInput` (`image`) where it is no PNG, JPEG or WebP within bounds, or is damaged. Takes turns between accounts. */
    readonly inspect: (request: {
      readonly accountId: string
      readonly image: Uint8Array
    }) => Effect.Effect<void, InvalidInput | UpstreamUnavailable>
  }
>()("@millrace/core/operations/Image/ImageInspector") {}

/** Pictures at addresses that callers give: read from the public internet only, within bounds, and checked. */
export class ImageDownloader extends Context.Service<
  ImageDownloader,
  {
    /**
     * `InvalidInput` (`image_url`) on an address that must not be read, and on what is no picture there. `UpstreamUnavailable`, isolated,
     * where that server fails.
     */
    readonly download: (url: string) => Effect.Effect<Picture, InvalidInput | UpstreamUnavailable>
  }
>()("@millrace/core/operations/Image/ImageDownloader") {}

/** Prompts in other languages. */
export class Translator extends Context.Service<
  Translator,
  {
    /** Fails where there is no provider. */
    readonly configured: Effect.Effect<void, UpstreamNotConfigured>
    /** The text in English, whatever language it is in; as it is where it is English already. */
    readonly translate: (text: string) => Effect.Effect<string, UpstreamUnavailable | UpstreamNotConfigured>
  }
>()("@millrace/core/operations/Image/Translator") {
  static readonly unconfigured: Layer.Layer<Translator> = Layer.sync(Translator, () => {
    const missing = Effect.fail(new UpstreamNotConfigured({ upstream: "translation" }))
    return { configured: missing, translate: () => missing }
  })
}
